/** What the hardening tests run: the built executable, the shipped Lua filter, and shell lines under a poor host. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LuaSettings, luaWithSettings } from "../../src/slurm/lua.ts";
import { BINARY, ROOT } from "../acceptance/run.ts";

export { BINARY, ROOT };

export const SCRIPT = join(ROOT, "examples/finetune-qwen3-8b.sbatch");
/** The refusal that `SCRIPT` comes to, as it is told in warn mode. */
export const REFUSED =
  /^decision=warn\nmessage=Neurarch: Qwen\/Qwen3-8B needs 339\.4 GB .* Submitted anyway\.\n$/;
export const LUAS = ["5.1", "5.2", "5.3", "5.4"].filter(
  (version) => process.env.CI !== undefined || Bun.which(`lua${version}`) !== null,
);

export interface Ran {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
}

/** A folder that is gone when the tests are. */
export class Scratch {
  readonly path = mkdtempSync(join(tmpdir(), "gate-hard-"));
  #made = 0;

  /** A new name in it. */
  fresh(): string {
    return join(this.path, String(this.#made++));
  }

  put(name: string, content: string | Uint8Array): string {
    const path = join(this.path, name);
    writeFileSync(path, content);
    return path;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export const SUBMIT: readonly string[] = [
  BINARY,
  "slurm",
  "--script",
  SCRIPT,
  "--gres",
  "gpu:a10g:1",
  "--nodes",
  "1",
];

/** Runs a line of bash; `$GATE` is the executable, `$SUBMIT` a whole submit, `$SCRIPT` its script. */
export async function shell(
  line: string,
  { cwd = "/", env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<Ran> {
  return exec(["bash", "-c", line], {
    cwd,
    env: {
      GATE: BINARY,
      SCRIPT,
      SUBMIT: SUBMIT.join(" "),
      ...env,
    },
  });
}

export async function exec(
  argv: readonly string[],
  { cwd = "/", env = {}, stdin = "" }: { cwd?: string; env?: Record<string, string>; stdin?: string } = {},
): Promise<Ran> {
  const child = Bun.spawn([...argv], {
    cwd,
    env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", HF_HUB_OFFLINE: "1", ...env },
    stdin: stdin === "" ? "ignore" : new TextEncoder().encode(stdin),
    stdout: "pipe",
    stderr: "pipe",
    timeout: 60_000,
  });
  const [out, err, exit] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exit, out, err };
}

/** A Lua literal of a value; byte strings are written in decimal escapes. */
export function lua(value: unknown): string {
  if (typeof value === "string")
    return `"${[...Buffer.from(value)].map((byte) => `\\${String(byte).padStart(3, "0")}`).join("")}"`;
  if (Array.isArray(value)) return `{${value.map(lua).join(",")}}`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([key, item]) => `[${lua(key)}]=${lua(item)}`)
      .join(",")}}`;
  return String(value);
}

const FILTER = readFileSync(join(ROOT, "lua/cli_filter.lua"), "utf8");
const STUB = join(ROOT, "tests/slurm/stub.lua");

/** What the shipped filter does with a submit of these options under a real Lua: lines of `stub.lua`. */
export async function filtered(
  version: string,
  scratch: Scratch,
  submit: {
    readonly settings?: LuaSettings;
    readonly argv: readonly string[];
    readonly set: Readonly<Record<string, string>>;
  },
  host: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
): Promise<Ran> {
  const name = scratch.fresh();
  writeFileSync(
    `${name}.lua`,
    luaWithSettings(FILTER, { binary: BINARY, timeout_s: 30, ...submit.settings }),
  );
  const { argv, set } = submit;
  const json = `slurm.json_cli_options = function() return json_of(${lua(set)}, ${lua(argv)}) end\n`;
  writeFileSync(`${name}.scenario`, `${json}submit(proxy(${lua({ ...set, argv, type: "sbatch" })}), 0)\n`);
  return exec([`lua${version}`, STUB, `${name}.lua`, `${name}.scenario`], host);
}

/** Line ends, which texts of several lines have, are left out of what is looked for. */
const STEERING = /(?!\n)\p{Cc}|[\p{Cs}\u2028\u2029\p{DI}]/u;

/** What in a text steers a terminal, a log or a line protocol; null for one that is safe. */
export function steering(text: string): string | null {
  return STEERING.exec(text)?.[0] ?? null;
}
