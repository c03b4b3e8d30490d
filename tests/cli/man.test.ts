import { describe, expect, test } from "bun:test";
import { COMMANDS } from "../../src/cli/app.ts";
import { FACT_SPECS } from "../../src/facts/keys.ts";
import { run } from "../acceptance/run.ts";

const page = (await run(["man"])).out;

/** What a tool makes of the page, and what it complains of. */
function through(argv: readonly string[]): { readonly out: string; readonly err: string } {
  const { stdout, stderr } = Bun.spawnSync([...argv], {
    stdin: new TextEncoder().encode(page),
    stdout: "pipe",
    stderr: "pipe",
  });
  return { out: stdout.toString(), err: stderr.toString() };
}

describe("the manual page", () => {
  test("mandoc finds nothing to warn of", () => {
    const { out, err } = through(["mandoc", "-Tlint", "-Wwarning"]);
    expect([out, err]).toEqual(["", ""]);
  });
  test("groff finds nothing to warn of", () => {
    expect(through(["groff", "-ww", "-man", "-Tutf8", "-z"]).err).toBe("");
  });
  test("it has every command, flag and variable, in words that are what was meant", async () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal is told of bold by striking twice
    const text = through(["mandoc", "-Tutf8", "-Owidth=200"]).out.replace(/.\x08/g, "").replace(/\s+/g, " ");
    for (const [name, load] of Object.entries(COMMANDS)) {
      const { command } = await load();
      expect(text).toContain(`neurarch-gate ${name}`);
      for (const [flag, def] of Object.entries(command.args))
        if (def.type !== "positional") expect(text).toContain(`--${flag}`);
      for (const [line] of command.examples) expect(text).toContain(line);
    }
    for (const { env } of FACT_SPECS) expect(text).toContain(env);
    expect(text).toContain("refuse when we cannot answer, instead of admitting".replace("r", "R"));
  });
  test("its heading names the version and the day of the build", () => {
    expect(page).toMatch(
      /^\.TH NEURARCH\\-GATE 1 "\d{4}-\d\d-\d\d" "neurarch\\-gate [\d.]+" "User Commands"\n/,
    );
  });
});
