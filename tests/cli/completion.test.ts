import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { REPORTS } from "../../src/render/reports.ts";
import { BINARY, run } from "../acceptance/run.ts";
import { scratch } from "../outputs/support.ts";

/*
 * Real interactive shells on a terminal: a line is typed, the key that inserts every candidate is pressed, and Enter runs
 * a function of our program's name that prints its words. fish has a command that says what Tab would offer.
 */

const folder = scratch();
afterAll(() => folder.remove());

const INSERT_ALL = { bash: "\u001b*", zsh: "\u0018a" } as const;
const HOME = folder.path;
const env = { PATH: "/usr/bin:/bin", HOME, TERM: "xterm", LC_ALL: "C.UTF-8" };

beforeAll(async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { out, exit } = await run(["completion", shell]);
    expect(exit).toBe(0);
    writeFileSync(join(HOME, `complete.${shell}`), out);
  }
  for (const name of ["jobs/one.sbatch", "jobs/two words.sbatch", "zzz-file.csv"]) {
    mkdirSync(join(HOME, name, ".."), { recursive: true });
    writeFileSync(join(HOME, name), "");
  }
  const say = `neurarch-gate() { printf '{BEGIN}'; printf '{%s}' "$@"; printf '{END}\\n'; }`;
  writeFileSync(
    join(HOME, "rc.bash"),
    `PS1='$ '; bind 'set enable-bracketed-paste off'; bind '"\\e*": insert-completions'\n${say}\nsource complete.bash\necho {READY''}\n`,
  );
  writeFileSync(
    join(HOME, ".zshrc"),
    `PROMPT='$ '; unset zle_bracketed_paste; autoload -U compinit; compinit -D -u
zle -C all-matches complete-word _generic; bindkey '^Xa' all-matches
zstyle ':completion:all-matches:*' completer _all_matches _complete
zstyle ':completion:all-matches:*' insert yes
zstyle ':completion:all-matches:*' old-matches no
${say}\nsource $HOME/complete.zsh\necho {READY''}\n`,
  );
  const fake = join(HOME, "neurarch-gate");
  writeFileSync(fake, `#!/bin/sh\nexec ${BINARY} "$@"\n`);
  chmodSync(fake, 0o755);
});

/** The words of each line after every candidate was put into it. */
function typed(shell: "bash" | "zsh", lines: readonly string[]): string[][] {
  const argv = shell === "bash" ? ["bash", "--noprofile", "--rcfile", "rc.bash", "-i"] : ["zsh", "-i"];
  const asked = {
    argv,
    env,
    ready: "{READY}",
    lines: lines.map((line) => `${line}${INSERT_ALL[shell]}`),
  };
  const { stdout, stderr, exitCode } = Bun.spawnSync(["python3", join(import.meta.dir, "keys.py")], {
    stdin: new TextEncoder().encode(JSON.stringify(asked)),
    cwd: HOME,
    stdout: "pipe",
    stderr: "pipe",
  });
  if (exitCode !== 0) throw new Error(stderr.toString());
  return JSON.parse(stdout.toString());
}

/** What fish would offer for the last word of a line. */
function offered(line: string): string[] {
  const script = `source complete.fish; complete -C ${JSON.stringify(line)}`;
  const { stdout, stderr } = Bun.spawnSync(["fish", "--no-config", "-c", script], {
    cwd: HOME,
    env,
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(stderr.toString()).toBe("");
  return stdout
    .toString()
    .split("\n")
    .filter((one) => one !== "")
    .map((one) => one.split("\t")[0]!.replace(/\/$/, ""));
}

/** What is typed behind the program's name, and the candidates for its last word. */
const ROWS: readonly (readonly [line: string, candidates: readonly string[]])[] = [
  ["jud", ["judge"]],
  ["print-", ["print-lua", "print-python"]],
  ["policy ", ["apply", "check", "explain"]],
  ["policy ch", ["check"]],
  ["judge --output ", ["human", "json", ...Object.keys(REPORTS)]],
  ["judge --output j", ["json", "junit"]],
  ["policy check --output ", ["human", "json", "sarif", "github"]],
  ["judge --sky", ["--skypilot"]],
  ["judge --checkp", ["--checkpointing"]],
  ["judge --checkpointing ", ["none", "full"]],
  ["judge --json --optimizer adamw-", ["adamw-foreach", "adamw-8bit"]],
  ["slurm --mode re", ["reject"]],
  ["judge --model Qwen/Qwen3-0", ["Qwen/Qwen3-0.6B"]],
  ["size openai-community/gpt2-", ["openai-community/gpt2-medium", "openai-community/gpt2-xl"]],
  ["judge --request H1", ["H100", "H100-NVL"]],
  ["judge --request L4", ["L4", "L40", "L40S"]],
  ["policy explain admission/re", ["admission/request-does-not-fit"]],
  ["completion ", ["bash", "zsh", "fish"]],
  ["schema verd", ["verdict"]],
  ["ledger rec", ["reconcile"]],
  ["ledger reconcile --sin", ["--since"]],
  ["ledger jo", ["jobs"]],
  ["ledger --sin", ["--since"]],
  ["bridge st", ["status"]],
  ["evaluate ", ["accuracy", "benchmark"]],
  ["evaluate --socket jobs/o", ["jobs/one.sbatch"]],
  ["doctor ", ["bridge", "slurm", "sky", "ledger"]],
  ["judge --slurm jobs/o", ["jobs/one.sbatch"]],
  ["rightsize zzz", ["zzz-file.csv"]],
  ["judge --ledger jo", ["jobs"]],
  ["judge --no-mut", ["--no-mutate"]],
  ["policy check --tod", ["--today"]],
];

for (const shell of ["bash", "zsh"] as const) {
  describe(shell, () => {
    test("what Tab offers", () => {
      const found = typed(
        shell,
        ROWS.map(([line]) => `neurarch-gate ${line}`),
      );
      const got = ROWS.map(([line], index) => {
        const before = line.split(" ").slice(0, -1);
        expect(found[index]!.slice(0, before.length)).toEqual(before);
        // A flag whose value may stand behind `=` is offered with it.
        const words = found[index]!.slice(before.length).map((word) =>
          word.replace(/^(--[\w-]+)=$|\/$/, "$1"),
        );
        return [line, words.sort()];
      });
      expect(got).toEqual(ROWS.map(([line, words]) => [line, [...words].sort()]));
    });
    test("a value behind =, a file with blanks, a number, and flags where nothing else is", () => {
      const [value, blanks, number, flags, none] = typed(shell, [
        "neurarch-gate judge --output=s",
        "neurarch-gate judge --slurm jobs/t",
        "neurarch-gate judge --batch ",
        "neurarch-gate policy explain --",
        "neurarch-gate nothing ",
      ]);
      expect(value).toEqual(["judge", "--output=sarif"]);
      expect(blanks).toEqual(["judge", "--slurm", "jobs/two words.sbatch"]);
      expect(number!.slice(0, 3)).toEqual(["judge", "--batch"]);
      expect(
        flags!
          .slice(2)
          .map((one) => one.replace(/=$/, ""))
          .sort(),
      ).toEqual(["--help", "--json", "--output"]);
      expect(none).toEqual(["nothing"]);
    });
  });
}

describe("fish", () => {
  for (const [line, words] of ROWS) {
    test(line, () => {
      expect(offered(`neurarch-gate ${line}`).sort()).toEqual([...words].sort());
    });
  }
  test("a value behind =, a file with blanks, a number, and flags where nothing else is", () => {
    expect(offered("neurarch-gate judge --output=s")).toEqual(["--output=sarif"]);
    expect(offered("neurarch-gate judge --slurm jobs/t")).toEqual(["jobs/two words.sbatch"]);
    expect(offered("neurarch-gate judge --batch ")).toEqual([]);
    expect(offered("neurarch-gate policy explain --").sort()).toEqual(["--help", "--json", "--output"]);
    expect(offered("neurarch-gate nothing ")).toEqual([]);
  });
});

test("of every command every flag is offered, and behind each flag its values, by bash and by fish", async () => {
  const { commandTree } = await import("../../src/cli/tree.ts");
  const { commands } = await commandTree();
  const rows: [line: string, candidates: string[]][] = [];
  for (const { name, flags } of commands) {
    const names = flags.map((flag) => `--${flag.name}`);
    rows.push([`${name} --`, [...names, "--help"]]);
    for (const { name: flag, values } of flags) {
      if (values?.kind === "words" || values?.kind === "words-or-files")
        rows.push([`${name} --${flag} `, [...values.words]]);
      else if (values?.kind === "files") rows.push([`${name} --${flag} jobs/o`, ["jobs/one.sbatch"]]);
      else if (values?.kind === "folders") rows.push([`${name} --${flag} jo`, ["jobs"]]);
    }
  }
  expect(rows.length).toBeGreaterThan(200);
  const own = rows.map(([line]) => `neurarch-gate ${line}`);
  const fish = own.map((line) => `complete -C '${line}'; echo ----`).join("\n");
  // What Tab would have bash call, with the line cut into words as bash cuts it.
  const bash = own
    .map((line) => {
      const words = line.split(" ").map((word) => `'${word}'`);
      const before = words.at(-2) ?? "''";
      return `COMP_WORDS=(${words.join(" ")}); COMP_CWORD=${words.length - 1}; COMP_LINE='${line}'; COMP_POINT=${line.length}; COMPREPLY=(); _neurarch_gate neurarch-gate ${words.at(-1)} ${before}; printf '%s\\n' "\${COMPREPLY[@]}"; echo ----`;
    })
    .join("\n");
  const scripts = {
    fish: ["fish", "--no-config", "-c", `source complete.fish\n${fish}`],
    bash: ["bash", "--noprofile", "-c", `source complete.bash\ncompopt() { :; }\n${bash}`],
  };
  for (const [shell, argv] of Object.entries(scripts)) {
    const ran = Bun.spawnSync(argv, { cwd: HOME, env, stdout: "pipe", stderr: "pipe" });
    expect([shell, ran.stderr.toString()]).toEqual([shell, ""]);
    const answers = ran.stdout.toString().split("----\n");
    rows.forEach(([line, candidates], index) => {
      const got = answers[index]!.split("\n")
        .map((one) => one.split("\t")[0]!.replace(/[=/ ]+$/, ""))
        .filter((one) => one !== "" && (!one.startsWith("--no-") || candidates.includes(one)));
      // Files of the folder may stand beside a catalogue's names.
      const files = candidates.includes("openai-community/gpt2")
        ? ["complete", "jobs", "rc", "zzz-file", "neurarch-gate", "."]
        : [];
      const told = [...new Set(got)].filter((one) => !files.some((file) => one.startsWith(file)));
      expect([shell, line, told.sort()]).toEqual([shell, line, [...new Set(candidates)].sort()]);
    });
  }
});

test("every command, flag and enumerated value of the tree is in each script", async () => {
  const { COMMANDS } = await import("../../src/cli/app.ts");
  for (const shell of ["bash", "zsh", "fish"]) {
    const text = await Bun.file(join(HOME, `complete.${shell}`)).text();
    for (const [name, load] of Object.entries(COMMANDS)) {
      const { command } = await load();
      for (const word of name.split(" ")) expect(text).toContain(word);
      for (const [flag, def] of Object.entries(command.args)) {
        if (def.type !== "positional") expect(text).toContain(shell === "fish" ? `-l ${flag}` : `--${flag}`);
        for (const value of def.type === "enum" ? (def.options ?? []) : []) expect(text).toContain(value);
      }
    }
  }
});

test("another shell is a usage error with the nearest", async () => {
  const { exit, err } = await run(["completion", "fsh"]);
  expect([exit, err]).toEqual([
    2,
    "neurarch-gate completion: there is no completion for `fsh`. Did you mean `fish`?\n",
  ]);
});
