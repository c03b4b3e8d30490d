import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LUA_SETTINGS } from "../../src/slurm/lua.ts";
import { run } from "../acceptance/run.ts";

const FILTER = readFileSync(join(import.meta.dir, "../../lua/cli_filter.lua"), "utf8");

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gate-print-lua-"));
  const at = (name: string, text: string) => writeFileSync(join(folder, name), text);
  at("map.json", '{"a10g": "A10G"}');
  at("empty.toml", "");
  at("broken", "a10g = ");
  at("nocard.json", '{"a10g": "A11"}');
  at("prices.json", '{"A10G": "cheap"}');
  at("partitions.json", '{"gpu": 3}');
  at("cards.json", '{"X1": {}}');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Settings (`@` is a folder of the test), the exit code, a line of the filter or of what is said. */
const ROWS: readonly (readonly [words: string, exit: number, said: RegExp])[] = [
  ["", 0, /^ {2}mode = nil, -- /m],
  ["--mode reject --gpu-map @map.json", 0, /^ {2}gpu_map = "\S+\/map\.json", -- /m],
  ["--mode=reject", 0, /^ {2}mode = "reject", -- /m],
  [
    "--annotate --no-debug --fail-closed",
    0,
    /^ {2}annotate = true, -- [\s\S]*^ {2}fail_closed = true, -- [\s\S]*^ {2}debug = false, -- /m,
  ],
  [
    "--hours-from-time --headroom 1.2 --max-cost-usd 500",
    0,
    /^ {2}max_cost_usd = 500, -- [\s\S]*^ {2}hours_from_time = true, -- [\s\S]*^ {2}headroom = 1\.2, -- /m,
  ],
  ["--timeout 8", 0, /^ {2}timeout_s = 8, -- /m],
  ["--notice never --cluster gpu-dev", 0, /^ {2}cluster = "gpu-dev", -- [\s\S]*^ {2}notice = "never", -- /m],
  [
    "--repo-policy tighten-only --policy-file /etc/neurarch/policy.yml",
    0,
    /^ {2}policy_file = "\/etc\/neurarch\/policy\.yml", -- [\s\S]*^ {2}repo_policy = "tighten-only", -- /m,
  ],
  ["--config @empty.toml", 0, /^ {2}config = "\S+\/empty\.toml", -- /m],
  // What a submit could not read is refused, with what is wrong.
  ["--gpu-map @broken", 4, /--gpu-map: \S+\/broken is not JSON/],
  ["--gpu-map @nocard.json", 4, /`a10g` to `A11`/],
  ["--gpu-map @", 4, /--gpu-map: \S+ is a directory/],
  ["--prices @prices.json", 4, /price of `A10G`/],
  ["--partition-map @partitions.json", 4, /`gpu` in \S+partitions\.json/],
  ["--cards @cards.json", 4, /card `X1` has no `gb`/],
  ["--config @broken", 4, /broken:1:8 is not TOML/],
  ["--gpu-map map.json", 2, /gpu_map cannot be `map\.json`/],
  ["--mode strict", 2, /mode cannot be `strict`/],
  ["--max-cost-usd 0", 2, /max_cost_usd cannot be `0`/],
  ["--headroom 0.5", 2, /headroom cannot be `0\.5`/],
  ["--timeout-s soon", 2, /timeout_s cannot be `soon`/],
  ["--plan-url plan.example.org", 2, /plan_url cannot be `plan\.example\.org`\. It is an address/],
  ["--plan-url https://plan.example.org/v1", 0, /^ {2}plan_url = "https:\/\/plan\.example\.org\/v1", -- /m],
  ["--notice loud", 2, /notice cannot be `loud`/],
  ["--helper /usr/bin/x", 2, /unknown flag --helper/],
  ["--mode", 2, /--mode/],
];

describe("print-lua", () => {
  for (const [words, exit, said] of ROWS) {
    test(words === "" ? "without settings" : words, async () => {
      const args = words === "" ? [] : words.replaceAll("@", `${folder}/`).split(" ");
      const ran = await run(["print-lua", ...args]);
      expect({ exit: ran.exit, err: ran.err }).toMatchObject({ exit });
      expect(exit === 0 ? ran.out : ran.err).toMatch(said);
      // A failure leaves nothing that could be taken for a filter.
      if (exit !== 0)
        expect({ out: ran.out, lines: ran.err.split("\n").length }).toEqual({ out: "", lines: 2 });
    });
  }
  test("the help says of every setting what the filter's own comment says", async () => {
    const { out } = await run(["print-lua", "--help"]);
    for (const setting of Object.keys(LUA_SETTINGS)) {
      const comment = new RegExp(`^ {2}${setting} = .*?, -- (?:true: )?(.*)$`, "m").exec(FILTER)?.[1];
      // A description that is long goes on, indented, on the lines below.
      const told = new RegExp(
        `^ {2}--${setting.replaceAll("_", "-")}(?:=\\S+)?\\s+(.*(?:\\n {20,}\\S.*)*)`,
        "m",
      )
        .exec(out)?.[1]
        ?.replace(/\n +/g, " ");
      expect([setting, told]).toEqual([setting, comment]);
    }
  });
  test("a file that is on another host is told, not refused", async () => {
    const { exit, out, err } = await run(["print-lua", "--gpu-map", "/nowhere/map.json"]);
    expect({ exit, err }).toEqual({
      exit: 0,
      err: "neurarch-gate print-lua: --gpu-map: /nowhere/map.json is not on this host; submits need it.\n",
    });
    expect(out).toContain('gpu_map = "/nowhere/map.json", --');
  });
});
