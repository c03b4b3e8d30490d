import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { readLedger } from "../../src/gate/ledger-read.ts";
import { appendLine, type Rotation } from "../../src/host/append.ts";
import { lineOf } from "../../src/ledger/entry.ts";
import { run } from "../acceptance/run.ts";
import { verdictEntry } from "./entries.ts";

let root = "";
let made = 0;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "gate-rotate-"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));
const fresh = () => {
  const folder = join(root, String(++made));
  mkdirSync(folder);
  return folder;
};

const FILE = "ada@host.jsonl";
const DAY_MS = 86_400_000;
const rotation = (more: Partial<Rotation> = {}): Rotation => ({
  maxBytes: 1e6,
  maxAgeMs: null,
  keepMs: null,
  ...more,
});
let number = 0;
const line = (time = new Date().toISOString()) => lineOf(verdictEntry({ time, id: `line-of-${++number}` }));
const idsOf = (folder: string) => {
  const ids: string[] = [];
  readLedger(folder, ({ id }) => void ids.push(id!));
  return ids;
};

test("16 writers of 1,000 verdicts each while files are put aside, some of them killed: every completed verdict once", async () => {
  const folder = fresh();
  const writers = Array.from({ length: 16 }, (_, writer) =>
    Bun.spawn(
      [
        process.execPath,
        resolve(import.meta.dir, "rotated-writer.ts"),
        folder,
        FILE,
        String(writer),
        writer % 3 === 0 ? "100000" : "1000",
      ],
      { stdout: "pipe", stderr: "inherit", stdin: "ignore" },
    ),
  );
  // The report is read while they write: it never takes a verdict twice.
  let reads = 0;
  let twice = 0;
  const reading = (async () => {
    while (writers.some(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) {
      const ids = idsOf(folder);
      twice += ids.length - new Set(ids).size;
      reads += 1;
      await Bun.sleep(50);
    }
  })();
  const said = await Promise.all(
    writers.map(async (child, index) => {
      let text = "";
      const decoder = new TextDecoder();
      for await (const chunk of child.stdout) {
        text += decoder.decode(chunk, { stream: true });
        if (index % 3 === 0 && text.length > 2000 + index * 500) child.kill("SIGKILL");
      }
      await child.exited;
      return text.split("\n").slice(0, -1);
    }),
  );
  await reading;
  expect([reads > 0, twice]).toEqual([true, 0]);
  expect(said.filter((ids) => ids.length === 1000).length).toBe(10);
  const files = readdirSync(folder);
  // Some 11,000 lines of 600 bytes and more.
  expect(files.length).toBeGreaterThan(50);
  expect(files.every((name) => name === FILE || /^ada@host\.jsonl-\d+$/.test(name))).toBe(true);
  const lines = files.flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n")).filter(Boolean);
  const counts = new Map<string, number>();
  let broken = 0;
  for (const text of lines) {
    try {
      const { id } = JSON.parse(text);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    } catch {
      broken += 1;
    }
  }
  const written = said.flat();
  expect(written.filter((id) => counts.get(id) !== 1)).toEqual([]);
  expect([...counts.values()].every((count) => count === 1)).toBe(true);
  // A writer leaves half a line at most when it is killed.
  expect(broken).toBeLessThanOrEqual(6);
  const reported = new Set(idsOf(folder));
  expect(written.filter((id) => !reported.has(id))).toEqual([]);
}, 120_000);

describe("a file is put aside", () => {
  const ROWS: readonly (readonly [string, Partial<Rotation>, string, number])[] = [
    ["not while it is short and young", { maxBytes: 1e6, maxAgeMs: DAY_MS }, new Date().toISOString(), 1],
    ["before a line would make it too long", { maxBytes: 900 }, new Date().toISOString(), 2],
    [
      "once its first line is too old",
      { maxAgeMs: DAY_MS },
      new Date(Date.now() - 2 * DAY_MS).toISOString(),
      2,
    ],
    ["not for its age where none is set", {}, "2020-01-01T00:00:00.000Z", 1],
  ];
  for (const [name, more, time, files] of ROWS)
    test(name, () => {
      const folder = fresh();
      expect(appendLine(folder, FILE, line(time), rotation(more))).toBeNull();
      expect(appendLine(folder, FILE, line(), rotation(more))).toBeNull();
      expect(readdirSync(folder).length).toBe(files);
      expect(idsOf(folder).length).toBe(2);
    });

  test("a line longer than the limit goes into a file of its own, and no empty one is put aside", () => {
    const folder = fresh();
    for (let times = 0; times < 3; times += 1)
      expect(appendLine(folder, FILE, line(), rotation({ maxBytes: 10 }))).toBeNull();
    expect(readdirSync(folder).length).toBe(3);
  });

  test("a first line that says no time is not taken for an old one", () => {
    const folder = fresh();
    writeFileSync(join(folder, FILE), "garbage\n", { mode: 0o600 });
    appendLine(folder, FILE, line(), rotation({ maxAgeMs: 1 }));
    expect(readdirSync(folder)).toEqual([FILE]);
  });
});

describe("old files", () => {
  const aged = (folder: string, name: string, days: number) => {
    writeFileSync(join(folder, name), line(), { mode: 0o600 });
    const when = new Date(Date.now() - days * DAY_MS);
    utimesSync(join(folder, name), when, when);
  };
  test("are removed when one is put aside, and only those of this user and host", () => {
    const folder = fresh();
    aged(folder, `${FILE}-100`, 40);
    aged(folder, `${FILE}.1`, 40);
    aged(folder, `${FILE}-200`, 20);
    aged(folder, "bo@host.jsonl-100", 40);
    aged(folder, "bo@host.jsonl", 40);
    aged(folder, "notes.txt-1", 40);
    aged(folder, FILE, 40);
    appendLine(folder, FILE, line(), rotation({ maxBytes: 10, keepMs: 30 * DAY_MS }));
    const left = readdirSync(folder);
    expect(left).not.toContain(`${FILE}-100`);
    expect(left).not.toContain(`${FILE}.1`);
    expect(left).toContain(`${FILE}-200`);
    expect(left).toContain("bo@host.jsonl-100");
    expect(left).toContain("notes.txt-1");
  });

  test("are removed by `ledger prune`, files in use never", async () => {
    const folder = fresh();
    aged(folder, FILE, 400);
    aged(folder, `${FILE}-100`, 400);
    aged(folder, "bo@host.jsonl-200", 300);
    expect((await run(["ledger", "prune", folder])).exit).toBe(2);
    expect(await run(["ledger", "prune", folder, "--keep-days", "365"])).toMatchObject({
      exit: 0,
      out: `${FILE}-100\n1 file removed\n`,
    });
    expect(readdirSync(folder).sort()).toEqual([FILE, "bo@host.jsonl-200"]);
    writeFileSync(join(root, "gate.toml"), `ledger = "${folder}"\nledger_keep_days = 200\n`);
    expect((await run(["ledger", "prune", "--config", join(root, "gate.toml")])).out).toContain(
      "1 file removed",
    );
  });
});

test("the site file says when, for a submit", async () => {
  const folder = fresh();
  writeFileSync(join(root, "gate.toml"), "ledger_rotate_mb = 0.0001\n");
  const words = ["judge", "--model", "Qwen/Qwen3-8B", "--request", "A10G:1", "--ledger", folder];
  for (let times = 0; times < 3; times += 1) await run([...words, "--config", join(root, "gate.toml")]);
  expect(readdirSync(folder).length).toBe(3);
  expect(JSON.parse((await run(["ledger", folder, "--json"])).out).totals.verdicts).toBe(3);
  writeFileSync(join(root, "gate.toml"), "ledger_rotate_mb = 0\n");
  expect((await run([...words, "--config", join(root, "gate.toml")])).err).toContain("`ledger_rotate_mb`");
});

test("a file that is renamed between two looks at the folder is read, and once", () => {
  const folder = fresh();
  appendLine(folder, FILE, line());
  appendLine(folder, "bo@host.jsonl", line());
  const ids: string[] = [];
  readLedger(folder, ({ id }) => {
    ids.push(id!);
    // While the first is read, the second is put aside, and its user goes on.
    if (ids.length > 1 || !existsSync(join(folder, "bo@host.jsonl"))) return;
    renameSync(join(folder, "bo@host.jsonl"), join(folder, "bo@host.jsonl-123"));
    appendFileSync(join(folder, "bo@host.jsonl"), line());
  });
  expect([ids.length, new Set(ids).size]).toEqual([3, 3]);
});
