import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeEntry } from "../../src/bridge/journal/log.ts";
import { acknowledge, complete } from "../../src/bridge/journal/transitions.ts";
import { openJournal } from "../../src/daemon/journal.ts";
import { atRunning, atSubmitted, done, id, prepared, result } from "./journal-fixtures.ts";

let folder = "";
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "journal-")), "state");
});
afterEach(() => {
  rmSync(join(folder, ".."), { recursive: true, force: true });
});

const file = () => join(folder, "journal");
const utf8 = (text: string) => new TextEncoder().encode(text);
async function refusal(work: () => Promise<unknown>): Promise<string> {
  try {
    await work();
  } catch (error) {
    const { message, hint } = error as { message: string; hint: string };
    return `${message}. ${hint}`;
  }
  return "opened";
}

describe("the journal on disk", () => {
  test("gives back what was committed, in private files", async () => {
    const journal = await openJournal(folder);
    journal.put(prepared(1));
    journal.put(atSubmitted(2));
    journal.put(atRunning(1));
    expect(journal.load(id(1))?.phase).toBe("RUNNING");
    await journal.commit();
    await journal.close();
    const again = await openJournal(folder);
    expect(again.all()).toEqual([atRunning(1), atSubmitted(2)]);
    expect(again.load(id(3))).toBeNull();
    expect(again.notices).toEqual([]);
    await again.close();
    const modes = ["", "journal", "lock", "spool"].map((name) => statSync(join(folder, name)).mode & 0o777);
    expect(modes).toEqual([0o700, 0o600, 0o600, 0o700]);
  });

  test("refuses to keep a record that could not be read again", async () => {
    const journal = await openJournal(folder);
    expect(() => journal.put({ ...prepared(), deliveredBytes: 1 })).toThrow("deliveredBytes is beyond");
    await journal.close();
    expect(() => journal.put(prepared())).toThrow("The journal is closed");
  });

  test("many commits at once are few syncs, and all are kept", async () => {
    const journal = await openJournal(folder);
    const commits = Array.from({ length: 500 }, (_, n) => {
      journal.put(prepared(n + 1));
      return journal.commit();
    });
    await Promise.all(commits);
    expect(new Set(commits).size).toBe(2);
    await journal.close();
    const again = await openJournal(folder);
    expect(again.all()).toHaveLength(500);
    await again.close();
  });

  test("an unfinished end is cut off and said", async () => {
    const journal = await openJournal(folder);
    journal.put(prepared(1));
    await journal.close();
    appendFileSync(file(), encodeEntry(JSON.stringify({ put: prepared(2) })).subarray(0, 99));
    const again = await openJournal(folder);
    expect(again.notices.join()).toContain("99 bytes of an unfinished entry, which were cut off");
    again.put(prepared(3));
    await again.close();
    const third = await openJournal(folder);
    expect(third.all().map(({ invocationId }) => invocationId)).toEqual([id(1), id(3)]);
    expect(third.notices).toEqual([]);
    await third.close();
  });

  test("damage in the middle is set aside and named; the rest is read", async () => {
    const journal = await openJournal(folder);
    for (const n of [1, 2, 3]) journal.put(prepared(n));
    await journal.close();
    const bytes = readFileSync(file());
    const at = bytes.indexOf(id(2));
    bytes[at] = 0x66;
    writeFileSync(file(), bytes);
    const again = await openJournal(folder);
    expect(again.all().map(({ invocationId }) => invocationId)).toEqual([id(1), id(3)]);
    const [aside = ""] = readdirSync(folder).filter((name) => name.startsWith("journal.damaged-"));
    expect(again.notices.join()).toContain(`set aside in ${join(folder, aside)}`);
    expect(readFileSync(join(folder, aside), "utf8")).toContain(`f${id(2).slice(1)}`);
    await again.close();
  });

  test("a record that contradicts itself is set aside and named", async () => {
    await (await openJournal(folder)).close();
    appendFileSync(file(), encodeEntry(JSON.stringify({ put: { ...prepared(1), deliveredBytes: 9 } })));
    const again = await openJournal(folder);
    expect(again.all()).toEqual([]);
    expect(again.notices.join()).toContain(
      `record of ${id(1)} that cannot be used (deliveredBytes is beyond`,
    );
    expect(readFileSync(`${file()}.unusable-${id(1)}`, "utf8")).toContain('"deliveredBytes":9');
    await again.close();
  });

  test("one of a newer version is refused, as a file and as a record, and left as it is", async () => {
    for (const entry of [{ journal: 2 }, { put: { ...prepared(1), schema: 2 } }]) {
      rmSync(folder, { recursive: true, force: true });
      await (await openJournal(folder)).close();
      appendFileSync(file(), encodeEntry(JSON.stringify(entry)));
      const before = readFileSync(file(), "utf8");
      expect(await refusal(() => openJournal(folder))).toBe(
        `${file()} was written by a newer neurarch-gate (journal version 2, this one reads 1). Update neurarch-gate, or name another folder with --state`,
      );
      expect(readFileSync(file(), "utf8")).toBe(before);
    }
  });

  test("old acknowledged evaluations are let go but for their ids, with their output", async () => {
    const journal = await openJournal(folder);
    for (let n = 1; n <= 1_000; n++) {
      const ended = done(complete(atRunning(n), result({ jobName: `vibesys-inv-${n}-a1` })));
      if (n <= 3 || n > 998) journal.spool(id(n), ended.jobName).append(utf8("out"));
      journal.put(done(acknowledge(ended)));
    }
    await journal.close();
    const again = await openJournal(folder);
    expect(again.all()).toHaveLength(100);
    expect([1, 900, 901, 1_000, 5_000].map((n) => again.forgotten(id(n)))).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
    expect(statSync(file()).size).toBeLessThan(300_000);
    expect(
      readdirSync(join(folder, "spool"))
        .sort()
        .filter((name) => !name.endsWith(".delivered")),
    ).toEqual([999, 1_000].map((n) => `${id(n)}-vibesys-inv-${n}-a1`));
    await again.close();
  });

  test("a long run's file does not grow without end", async () => {
    const journal = await openJournal(folder);
    const bulky = {
      ...atRunning(1),
      failures: [{ attempt: 1, class: "NODE_FAILED" as const, seen: "y".repeat(100_000) }],
    };
    for (let n = 0; n < 100; n++) {
      journal.put(bulky);
      await journal.commit();
    }
    expect(statSync(file()).size).toBeLessThan(5_000_000);
    await journal.close();
    const again = await openJournal(folder);
    expect(again.all()).toEqual([bulky]);
    await again.close();
  });
});

describe("a spool", () => {
  test("is read back in pieces, also what is not in the file yet", async () => {
    const journal = await openJournal(folder);
    const spool = journal.spool(id(1), "job-a1");
    const line = utf8(`${"z".repeat(99)}\n`);
    for (let n = 0; n < 10_000; n++) spool.append(line);
    expect(spool.bytes).toBe(1_000_000);
    expect(spool.read(999_950, 65_536)).toEqual(line.subarray(50));
    expect(spool.read(0, 100)).toEqual(line);
    expect(spool.read(1_000_000, 10)).toHaveLength(0);
    await journal.commit();
    spool.markDelivered(500);
    spool.markDelivered(600);
    // A socket that took nothing after all.
    spool.markDelivered(500);
    expect(() => spool.markDelivered(1_000_001)).toThrow("more than");
    spool.append(line);
    spool.close();
    await journal.close();
    const again = await openJournal(folder);
    expect([again.spool(id(1), "job-a1").bytes, again.spool(id(1), "job-a1").delivered]).toEqual([0, 0]);
    await again.close();
  });

  test("keeps what was delivered over a restart; a name with a slash is refused", async () => {
    const journal = await openJournal(folder);
    journal.put(atRunning(1));
    const spool = journal.spool(id(1), "job-a1");
    spool.append(utf8("one\ntwo\n"));
    await journal.commit();
    spool.markDelivered(4);
    expect(() => journal.spool(id(1), "../x")).toThrow("No spool can be named");
    await journal.close();
    const again = await openJournal(folder);
    const known = again.spool(id(1), "job-a1");
    expect([known.bytes, known.delivered, new TextDecoder().decode(known.read(4, 100))]).toEqual([
      8,
      4,
      "two\n",
    ]);
    await again.close();
  });
});

test.each([
  ["its end", (path: string) => truncateSync(path, 3), 3, 3],
  ["all of it", (path: string) => rmSync(path), 0, 0],
  ["how much was delivered", (path: string) => writeFileSync(`${path}.delivered`, "torn"), 8, 0],
] as const)("a spool that lost %s is taken for what it still is", async (_, lose, bytes, delivered) => {
  const journal = await openJournal(folder);
  journal.put(atRunning(1));
  const spool = journal.spool(id(1), "job-a1");
  spool.append(utf8("one\ntwo\n"));
  await journal.commit();
  spool.markDelivered(6);
  await journal.close();
  lose(join(folder, "spool", `${id(1)}-job-a1`));
  const again = await openJournal(folder);
  const known = again.spool(id(1), "job-a1");
  expect([known.bytes, known.delivered]).toEqual([bytes, delivered]);
  expect(again.load(id(1))?.phase).toBe("RUNNING");
  await again.close();
});

describe("a state folder", () => {
  test("takes no second daemon while the first lives, and the next at once when it is killed", async () => {
    const child = await writer();
    expect(await refusal(() => openJournal(folder))).toBe(
      `Another bridge daemon (process ${child.pid}) uses ${folder}. End it first, or name another folder with --state`,
    );
    child.kill(9);
    await child.exited;
    const ours = await openJournal(folder);
    expect(await refusal(() => openJournal(folder))).toContain(`(process ${process.pid})`);
    await ours.close();
    await (await openJournal(folder)).close();
  });

  test("that others may write, that is someone else's or a file is refused with the remedy", async () => {
    await (await openJournal(folder)).close();
    chmodSync(folder, 0o770);
    expect(await refusal(() => openJournal(folder))).toContain(
      `${folder} can be written by others. Run chmod 700 ${folder}`,
    );
    chmodSync(folder, 0o700);
    chmodSync(file(), 0o666);
    expect(await refusal(() => openJournal(folder))).toContain(
      `${file()} is not a file of the daemon's user alone`,
    );
    rmSync(file());
    symlinkSync("/dev/null", file());
    expect(await refusal(() => openJournal(folder))).toContain(`Cannot open ${file()}: it is a link`);
    rmSync(folder, { recursive: true });
    writeFileSync(folder, "");
    expect(await refusal(() => openJournal(folder))).toContain(`Cannot use the folder ${folder}`);
  });

  test.if(process.getuid?.() === 0)("of another user is refused", async () => {
    await (await openJournal(folder)).close();
    chownSync(folder, 65_534, 65_534);
    expect(await refusal(() => openJournal(folder))).toContain(
      `${folder} belongs to user 65534, the daemon runs as 0`,
    );
  });

  test.if(process.getuid?.() === 0)(
    "on a full disk keeps what was durable, says so, and goes on when there is room",
    async () => {
      const mount = join(folder, "..", "small");
      const run = (...argv: string[]) => Bun.spawnSync(argv).exitCode === 0;
      if (!run("mkdir", mount) || !run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", mount)) {
        expect(process.env.CI).not.toBe("true");
        return;
      }
      try {
        const small = join(mount, "state");
        const journal = await openJournal(small);
        journal.put(prepared(1));
        await journal.commit();
        run("sh", "-c", `head -c 2000000 /dev/zero > ${mount}/filler`);
        const spool = journal.spool(id(1), "job-a1");
        spool.append(new Uint8Array(300_000).fill(65));
        journal.put(prepared(2));
        expect(await refusal(() => journal.commit())).toContain(`the disk is full. Make room there`);
        expect(await refusal(() => journal.commit())).toContain(small);
        rmSync(join(mount, "filler"));
        await journal.commit();
        expect(spool.bytes).toBe(300_000);
        await journal.close();
        const again = await openJournal(small);
        expect(again.all()).toHaveLength(2);
        expect(again.spool(id(1), "job-a1").bytes).toBe(300_000);
        await again.close();
      } finally {
        run("umount", mount);
      }
    },
  );
});

async function writer() {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "journal-writer.ts"), folder], {
    stdout: "pipe",
  });
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("ready\n")) {
    const { value, done: over } = await reader.read();
    if (over) throw new Error("The writer ended");
    text += new TextDecoder().decode(value);
  }
  const rest = (async () => {
    for (;;) {
      const { value, done: over } = await reader.read();
      if (over) return text;
      text += new TextDecoder().decode(value);
    }
  })();
  return Object.assign(child, { rest });
}

test("killed at random moments: what was committed is there once, whole, and delivery never goes back", async () => {
  const known = new Map<number, { bytes: number; delivered: number }>();
  for (let round = 0; round < 15; round++) {
    const child = await writer();
    await Bun.sleep(Math.random() * 60);
    child.kill(9);
    await child.exited;
    for (const line of (await child.rest).split("\n").slice(1, -1)) {
      const [n, bytes, delivered] = line.split(" ").map(Number) as [number, number, number];
      known.set(n, { bytes, delivered });
    }
    const journal = await openJournal(folder);
    for (const [n, said] of known) {
      const record = journal.load(id(n));
      const spool = journal.spool(id(n), `vibesys-inv-${n}-a1`);
      expect(record?.spooledBytes).toBeGreaterThanOrEqual(said.bytes);
      expect(spool.bytes).toBeGreaterThanOrEqual(record?.spooledBytes ?? 0);
      expect(spool.delivered).toBeGreaterThanOrEqual(said.delivered);
      const lines = new TextDecoder().decode(spool.read(0, spool.bytes)).split("\n").slice(0, -1);
      expect(lines).toEqual(
        [0, 1, 2].slice(0, lines.length).map((part) => `${n} ${part} ${"x".repeat((n * 37) % 5_000)}`),
      );
      spool.close();
    }
    await journal.close();
  }
  expect(known.size).toBeGreaterThan(15);
});
