import { GateError } from "../lib/errors.ts";

/** How a setting's value is checked and written. */
type SettingKind = "absolute-path" | "text" | "number" | "switch" | readonly string[];

/**
 * The settings of the `neurarch` table in `lua/cli_filter.lua`, by their name there; the flag of `print-lua` is
 * the same name with dashes. Files must be named absolutely: a submit runs in the user's working directory.
 */
export const LUA_SETTINGS = {
  binary: "absolute-path",
  mode: ["warn", "reject"],
  config: "absolute-path",
  gpu_map: "absolute-path",
  default_gpu_type: "text",
  partition_map: "absolute-path",
  cards: "absolute-path",
  prices: "absolute-path",
  max_cost_usd: "number",
  hours_from_time: "switch",
  headroom: "number",
  sizing: ["auto", "builtin", "cli", "hosted"],
  cli: "text",
  plan_url: "text",
  annotate: "switch",
  cluster: "text",
  policy_file: "absolute-path",
  repo_policy: ["honour", "tighten-only", "ignore"],
  ledger: "text",
  fail_closed: "switch",
  notice: ["unread", "always", "never"],
  timeout_s: "number",
  debug: "switch",
} as const satisfies Record<string, SettingKind>;

export type LuaSettingName = keyof typeof LUA_SETTINGS;

/** Values to write into the table. Numbers may be given as their text, as they come from a command line. */
export type LuaSettings = { readonly [name in LuaSettingName]?: string | number | boolean | undefined };

/** Where the numbers may lie; the unit is in the name. */
const RANGES: Partial<Record<LuaSettingName, readonly [number, number]>> = {
  headroom: [1, 10],
  timeout_s: [0.1, 600],
  max_cost_usd: [0.01, Number.MAX_SAFE_INTEGER],
};

/**
 * The Lua filter with its settings table filled in: every other line is left as it is, and each value is written
 * as a Lua literal that cannot end early, whatever it holds.
 *
 * Throws `GateError("usage")` for a value that the table cannot hold (a relative path, a control character, a
 * number out of range, an unknown word), and `GateError("internal")` when the text is not our filter.
 */
export function luaWithSettings(luaText: string, settings: LuaSettings): string {
  let text = luaText;
  for (const [name, value] of Object.entries(settings)) {
    if (value === undefined) continue;
    if (!isSettingName(name)) {
      throw new GateError("usage", `the Lua filter has no setting ${name}`, hintOfNames());
    }
    const literal = literalOf(name, value);
    const line = new RegExp(`^( *${name} = )[^\\n]*?(, *--[^\\n]*)$`, "m");
    if (!line.test(text)) throw new GateError("internal", `the Lua filter has no line for ${name}`);
    text = text.replace(line, (_whole, before: string, after: string) => `${before}${literal}${after}`);
  }
  return text;
}

function isSettingName(name: string): name is LuaSettingName {
  return Object.hasOwn(LUA_SETTINGS, name);
}

function hintOfNames(): string {
  return `It has ${Object.keys(LUA_SETTINGS).join(", ")}.`;
}

function literalOf(name: LuaSettingName, value: string | number | boolean): string {
  const kind: SettingKind = LUA_SETTINGS[name];
  if (kind === "switch") {
    if (value === true || value === "true") return "true";
    if (value === false || value === "false") return "false";
    throw wrong(name, value, "It is on or off: give true or false.");
  }
  if (kind === "number") return numberLiteral(name, value);
  if (typeof value !== "string") throw wrong(name, value, "It is text.");
  if (value.trim() === "") throw wrong(name, value, "It is empty.");
  if (hasControl(value)) throw wrong(name, value, "It holds a control character.");
  if (name === "plan_url" && !/^https?:\/\//.test(value))
    throw wrong(name, value, "It is an address that begins with http:// or https://.");
  if (name === "ledger" && !/^(?:unix:)?\/|^https?:\/\//.test(value))
    throw wrong(name, value, "It is a whole path, from /, or a collector: unix:/PATH or http(s)://HOST.");
  if (typeof kind !== "string") {
    if (!kind.includes(value)) throw wrong(name, value, `It is one of ${kind.join(", ")}.`);
  } else if (kind === "absolute-path" && !value.startsWith("/")) {
    throw wrong(
      name,
      value,
      "Give the whole path, from /: a submit runs in the user's own working directory.",
    );
  }
  return quoted(value);
}

function numberLiteral(name: LuaSettingName, value: string | number | boolean): string {
  const number =
    typeof value === "number" ? value : typeof value === "string" ? plainNumber(value) : Number.NaN;
  const [low, high] = RANGES[name] ?? [0, Number.MAX_SAFE_INTEGER];
  if (!Number.isFinite(number)) throw wrong(name, value, "It is a number, such as 5 or 1.15.");
  if (number < low || number > high) throw wrong(name, value, `It lies between ${low} and ${high}.`);
  return String(number);
}

/** Decimal digits only: hexadecimal, exponents and blanks are more likely slips than meant. */
function plainNumber(text: string): number {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
}

/** Control characters and lone surrogates: neither can be written down and read back as the same path. */
function hasControl(text: string): boolean {
  return /\p{Cc}|\p{Zl}|\p{Zp}|\p{Cs}/u.test(text);
}

/** A Lua string: only the quote and the backslash have a meaning inside, as control characters are refused. */
function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, (char) => `\\${char}`)}"`;
}

function wrong(name: LuaSettingName, value: unknown, hint: string): GateError {
  const shown = String(value)
    .replace(/\p{Cc}/gu, "?")
    .slice(0, 200);
  return new GateError("usage", `the setting ${name} cannot be \`${shown}\``, hint);
}
