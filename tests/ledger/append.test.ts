import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { appendLine, sharedText } from "../../src/host/append.ts";

let root = "";
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "gate-append-"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let made = 0;
const fresh = (mode = 0o700) => {
  const folder = join(root, String(++made));
  mkdirSync(folder);
  chmodSync(folder, mode);
  return folder;
};
const modeOf = (path: string) => statSync(path).mode & 0o7777;
const FILE = "ada@host.jsonl";

describe("a line that is appended", () => {
  test("stands alone after half a line", () => {
    const folder = fresh();
    expect(appendLine(folder, FILE, '{"a":1}\n')).toBeNull();
    appendFileSync(join(folder, FILE), '{"a":');
    expect(appendLine(folder, FILE, '{"a":2}\n')).toBeNull();
    expect(appendLine(folder, FILE, '{"a":3}\n')).toBeNull();
    expect(readFileSync(join(folder, FILE), "utf8")).toBe('{"a":1}\n{"a":\n{"a":2}\n{"a":3}\n');
  });

  const FOLDERS: readonly (readonly [string, number, "folder" | null, number])[] = [
    ["ours", 0o700, null, 0o600],
    ["listed by others", 0o755, null, 0o600],
    ["shared as /tmp is", 0o1777, null, 0o600],
    ["shared, listed by its owner", 0o1733, null, 0o600],
    ["shared, its group reads", 0o3733, null, 0o640],
    ["written by others without the sticky bit", 0o777, "folder", 0],
    ["written by a group without the sticky bit", 0o770, "folder", 0],
  ];
  for (const [name, mode, expected, fileMode] of FOLDERS) {
    test(`in a folder that is ${name}`, () => {
      const folder = fresh(mode);
      expect(appendLine(folder, FILE, "{}\n")).toBe(expected);
      expect(readdirSync(folder)).toEqual(expected === null ? [FILE] : []);
      if (expected === null) expect(modeOf(join(folder, FILE))).toBe(fileMode);
    });
  }

  test("makes its folder, for us alone, and none above it", () => {
    const folder = join(fresh(), "new");
    expect(appendLine(folder, FILE, "{}\n")).toBeNull();
    expect(modeOf(folder)).toBe(0o700);
    expect(appendLine(join(folder, "a", "b"), FILE, "{}\n")).toBe("folder");
  });

  const IN_PLACE: readonly (readonly [string, (path: string) => void])[] = [
    ["a link to a file", (path) => symlinkSync(victim(), path)],
    ["a link to nothing", (path) => symlinkSync(join(root, "nothing"), path)],
    ["a second name of another file", (path) => linkSync(victim(), path)],
    ["a FIFO", (path) => expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0)],
    ["a folder", (path) => mkdirSync(path)],
    [
      "a file that others may write",
      (path) => {
        writeFileSync(path, "");
        chmodSync(path, 0o666);
      },
    ],
  ];
  const victim = () => {
    const path = join(root, `victim-${made}`);
    writeFileSync(path, "kept\n");
    return path;
  };
  for (const [name, put] of IN_PLACE) {
    test(`is not put into ${name}`, () => {
      const folder = fresh();
      put(join(folder, FILE));
      expect(appendLine(folder, FILE, "{}\n")).toBe("foreign");
      for (const other of readdirSync(root).filter((entry) => entry.startsWith("victim")))
        expect(readFileSync(join(root, other), "utf8")).toBe("kept\n");
      expect(readdirSync(root)).not.toContain("nothing");
    });
  }

  test("the text that writers share is the first one's, for all", () => {
    const folder = fresh(0o1777);
    expect(sharedText(folder, "salt", "one")).toBe("one");
    expect(sharedText(folder, "salt", "two")).toBe("one");
    expect(readdirSync(folder)).toEqual(["salt"]);
    expect(sharedText(join(root, "nowhere", "at", "all"), "salt", "x")).toBeNull();
  });
});

test("of 16 writers, some of them killed, every line that was written is there once", async () => {
  const folder = fresh();
  const writers = Array.from({ length: 16 }, (_, writer) =>
    Bun.spawn(
      [process.execPath, resolve(import.meta.dir, "writer.ts"), folder, FILE, String(writer), "1000"],
      { stdout: "pipe", stderr: "inherit", stdin: "ignore" },
    ),
  );
  const said = writers.map(async (child, index) => {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      text += decoder.decode(chunk, { stream: true });
      // Every third is killed while it writes.
      if (index % 3 === 0 && text.split("\n").length > 10 + 40 * index) child.kill("SIGKILL");
    }
    await child.exited;
    return text.split("\n").slice(0, -1);
  });
  const all = await Promise.all(said);
  const written = all.flat();
  expect(all.filter((ids) => ids.length === 1000).length).toBeGreaterThanOrEqual(10);
  expect(all.some((ids) => ids.length < 1000)).toBe(true);
  const counts = new Map<string, number>();
  let broken = 0;
  for (const line of readFileSync(join(folder, FILE), "utf8")
    .split("\n")
    .filter((text) => text !== "")) {
    try {
      const { id } = JSON.parse(line);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    } catch {
      broken += 1;
    }
  }
  expect(written.filter((id) => counts.get(id) !== 1)).toEqual([]);
  expect([...counts.values()].every((count) => count === 1)).toBe(true);
  // A writer leaves half a line at most when it is killed.
  expect(broken).toBeLessThanOrEqual(6);
}, 60_000);
