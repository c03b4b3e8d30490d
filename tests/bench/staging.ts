/**
 * How long staging takes: a workspace of 20,000 files and 200 MB, in a git repository, the first time, unchanged, and
 * with one file edited; beside it `cp -a` of the same. `bun tests/bench/staging.ts [ROUNDS]` prints one line of JSON.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStaging } from "../../src/daemon/staging.ts";

const FOLDERS = 200;
const FILES = 100;
const BYTES = 10_000;
const rounds = Number(process.argv[2] ?? 3);

const root = mkdtempSync(join(tmpdir(), "staging-bench-"));
try {
  const workspace = join(root, "workspace");
  const content = new Uint8Array(BYTES);
  for (let folder = 0; folder < FOLDERS; folder++) {
    mkdirSync(join(workspace, `part${folder}`), { recursive: true });
    for (let file = 0; file < FILES; file++) {
      crypto.getRandomValues(content);
      writeFileSync(join(workspace, `part${folder}`, `source${file}.py`), content);
    }
  }
  execFileSync("git", ["init", "-q", workspace]);
  const rows: Record<string, number>[] = [];
  for (let round = 0; round < rounds; round++) {
    const row: Record<string, number> = {};
    const timed = async (name: string, work: () => Promise<unknown> | unknown) => {
      const from = performance.now();
      await work();
      row[name] = Math.round(performance.now() - from);
    };
    const id = (n: number) => String(n).padStart(32, "0");
    const rules = { workspace, hide: [], include: [], env: process.env };
    const staging = await openStaging(join(root, `state${round}`), rules);
    let longestMs = 0;
    let lastMs = performance.now();
    const beat = setInterval(() => {
      longestMs = Math.max(longestMs, performance.now() - lastMs);
      lastMs = performance.now();
    }, 1);
    await timed("firstMs", () => staging.snapshot(id(1)));
    await timed("unchangedMs", () => staging.snapshot(id(2)));
    writeFileSync(join(workspace, "part7", "source7.py"), `edited ${round}`);
    await timed("editedMs", () => staging.snapshot(id(3)));
    clearInterval(beat);
    row.longestBlockMs = Math.round(longestMs);
    await timed("pruneMs", () => staging.prune(new Set([id(3)])));
    await timed("copyMs", () => execFileSync("cp", ["-a", workspace, join(root, `copy${round}`)]));
    rmSync(join(root, `copy${round}`), { recursive: true });
    rmSync(join(root, `state${round}`), { recursive: true });
    rows.push(row);
  }
  const median = (name: string) =>
    rows.map((row) => row[name] ?? 0).sort((a, b) => a - b)[Math.floor(rows.length / 2)];
  const names = Object.keys(rows[0] ?? {});
  console.log(JSON.stringify(Object.fromEntries(names.map((name) => [name, median(name)]))));
  if (rounds > 1) console.log(rows.map((row) => JSON.stringify(row)).join("\n"));
} finally {
  rmSync(root, { recursive: true, force: true });
}
