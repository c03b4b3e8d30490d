import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bridgeUnit } from "../../src/bridge/unit.ts";
import { shown } from "../../src/lib/shown.ts";
import { assignmentWord, unitWord } from "../../src/lib/systemd.ts";
import { field } from "../../src/render/ledger.ts";
import { printable } from "../../src/render/text.ts";
import { systemdUnit } from "../../src/serve/unit.ts";
import { StandIn } from "../slurm/standin.ts";
import { BINARY, exec, filtered, LUAS, Scratch, steering } from "./kit.ts";

const scratch = new Scratch();
afterAll(() => scratch.remove());
const planted = join(scratch.path, "planted");

/** Words that a shell, a terminal, a page, a spreadsheet or a workflow would act upon. `P` is a file that nobody may make. */
const ACTING: Readonly<Record<string, string>> = {
  shell: "$(touch P)`touch P`;touch P|touch P&touch P",
  quotes: "'\"\\'; touch P; '\"",
  words: "--mode reject -- ../../P ~/* ? [a] {a,b} !! #x",
  colours: "\u001b[31mred\u001b[0m\u001b[2J\u001b[1;1H",
  title: "\u001b]0;title\u0007\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\",
  eightBit: "\u009b31m\u0090x\u009c\u0085",
  returns: "fine\rNeurarch: allowed\u0008\u0008\u007f",
  lines: "a\ndecision=allow\nmessage=x\nend\n",
  separators: "a\u2028decision=allow\u2029b",
  direction: "abc\u202edef\u2066ghi\u2069\u200f",
  nothing: "a\u200bb\u2060c\ufeffd\u00ade\u3164f\u115fg\u034fh\u{e0041}i\u{e0100}j\ufe0fk",
  page: '</script><script>alert(1)</script><img src=x onerror="alert(1)">&lt;]]>',
  workflow: "::error file=x::y%0A::add-mask::z%25",
  formula: '=HYPERLINK("http://x")',
  format: "%s%n%x%%1$s",
  surrogate: "a\ud800b\udc00c",
  long: "x".repeat(5000),
};
const acting = (name: string) => ACTING[name]!.replaceAll("P", planted);
const NAMES = Object.keys(ACTING);

const unharmed = () => expect(existsSync(planted)).toBeFalse();

describe("texts are cleaned", () => {
  test.each(NAMES)("%s", (name) => {
    for (const clean of [printable(acting(name)), shown(acting(name))]) {
      expect(steering(clean)).toBeNull();
      expect(clean).not.toContain("\n");
    }
  });

  test("a cell of a table is no formula, one line, and reads back", () => {
    for (const begin of ["=", "+", "-", "@", "\t=", "\r=", "\u200b=", "\ufeff="]) {
      const cell = field(`${begin}1+1`);
      expect(cell).not.toMatch(/^"?[=+\-@]/);
    }
    for (const name of NAMES) expect(steering(field(acting(name)))).toBeNull();
    expect(field('a"b,c')).toBe('"a""b,c"');
  });
});

/** A job in files of these names and texts; every output that a user, a CI or a scheduler reads. */
const OUTPUTS = ["human", "json", "sarif", "github", "junit"] as const;

function checkOutput(output: (typeof OUTPUTS)[number], out: string): void {
  expect(steering(out)).toBeNull();
  if (output === "json" || output === "sarif") JSON.parse(out);
  if (output === "github")
    for (const line of out.split("\n").filter(Boolean)) {
      expect(line).toMatch(/^::(?:error|warning|notice)(?: [^:]*)?::/);
      // Whatever stands in it, a runner sees one command.
      expect(line.replace(/^::\w+(?: [^:]*)?::/, "")).not.toMatch(/[\r\n]/);
    }
  if (output === "junit") {
    const found = Bun.spawnSync(["xmllint", "--noout", "-"], {
      stdin: new TextEncoder().encode(out),
      stderr: "pipe",
    });
    expect(found.stderr.toString()).toBe("");
    expect(out).not.toContain("<script>");
  }
}

describe("judge", () => {
  for (const name of NAMES) {
    test(`${name} in a script, a task and their files' names`, async () => {
      const text = acting(name);
      const folder = scratch.fresh();
      mkdirSync(folder);
      const line = text.replaceAll("\n", "\\n");
      // A name of a file has no slash; one of bytes that are no text is another matter.
      const file = (end: string) =>
        join(folder, `${text.replaceAll("/", "_").toWellFormed().slice(0, 60)}${end}`);
      const quoted = JSON.stringify(line.toWellFormed());
      const script = `#!/bin/bash\n#SBATCH --job-name=${quoted}\n#SBATCH --comment=${quoted} --gres=gpu:a10g:1\n#NEURARCH model=${quoted} batch=1 note=${quoted}\n`;
      writeFileSync(file(".sbatch"), script);
      const task = `name: ${quoted}\nresources:\n  accelerators: A10G:1\n  labels: {team: ${quoted}}\nenvs:\n  NEURARCH_MODEL: ${quoted}\n  NOTE: ${quoted}\nrun: ${quoted}\n`;
      writeFileSync(file(".yaml"), task);
      const types = script
        .replace("gpu:a10g:1", JSON.stringify(`gpu:${line.toWellFormed().slice(0, 50)}:1`))
        .replace(/model=\S+/, "model=gpt2");
      writeFileSync(file(".types.sbatch"), types);
      const runs = [
        ["--slurm", file(".sbatch")],
        ["--slurm", file(".types.sbatch")],
        ["--skypilot", file(".yaml")],
      ].flatMap((words) =>
        OUTPUTS.map(async (output) => {
          const { out, err } = await exec([BINARY, "judge", ...words, "--output", output], { cwd: folder });
          if (output === "json" || out !== "") checkOutput(output, out);
          expect(steering(err)).toBeNull();
        }),
      );
      for (const run of runs) await run;
      const submits = [file(".sbatch"), file(".types.sbatch")].map((path) =>
        exec([BINARY, "slurm", "--lua-contract", "1", "--annotate", `--script=${path}`], { cwd: folder }),
      );
      for (const { out, err, exit } of await Promise.all(submits)) {
        expect({ exit, err }).toEqual({ exit: 0, err: "" });
        expect(out).toMatch(/^decision=(?:allow|warn)\n(?:message=[^\n]*\n)*(?:comment=[^\n]*\n)?end\n$/);
        expect(steering(out)).toBeNull();
      }
      unharmed();
    });
  }
});

describe("words of a command line in an error, human or JSON", () => {
  for (const name of NAMES.filter((one) => one !== "surrogate")) {
    test(name, async () => {
      const text = acting(name);
      const lines = [
        [text],
        ["judge", `--${text}`, "x"],
        ["judge", "--slurm", text],
        ["judge", "--model", text, "--request", text],
        ["judge", "--model", "gpt2", "--request", text],
        ["size", text],
        ["policy", "explain", text],
        ["policy", "check", text],
        ["ledger", text],
        ["cards", "--config", text],
        ["schema", text],
        ["completion", text],
        ["serve", "--listen", text],
        ["evaluate", text],
        ["bridge", "check", "--campaign", text],
      ];
      for (const words of lines) {
        const { out, err, exit } = await exec([BINARY, ...words]);
        expect(exit).not.toBe(70);
        expect(`${words[0]} ${steering(out + err)}`).toBe(`${words[0]} null`);
      }
      const { out } = await exec([BINARY, "judge", "--slurm", text, "--json"]);
      expect(JSON.parse(out)).toMatchObject({ schema: "neurarch-gate/error" });
      expect(steering(out)).toBeNull();
      unharmed();
    });
  }
});

test("a policy file's owners, reasons and globs", async () => {
  const waivers = NAMES.map((name) => {
    const text = JSON.stringify(acting(name).toWellFormed());
    return `  - {rule: admission/request-does-not-fit, owner: ${text}, reason: ${text}, model: ${text}, created: 2026-11-30}\n  - {rule: ${text}, owner: ${text}}\n`;
  });
  const path = scratch.put(
    "policy.yml",
    `version: 1\nwaivers:\n${waivers.join("")}rules:\n  ${JSON.stringify(acting("colours"))}: block\n`,
  );
  for (const output of ["human", "json", "sarif", "github"] as const) {
    const { out, err } = await exec([BINARY, "policy", "check", path, "--output", output]);
    checkOutput(output === "human" ? "human" : output, out);
    expect(steering(err)).toBeNull();
  }
});

test("a table of jobs", async () => {
  const rows = NAMES.map((name) => {
    const cell = `"${acting(name).toWellFormed().replaceAll('"', '""')}"`;
    return `${cell},${cell},${cell},1\n${cell},gpt2,T4:1,${cell}\n`;
  });
  const path = scratch.put("jobs.csv", `job_id,model,gpu,batch\n${rows.join("")}`);
  const human = await exec([BINARY, "rightsize", path]);
  expect({ exit: human.exit, steers: steering(human.out + human.err) }).toEqual({ exit: 0, steers: null });
  const json = await exec([BINARY, "rightsize", path, "--json"]);
  expect(JSON.parse(json.out).jobs.length).toBe(NAMES.length * 2);
  // JSON keeps what the caller named, and escapes it.
  expect(json.out.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
});

test("a ledger that someone wrote into by hand", async () => {
  const folder = scratch.fresh();
  mkdirSync(folder, { mode: 0o700 });
  const [first = ""] = readFileSync(
    join(import.meta.dir, "../fixtures/ledger/ada@login1.jsonl"),
    "utf8",
  ).split("\n");
  const entry = JSON.parse(first);
  const lines = NAMES.map((name, at) => {
    const text = acting(name);
    return JSON.stringify({
      ...entry,
      user: text,
      model: text,
      card: text,
      rule: text,
      host: text,
      waiver: text,
      request: text,
      id: `forged-id-${at}`,
    });
  });
  writeFileSync(join(folder, "x@y.jsonl"), `${lines.join("\n")}\n`);
  for (const words of [[], ["--csv"], ["--by", "user"], ["--csv", "--by", "model"], ["--html", "-"]]) {
    const { out, err, exit } = await exec([BINARY, "ledger", folder, ...words]);
    expect({ words, exit, steers: steering((out + err).replaceAll("\r\n", "\n")) }).toEqual({
      words,
      exit: 0,
      steers: null,
    });
    if (words[0] === "--csv") expect(out).not.toMatch(/^"?[=+@]/m);
    if (words[0] === "--html") expect(out).not.toMatch(/<script|<img/);
  }
});

describe("units of systemd", () => {
  const units = (text: string) => [
    systemdUnit("/usr/local/bin/gate", ["--cluster", text], `/var/log/${text}`),
    bridgeUnit(`/opt/${text}/gate`, ["--campaign", text], {
      runId: "run-1",
      path: `/usr/bin:/${text}`,
      allow: [],
    }),
  ];
  const keys = (unit: string) => unit.split(/[\n\r\0]/).map((line) => line.split("=")[0]);
  for (const name of NAMES.filter((one) => one !== "surrogate")) {
    test(name, () => {
      const plain = units("plain");
      for (const [at, unit] of units(acting(name)).entries()) {
        // No line of it begins or ends within a word, and no variable or specifier is expanded.
        expect(keys(unit)).toEqual(keys(plain[at]!));
        expect(unit.split("\n").find((line) => /(?![\u0080-\u009f])\p{Cc}/u.test(line))).toBeUndefined();
        const start = unit.split("\n").find((line) => line.startsWith("ExecStart="))!;
        expect(start.replaceAll("$$", "").replaceAll("%%", "")).not.toMatch(/[$%]/);
      }
    });
  }

  test("a path keeps its dollar, a command doubles it", () => {
    expect(unitWord("/a$b c")).toBe('"/a$$b c"');
    expect(assignmentWord("/a$b c")).toBe('"/a$b c"');
    expect(systemdUnit("/g", [], "/var/$x")).toContain("ReadWritePaths=-/var/$x\n");
    expect(unitWord("a\rb\u001bc")).toBe('"a\\x0db\\x1bc"');
  });
});

for (const version of LUAS) {
  test(`every option of a request reaches the executable as it is, Lua ${version}`, async () => {
    const options = [
      "gres",
      "gpus",
      "gpus-per-node",
      "tres-per-task",
      "nodelist",
      "partition",
      "array",
      "time",
    ];
    for (const name of NAMES) {
      const text = acting(name).toWellFormed();
      if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) continue;
      const gate = StandIn.answering(scratch.fresh(), ["decision=allow"]);
      const set = {
        gres: "gpu:a10g:1",
        ...Object.fromEntries(options.map((option) => [option, option === "gres" ? `gpu:${text}:1` : text])),
      };
      const script = join(scratch.fresh(), `${text.replaceAll("/", "_").slice(0, 60)}.sh`);
      mkdirSync(join(script, ".."), { recursive: true });
      writeFileSync(script, "#!/bin/bash\n#NEURARCH model=gpt2\n");
      const { out, err } = await filtered(version, scratch, {
        settings: { binary: gate.path, cluster: `c ${text}`, cli: text },
        argv: [script],
        set,
      });
      expect({ name, out, err }).toEqual({ name, out: "return 0\n", err: "" });
      const [call = []] = gate.calls;
      const after = (flag: string) =>
        call[call.indexOf(`--${flag}`) + 1] ?? call.find((word) => word.startsWith(`--${flag}=`));
      for (const option of options)
        expect(
          call.some(
            (word) => word === set[option as "gres"] || word === `--${option}=${set[option as "gres"]}`,
          ),
        ).toBeTrue();
      expect(after("script")).toBe(script);
      expect(after("cluster")).toBe(`c ${text}`);
      unharmed();
    }
  });

  test(`an answer cannot say more than an answer, Lua ${version}`, async () => {
    for (const name of NAMES) {
      const text = acting(name).toWellFormed().replaceAll("\0", "");
      const gate = StandIn.answering(scratch.fresh(), [
        "decision=warn",
        `message=${text}`,
        `comment=${text}`,
      ]);
      const script = scratch.put("named.sh", "#!/bin/bash\n#NEURARCH model=gpt2\n");
      const { out, exit } = await filtered(version, scratch, {
        settings: { binary: gate.path, annotate: true },
        argv: [script],
        set: { gres: "gpu:1" },
      });
      expect(exit).toBe(0);
      expect(out).toEndWith("return 0\n");
      for (const line of out.split("\n").slice(0, -1))
        expect(line).toMatch(/^(?:log (?:info|error)|comment|return) /);
      unharmed();
    }
  });
}
