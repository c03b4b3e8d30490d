import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import fc from "fast-check";
import { findPolicyFile } from "../../src/gate/policy-find.ts";
import { openTaskPolicy, pathsOf } from "../../src/gate/policy-task.ts";
import { buildCardTable } from "../../src/request/cards.ts";
import { outcomeOf } from "../render/support.ts";
import { sizingOf } from "../verdict/support.ts";

const root = mkdtempSync(join(tmpdir(), "gate-policy-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
/** A folder with these files; `null` makes a folder, text a file. */
function tree(entries: Record<string, string | null>): string {
  const base = join(root, String(count++));
  mkdirSync(base);
  for (const [path, text] of Object.entries(entries)) {
    const whole = join(base, path);
    mkdirSync(text === null ? whole : join(whole, ".."), { recursive: true });
    if (text !== null) writeFileSync(whole, text);
  }
  return base;
}

describe("finding the policy file", () => {
  const rows: readonly (readonly [
    name: string,
    entries: Record<string, string | null>,
    starts: readonly string[],
    found: string | null,
  ])[] = [
    ["beside the job", { "a/.neurarch.yml": "", ".git": null }, ["a"], "a/.neurarch.yml"],
    ["above it", { ".neurarch.yml": "", ".git": null, "a/b": null }, ["a/b"], ".neurarch.yml"],
    [
      "the nearest",
      { ".neurarch.yml": "", "a/.neurarch.yml": "", "a/b": null, ".git": null },
      ["a/b"],
      "a/.neurarch.yml",
    ],
    ["the other spelling", { ".neurarch.yaml": "", ".git": null }, [""], ".neurarch.yaml"],
    [
      "both: the first spelling",
      { ".neurarch.yaml": "", ".neurarch.yml": "", ".git": null },
      [""],
      ".neurarch.yml",
    ],
    [
      "not above the repository",
      { ".neurarch.yml": "", "repo/.git": null, "repo/a": null },
      ["repo/a"],
      null,
    ],
    [
      "in the repository's own folder",
      { "repo/.neurarch.yml": "", "repo/.git": null, "repo/a": null },
      ["repo/a"],
      "repo/.neurarch.yml",
    ],
    [
      "a worktree's .git is a file",
      { ".neurarch.yml": "", "repo/.git": "gitdir: x", "repo/a": null },
      ["repo/a"],
      null,
    ],
    [
      "the first start wins",
      { "a/.neurarch.yml": "", "b/.neurarch.yml": "", "a/.git": null, "b/.git": null },
      ["b", "a"],
      "b/.neurarch.yml",
    ],
    [
      "a start without one",
      { "a/.neurarch.yml": "", "a/.git": null, "b/.git": null },
      ["b", "a"],
      "a/.neurarch.yml",
    ],
    [
      "a folder of that name is passed by",
      { "a/.neurarch.yml": null, ".neurarch.yml": "", ".git": null },
      ["a"],
      ".neurarch.yml",
    ],
    ["a start that is not there", { ".neurarch.yml": "", ".git": null }, ["x/y"], ".neurarch.yml"],
  ];
  for (const [name, entries, starts, found] of rows) {
    test(name, () => {
      const base = tree(entries);
      const path = findPolicyFile(starts.map((start) => join(base, start)));
      expect(path === null || !path.startsWith(base) ? null : path.slice(base.length + 1)).toBe(found);
    });
  }
  test("what a stranger left where everybody may write is passed by", () => {
    const base = tree({ "a/.neurarch.yml": "", ".neurarch.yml": "", ".git": null });
    const file = join(base, "a/.neurarch.yml");
    chmodSync(join(base, "a"), 0o1777);
    expect(findPolicyFile([join(base, "a")])).toBe(file);
    if (process.getuid?.() !== 0) return;
    chownSync(file, 4711, 4711);
    expect(findPolicyFile([join(base, "a")])).toBe(join(base, ".neurarch.yml"));
    chmodSync(join(base, "a"), 0o755);
    expect(findPolicyFile([join(base, "a")])).toBe(file);
  });
  test("a FIFO of that name is passed by, a link to a file is followed, a dangling one is not", () => {
    const base = tree({ "real.yml": "version: 1\n", "a/b": null, "c/d": null, ".git": null });
    Bun.spawnSync(["mkfifo", join(base, "a/b/.neurarch.yml")]);
    symlinkSync(join(base, "real.yml"), join(base, "a/.neurarch.yml"));
    symlinkSync(join(base, "nowhere"), join(base, "c/d/.neurarch.yml"));
    symlinkSync(".neurarch.yml", join(base, "c/.neurarch.yml"));
    expect(findPolicyFile([join(base, "a/b")])).toBe(join(base, "a/.neurarch.yml"));
    expect(findPolicyFile([join(base, "c/d")])).toBeNull();
  });
});

describe("a file that cannot be read changes nothing", () => {
  const context = {
    utcDay: "2026-11-30",
    localDay: () => "2026-11-30",
    cluster: null,
    repoPolicy: "honour",
    table: buildCardTable(),
    jobFile: null,
    cwd: "/",
  } as const;
  const { result, request, telling } = outcomeOf({
    sizing: sizingOf([{ fixed: 20, per: 10 }]),
    request: ["H100:1"],
  });
  const settings = { ...telling.settings, tasks: 1, useSpot: false, fallbackHours: null, rewriteCards: null };
  const judged = { facts: telling.facts, params: 8e9, request, result, settings };
  const applied = (path: string) => {
    const policy = openTaskPolicy(path, context);
    expect(policy.rewriteCards(null)).toBeNull();
    return policy.apply(judged);
  };
  const waiver =
    "version: 1\nwaivers:\n  - {rule: admission/request-does-not-fit, owner: bo, created: 2026-11-01}\n";

  const rows: readonly (readonly [name: string, make: () => string, note: string])[] = [
    ["not there", () => join(root, "none.yml"), "none.yml is not applied: "],
    ["a folder", () => tree({}), "is a directory, not a file; the verdict stands without it."],
    [
      "a device",
      () => "/dev/zero",
      "zero is not applied: /dev/zero is not a regular file; the verdict stands without it.",
    ],
    [
      "too large",
      () => join(tree({ "p.yml": `${waiver}${"# x\n".repeat(20_000)}` }), "p.yml"),
      "is larger than the 64 kB that are read; the verdict stands without it.",
    ],
    [
      "broken after a waiver",
      () => join(tree({ "p.yml": `${waiver}budget: [\n` }), "p.yml"),
      "p.yml is not applied: line 5, column 1: the YAML cannot be read:",
    ],
    [
      "a limit that is none, after a waiver",
      () => join(tree({ "p.yml": `${waiver}budget: {max_params: lots}\n` }), "p.yml"),
      "p.yml is not applied: line 4, column 22: `max_params` is `lots`, not an amount; the verdict stands without it.",
    ],
  ];
  for (const [name, make, note] of rows) {
    test(name, () => {
      const outcome = applied(make());
      expect(outcome.result).toBe(result);
      expect(outcome.notes).toHaveLength(1);
      expect(outcome.notes[0]).toContain(note);
    });
  }
  test("the same file, whole, does", () => {
    expect(applied(join(tree({ "p.yml": waiver }), "p.yml")).result.decision).toBe("warn");
  });
  test("a FIFO does not keep anyone waiting", () => {
    const path = join(tree({}), "p.yml");
    Bun.spawnSync(["mkfifo", path]);
    expect(applied(path).notes[0]).toContain("is not a regular file");
  });
  test("whatever bytes it holds", () => {
    const path = join(tree({}), "p.yml");
    const broken = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.string({ unit: "grapheme", maxLength: 200 }).map((text) => new TextEncoder().encode(text)),
      fc.nat(waiver.length).map((cut) => new TextEncoder().encode(`${waiver.slice(0, cut)}\n  ]{`)),
    );
    fc.assert(
      fc.property(broken, (bytes) => {
        writeFileSync(path, bytes);
        const outcome = applied(path);
        // Nothing of it is a waiver that can be read, so the refusal stands whether or not the file could be.
        expect(outcome.result.decision).toBe("refuse");
      }),
      { numRuns: 300 },
    );
  });
});

describe("the paths of a scope", () => {
  const rows: readonly (readonly [
    name: string,
    args: Parameters<typeof pathsOf>,
    paths: readonly string[],
  ])[] = [
    ["a job's file", ["/r/jobs/a.sh", "org/model", "/r", "/r"], ["jobs/a.sh", "/r/jobs/a.sh"]],
    ["outside the policy's folder", ["/x/a.sh", "org/model", "/r", "/r"], ["/x/a.sh"]],
    ["a folder whose name only begins alike", ["/rr/a.sh", "org/model", "/r", "/r"], ["/rr/a.sh"]],
    ["no file", [null, "org/model", "/r", "/r"], []],
    [
      "a model in a file",
      [null, "./net.neurarch.json", "/r", "/r/nets"],
      ["nets/net.neurarch.json", "/r/nets/net.neurarch.json"],
    ],
    ["at the root", ["/a.sh", "org/model", "/", "/"], ["a.sh", "/a.sh"]],
  ];
  for (const [name, args, paths] of rows) test(name, () => expect(pathsOf(...args)).toEqual([...paths]));
});

test("a rewrite may use the allowed cards only", () => {
  const path = join(tree({ "p.yml": "version: 1\nbudget: {cards_allowed: [a100-80, H100-SXM]}\n" }), "p.yml");
  const policy = openTaskPolicy(path, {
    utcDay: "2026-11-30",
    localDay: () => "2026-11-30",
    cluster: null,
    repoPolicy: "honour",
    table: buildCardTable(),
    jobFile: null,
    cwd: "/",
  });
  expect(policy.rewriteCards(null)).toEqual(["A100-80GB", "H100"]);
  expect(policy.rewriteCards(["L4", "H100"])).toEqual(["H100"]);
});

test("a submit without a policy file loads nothing of its reader", () => {
  const src = resolve(import.meta.dir, "../../src");
  const seen = new Set<string>();
  const follow = (file: string) => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(file, "utf8");
    // Imports of types are gone when the program runs; `import()` is what is loaded later.
    for (const [, types, from] of text.matchAll(/^(?:import|export) (type )?[^;]*?from "([^"]+)";/gm)) {
      if (types !== undefined) continue;
      if (from!.startsWith(".")) follow(resolve(file, "..", from!));
      else seen.add(from!);
    }
  };
  follow(join(src, "main.ts"));
  follow(join(src, "cli/commands/slurm.ts"));
  const loaded = [...seen].map((path) => path.replace(`${src}/`, ""));
  expect(loaded).toContain("gate/policy-find.ts");
  expect(loaded.filter((path) => /^policy\//.test(path))).toEqual(["policy/types.ts"]);
  const writing = ["gate/ledger-write.ts", "ledger/entry.ts", "host/append.ts"];
  for (const path of [
    "yaml",
    "gate/policy-task.ts",
    "gate/policy-file.ts",
    "gate/policy-yaml.ts",
    ...writing,
  ]) {
    expect(loaded).not.toContain(path);
  }
});
