import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import fc from "fast-check";
import { GateError } from "../../src/lib/errors.ts";
import { LUA_SETTINGS, type LuaSettings, luaWithSettings } from "../../src/slurm/lua.ts";

const FILTER = readFileSync(resolve(import.meta.dir, "../../lua/cli_filter.lua"), "utf8");
const scratch = mkdtempSync(join(tmpdir(), "gate-settings-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What Lua reads back from the table: each setting as bytes in hexadecimal, so that nothing hides. */
function readBack(lua: string, version = "5.1"): Record<string, string> {
  const path = join(scratch, "filter.lua");
  writeFileSync(path, lua);
  const names = Object.keys(LUA_SETTINGS).map((name) => `"${name}"`);
  const program = `
    dofile("${path}")
    for _, name in ipairs({ ${names.join(",")} }) do
      local value = neurarch[name]
      local text = type(value) == "number" and string.format("%.14g", value) or tostring(value)
      print(name .. " " .. type(value) .. " " .. (text:gsub(".", function(c) return string.format("%02x", c:byte()) end)))
    end`;
  const child = Bun.spawnSync([`lua${version}`, "-e", program]);
  expect(child.stderr.toString()).toBe("");
  return Object.fromEntries(
    child.stdout
      .toString()
      .trim()
      .split("\n")
      .map((line) => {
        const [name, type, hex] = line.split(" ");
        return [name ?? "", `${type} ${Buffer.from(hex ?? "", "hex").toString()}`];
      }),
  );
}

const DEFAULTS: Record<string, string> = {
  ...Object.fromEntries(Object.keys(LUA_SETTINGS).map((name) => [name, "nil nil"])),
  binary: "string /usr/local/bin/neurarch-gate",
  notice: "string unread",
  timeout_s: "number 5",
  debug: "boolean false",
};

describe("the settings table", () => {
  test("without settings the text is the file's", () => {
    expect(luaWithSettings(FILTER, {})).toBe(FILTER);
    expect(luaWithSettings(FILTER, { mode: undefined })).toBe(FILTER);
    expect(readBack(FILTER)).toEqual(DEFAULTS);
  });

  test("every setting of the table has a line, and every line a setting", () => {
    const table = FILTER.slice(FILTER.indexOf("settings: begin"), FILTER.indexOf("settings: end"));
    const lines = [...table.matchAll(/^ {2}(\w+) = /gm)].map((match) => match[1]);
    expect(lines).toEqual(Object.keys(LUA_SETTINGS));
  });

  const WRITTEN: readonly (readonly [string, LuaSettings, string])[] = [
    ["a mode", { mode: "reject" }, "string reject"],
    ["a path", { gpu_map: "/etc/neurarch/gpus.json" }, "string /etc/neurarch/gpus.json"],
    ["a path with blanks and quotes", { binary: `/opt/it's "here"/gate` }, `string /opt/it's "here"/gate`],
    ["backslashes", { cli: "a\\b\\" }, "string a\\b\\"],
    ["Lua inside", { cli: `x", os.exit(1), "y` }, `string x", os.exit(1), "y`],
    ["a comment inside", { cli: "x, -- y" }, "string x, -- y"],
    ["brackets", { cli: "]] [[ ]=]" }, "string ]] [[ ]=]"],
    ["replacement marks", { cli: "$1 $& $' $$" }, "string $1 $& $' $$"],
    ["letters beyond ASCII", { default_gpu_type: "größe-字" }, "string größe-字"],
    ["a number", { max_cost_usd: 250 }, "number 250"],
    ["a number as text", { headroom: "1.2" }, "number 1.2"],
    ["a cent to spend", { max_cost_usd: "0.01" }, "number 0.01"],
    ["a fraction of a second", { timeout_s: 0.5 }, "number 0.5"],
    ["a switch", { annotate: true }, "boolean true"],
    ["a switch as text", { fail_closed: "false" }, "boolean false"],
  ];
  for (const [name, settings, expected] of WRITTEN) {
    test(name, () => {
      const [setting] = Object.keys(settings);
      const lua = luaWithSettings(FILTER, settings);
      expect(readBack(lua)).toEqual({ ...DEFAULTS, [setting ?? ""]: expected });
      // Only that line changed, and its explanation stayed.
      const changed = lua.split("\n").filter((line, index) => line !== FILTER.split("\n")[index]);
      expect(lua.split("\n").length).toBe(FILTER.split("\n").length);
      expect(changed.length).toBe(1);
      expect(changed[0]).toMatch(/, -- \S/);
    });
  }

  const REFUSED: readonly (readonly [string, LuaSettings])[] = [
    ["an unknown mode", { mode: "Reject" }],
    ["a relative path", { gpu_map: "gpus.json" }],
    ["a binary on PATH", { binary: "neurarch-gate" }],
    ["a line break", { cli: "a\nb" }],
    ["a NUL", { cli: "a\0b" }],
    ["an escape sequence", { cli: "\x1b[31m" }],
    ["a line separator", { cli: "a\u2028b" }],
    ["half a character", { cli: "\ud800" }],
    ["nothing", { cli: "" }],
    ["blanks", { cli: "  " }],
    ["a number for a path", { config: 3 }],
    ["a word for a number", { max_cost_usd: "cheap" }],
    ["hexadecimal", { max_cost_usd: "0x10" }],
    ["an exponent", { max_cost_usd: "1e3" }],
    ["a cap of nothing, which the binary does not take", { max_cost_usd: 0 }],
    ["an unknown notice", { notice: "yes" }],
    ["an unknown say of repositories", { repo_policy: "loosen" }],
    ["a policy file beside the user", { policy_file: "policy.yml" }],
    ["a ledger beside the user", { ledger: "ledger" }],
    ["a negative cap", { max_cost_usd: -1 }],
    ["a headroom below the peak", { headroom: 0.9 }],
    ["no time", { timeout_s: 0 }],
    ["ten minutes and more", { timeout_s: 601 }],
    ["not a number", { headroom: Number.NaN }],
    ["infinity", { max_cost_usd: Number.POSITIVE_INFINITY }],
    ["a switch that is neither", { annotate: "yes" }],
    ["a number for a switch", { debug: 1 }],
    ["an unknown setting", { helper: "x" } as LuaSettings],
    ["an inherited name", { toString: "x" } as unknown as LuaSettings],
  ];
  for (const [name, settings] of REFUSED) {
    test(`refused: ${name}`, () => {
      let error: unknown;
      try {
        luaWithSettings(FILTER, settings);
      } catch (caught) {
        error = caught;
      }
      expect(error).toBeInstanceOf(GateError);
      const { code, message, hint } = error as GateError;
      expect(code).toBe("usage");
      expect(hint).not.toBeNull();
      expect(message).not.toMatch(/\p{Cc}/u);
    });
  }

  test("a text that is not the filter is told apart", () => {
    expect(() => luaWithSettings("print(1)", { mode: "warn" })).toThrow(/no line for mode/);
  });

  test("whatever text is accepted is read back byte for byte, by every Lua", () => {
    const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 });
    for (const version of ["5.1", "5.4"]) {
      fc.assert(
        fc.property(text, text, (path, cli) => {
          const settings = { binary: `/${path}`, cli };
          let lua: string;
          try {
            lua = luaWithSettings(FILTER, settings);
          } catch {
            fc.pre(false);
            return;
          }
          const read = readBack(lua, version);
          expect(read).toEqual({ ...DEFAULTS, binary: `string /${path}`, cli: `string ${cli}` });
        }),
        { numRuns: 60 },
      );
    }
  });
});
