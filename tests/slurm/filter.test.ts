import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type LuaSettings, luaWithSettings } from "../../src/slurm/lua.ts";
import { HELD_UP_MS, StandIn } from "./standin.ts";

const FILTER = readFileSync(resolve(import.meta.dir, "../../lua/cli_filter.lua"), "utf8");
const STUB = resolve(import.meta.dir, "stub.lua");
const VERSIONS = ["5.1", "5.2", "5.3", "5.4"].filter(
  (version) => process.env.CI !== undefined || Bun.which(`lua${version}`) !== null,
);
const scratch = mkdtempSync(join(tmpdir(), "gate-lua-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let made = 0;
const fresh = () => join(scratch, String(made++));

const job = join(scratch, "job.sh");
writeFileSync(job, "#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\n\n#NEURARCH model=a/b\ntrain\n");
const plain = join(scratch, "plain.sh");
writeFileSync(plain, "#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\ntrain\n#NEURARCH model=a/b\n");

interface Outcome {
  readonly lines: string[];
  readonly stderr: string;
}

/** Runs a scenario (Lua) against the filter under one Lua version. */
function run(
  version: string,
  scenario: string,
  settings: LuaSettings,
  env: Record<string, string> = {},
  shell: readonly string[] = [],
): Outcome {
  const folder = fresh();
  const files = { filter: `${folder}.filter.lua`, scenario: `${folder}.scenario.lua` };
  writeFileSync(files.filter, luaWithSettings(FILTER, settings));
  writeFileSync(files.scenario, scenario);
  const child = Bun.spawnSync([`lua${version}`, STUB, files.filter, files.scenario, ...shell], {
    env: { PATH: process.env.PATH ?? "", HOME: scratch, ...env },
    stdin: "ignore",
    timeout: 20_000,
  });
  const stderr = child.stderr.toString();
  return {
    lines: child.stdout
      .toString()
      .split("\n")
      .filter((line) => line !== ""),
    stderr,
  };
}

/** A Lua literal of a value; byte strings are written in decimal escapes. */
function lua(value: unknown): string {
  if (typeof value === "string")
    return `"${[...Buffer.from(value)].map((byte) => `\\${String(byte).padStart(3, "0")}`).join("")}"`;
  if (Array.isArray(value)) return `{${value.map(lua).join(",")}}`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([key, item]) => `[${lua(key)}]=${lua(item)}`)
      .join(",")}}`;
  return String(value);
}

/** Options as sbatch of 22.05 shows them: unset ones have its own words for that, and the JSON has only the set ones. */
const UNSET_2205: Record<string, string> = {
  "ntasks-per-gpu": "-2",
  "ntasks-per-node": "-2",
  "sockets-per-node": "-2",
  ntasks: "1",
  nodes: "1-0",
  time: "2982616-04:14:00",
  exclusive: "unset",
  hold: "unset",
};

interface Submit {
  readonly type?: string;
  readonly argv?: readonly string[];
  /** Options that the user gave. */
  readonly set?: Record<string, string>;
  readonly json?: boolean;
  readonly offset?: number;
}

function submitting({ type = "sbatch", argv = [job], set = {}, json = true, offset = 0 }: Submit): string {
  const values = { ...UNSET_2205, ...(type === "srun" ? { jobid: "unset" } : {}), ...set, argv, type };
  const slurm = json
    ? `slurm.json_cli_options = function() return json_of(${lua(set)}, ${lua(argv)}) end\n`
    : "";
  return `${slurm}submit(proxy(${lua(values)}), ${offset})\n`;
}

const wordAfter = (call: readonly string[] | undefined, flag: string) => {
  const at = call?.indexOf(flag) ?? -1;
  return at === -1 ? undefined : call?.[at + 1];
};

test("every Lua that Slurm links is tried", () => {
  if (process.env.CI !== undefined) expect(VERSIONS.filter((v) => Bun.which(`lua${v}`) === null)).toEqual([]);
  expect(VERSIONS.length).toBeGreaterThan(0);
});

for (const version of VERSIONS) {
  describe(`Lua ${version}`, () => {
    const allow = () => StandIn.answering(fresh(), ["decision=allow"]);
    const once = (submit: Submit, gate: StandIn, settings: LuaSettings = {}, env?: Record<string, string>) =>
      run(version, submitting(submit), { binary: gate.path, ...settings }, env);

    describe("whether the binary runs", () => {
      const CASES: readonly (readonly [string, Submit, boolean, Record<string, string>?])[] = [
        ["gres, 22.05's form", { set: { gres: "gres:gpu:a10g:1" } }, true],
        ["gres, 23.11's form", { set: { gres: "gres/gpu:a10g:1" } }, true],
        ["gres as typed", { set: { gres: "gpu:a100:4(S:0,2)" } }, true],
        ["gpu behind others", { set: { gres: "gres:tmpfs:100G,gres:gpu:2" } }, true],
        ["shard", { set: { gres: "gres:shard:2" } }, true],
        ["mps", { set: { gres: "gres/mps:50" } }, true],
        ["no GPU in gres", { set: { gres: "gres:tmpfs:100G,gres:lscratch:gpu" } }, false],
        ["gres=none", { set: { gres: "none" } }, false],
        ["gpus", { set: { gpus: "a10g:2,h100:1" } }, true],
        ["gpus=0", { set: { gpus: "0" } }, false],
        ["gpus-per-node", { set: { "gpus-per-node": "h100:4" } }, true],
        ["gpus-per-socket", { set: { "gpus-per-socket": "a10g:1" } }, true],
        ["gpus-per-task", { set: { "gpus-per-task": "2", ntasks: "3" } }, true],
        ["tres-per-task", { set: { "tres-per-task": "cpu=2,gres/gpu=1" } }, true],
        ["tres-per-task without GPU", { set: { "tres-per-task": "cpu=2" } }, false],
        ["ntasks-per-gpu", { set: { "ntasks-per-gpu": "2", ntasks: "4" } }, true],
        ["nothing asked", {}, false],
        ["nothing asked, model in the environment", { argv: [] }, false, { NEURARCH_MODEL: "a/b" }],
        ["no model named", { argv: [plain], set: { gres: "gres:gpu:1" } }, false],
        [
          "model in the environment",
          { argv: [plain], set: { gres: "gres:gpu:1" } },
          true,
          { NEURARCH_MODEL: "a/b" },
        ],
        [
          "empty model in the environment",
          { argv: [plain], set: { gres: "gres:gpu:1" } },
          false,
          { NEURARCH_MODEL: "" },
        ],
        ["wrap", { argv: [], set: { gres: "gres:gpu:1", wrap: "train" } }, false],
        [
          "srun does not read its arguments",
          { type: "srun", argv: ["cat", job], set: { gres: "gres:gpu:1" } },
          false,
        ],
        ["srun's command is no script", { type: "srun", argv: [job], set: { gres: "gres:gpu:1" } }, false],
        [
          "salloc's command is no script",
          { type: "salloc", argv: [job], set: { gres: "gres:gpu:1" } },
          false,
        ],
        [
          "srun with a model",
          { type: "srun", argv: ["train"], set: { gres: "gres:gpu:1" } },
          true,
          { NEURARCH_MODEL: "a/b" },
        ],
        [
          "a step",
          { type: "srun", argv: ["train"], set: { gres: "gres:gpu:1", jobid: "17" } },
          false,
          { NEURARCH_MODEL: "a/b" },
        ],
        ["a nested sbatch", { set: { gres: "gres:gpu:1" } }, true, { SLURM_JOB_ID: "17" }],
        [
          "scrontab",
          { type: "scrontab", argv: [], set: { gres: "gres:gpu:1" } },
          false,
          { NEURARCH_MODEL: "a/b" },
        ],
        ["without Slurm's JSON", { set: { gres: "gres:gpu:1" }, json: false }, true],
      ];
      for (const [name, submit, runs, env] of CASES) {
        test(name, () => {
          const gate = allow();
          const { lines, stderr } = once(submit, gate, {}, env);
          expect({ runs: gate.calls.length > 0, lines, stderr }).toEqual({
            runs,
            lines: ["return 0"],
            stderr: "",
          });
        });
      }
    });

    describe("a GPU job that was not looked at", () => {
      const GONE =
        "log info Neurarch: this GPU job was not checked: its script can be read only once (it came by a pipe), and NEURARCH_MODEL is not set.";
      const CONTROL =
        "log info Neurarch: this GPU job was not checked: its script's path holds a control character, and NEURARCH_MODEL is not set.";
      const UNNAMED =
        "log info Neurarch: this GPU job was not checked: it names no model (#NEURARCH model=ID in the script, or NEURARCH_MODEL).";
      const gres = { gres: "gres:gpu:1" };
      const CASES: readonly (readonly [string, Submit, LuaSettings, readonly string[]])[] = [
        ["a script that is gone", { argv: ["/nowhere/job.sh"], set: gres }, {}, [GONE]],
        ["a name of two lines", { argv: ["/nowhere/a\nb.sh"], set: gres }, {}, [CONTROL]],
        ["a folder", { argv: [scratch], set: gres }, {}, [GONE]],
        ["a device", { argv: ["/dev/null"], set: gres }, {}, [GONE]],
        ["never told", { argv: ["/nowhere/job.sh"], set: gres }, { notice: "never" }, []],
        ["no model named", { argv: [plain], set: gres }, {}, []],
        ["no model named, told", { argv: [plain], set: gres }, { notice: "always" }, [UNNAMED]],
        ["srun without a model", { type: "srun", argv: ["train"], set: gres }, {}, []],
        ["srun, told", { type: "srun", argv: ["train"], set: gres }, { notice: "always" }, [UNNAMED]],
        ["a wrap, told", { argv: [], set: { ...gres, wrap: "train" } }, { notice: "always" }, [UNNAMED]],
        ["no GPU", { argv: ["/nowhere/job.sh"] }, { notice: "always" }, []],
        ["a step", { type: "srun", argv: ["x"], set: { ...gres, jobid: "17" } }, { notice: "always" }, []],
      ];
      for (const [name, submit, settings, told] of CASES) {
        test(name, () => {
          const gate = allow();
          expect(once(submit, gate, settings).lines).toEqual([...told, "return 0"]);
          expect(gate.calls).toEqual([]);
        });
      }
      test("is told once for all components", () => {
        const text = [0, 1, 2]
          .map((offset) => submitting({ argv: ["/nowhere/job.sh"], set: gres, offset }))
          .join("");
        expect(run(version, text, {}).lines).toEqual([GONE, "return 0", "return 0", "return 0"]);
      });
    });

    describe("the script's header", () => {
      const CASES: readonly (readonly [string, string, boolean])[] = [
        [
          "blank lines and comments before it",
          "#!/bin/sh\n\n  # note\n#SBATCH -N1\n\t\n#NEURARCH model=a\n",
          true,
        ],
        ["line ends of DOS", "#!/bin/sh\r\n\r\n#NEURARCH model=a\r\necho\r\n", true],
        ["no newline at the end", "#!/bin/sh\n#NEURARCH model=a", true],
        ["after the first command", "#!/bin/sh\nmodule load cuda\n#NEURARCH model=a\n", false],
        ["inside a here-document", "#!/bin/sh\ncat <<X\n#NEURARCH model=a\nX\n", false],
        ["commented out", "#!/bin/sh\n##NEURARCH model=a\n# NEURARCH model=a\n", false],
        ["blanks before it", "#!/bin/sh\n  #NEURARCH model=a\n", false],
        [
          "far down a long header",
          `#!/bin/sh\n${"# padding padding padding\n".repeat(9000)}#NEURARCH model=a\n`,
          true,
        ],
        ["on the border of two reads", `#!/bin/sh\n#${"x".repeat(65536 - 15)}\n#NEURARCH model=a\n`, true],
        ["a program instead of a script", `\x7fELF${"\0\n#NEURARCH x".repeat(10)}`, false],
        ["nothing", "", false],
      ];
      for (const [name, text, runs] of CASES) {
        test(name, () => {
          const path = `${fresh()}.sh`;
          writeFileSync(path, text);
          const gate = allow();
          const { lines } = once({ argv: [path], set: { gres: "gres:gpu:1" } }, gate);
          expect({ runs: gate.calls.length > 0, lines }).toEqual({ runs, lines: ["return 0"] });
        });
      }
    });

    describe("what the binary is told", () => {
      test("the request as given, the script, the cluster; nothing that Slurm fills in", () => {
        const gate = allow();
        once(
          { set: { gres: "gres:gpu:a10g:1", nodes: "2-4", comment: 'x","nodes":"9', "job-name": "j" } },
          gate,
        );
        expect(gate.calls).toEqual([
          // biome-ignore format: a command line reads as one
          ["slurm", "--lua-contract", "1", "--timeout", "4", "--cluster", "stubland", "--gres", "gres:gpu:a10g:1", "--nodes", "2-4", "--script", job],
        ]);
      });

      test("every option of a request", () => {
        const set = {
          gres: "gres:gpu:a10g:1",
          gpus: "8",
          "gpus-per-node": "a10g:2",
          "gpus-per-socket": "1",
          "gpus-per-task": "1",
          "tres-per-task": "gres/gpu:a10g:1",
          ntasks: "1",
          "ntasks-per-node": "4",
          "ntasks-per-gpu": "2",
          "sockets-per-node": "2",
          nodes: "1",
          time: "1-02:04:00",
          partition: "gpu",
          array: "0-9%2",
        };
        const gate = allow();
        once({ set: { ...set, exclusive: "exclusive" } }, gate);
        for (const [name, value] of Object.entries(set))
          expect([name, wordAfter(gate.calls[0], `--${name}`)]).toEqual([name, value]);
        expect(gate.calls[0]).toContain("--exclusive=exclusive");
      });

      test("without Slurm's JSON, the words for unset are left out", () => {
        const gate = allow();
        once({ set: { gres: "gres:gpu:1", partition: "gpu", exclusive: "user" }, json: false }, gate);
        // biome-ignore format: a command line reads as one
        expect(gate.calls[0]).toEqual(["slurm", "--lua-contract", "1", "--timeout", "4", "--cluster", "stubland", "--gres", "gres:gpu:1", "--partition", "gpu", "--exclusive=user", "--script", job]);
      });

      test("the cluster's name in the site's settings goes before Slurm's", () => {
        const gate = allow();
        once({ set: { gres: "gres:gpu:1", clusters: "other" } }, gate, { cluster: "gpu-dev" });
        expect(wordAfter(gate.calls[0], "--cluster")).toBe("gpu-dev");
      });

      test("the cluster asked for with -M", () => {
        const gate = allow();
        once({ set: { gres: "gres:gpu:1", clusters: "other" } }, gate);
        expect(wordAfter(gate.calls[0], "--cluster")).toBe("other");
      });

      test("the settings, as flags", () => {
        const gate = allow();
        const settings = {
          mode: "reject",
          config: "/etc/x y/gate.toml",
          gpu_map: "/etc/map.json",
          default_gpu_type: "a100",
          partition_map: "/etc/parts.json",
          cards: "/etc/cards.json",
          prices: "/etc/prices.json",
          max_cost_usd: 250.5,
          headroom: 1.2,
          sizing: "builtin",
          cli: "node '/opt/it''s here/cli.mjs' $HOME `id`",
          policy_file: "/etc/neurarch/policy.yml",
          repo_policy: "tighten-only",
          ledger: "/var/log/neurarch",
        };
        once({ set: { gres: "gres:gpu:1" } }, gate, {
          ...settings,
          hours_from_time: true,
          annotate: true,
          fail_closed: true,
          timeout_s: 30,
        });
        const [call] = gate.calls;
        for (const [name, value] of Object.entries(settings))
          expect([name, wordAfter(call, `--${name.replaceAll("_", "-")}`)]).toEqual([name, String(value)]);
        expect(call).toContain("--hours-from-time");
        expect(call).toContain("--annotate");
        expect(call).toContain("--fail-closed");
        expect(wordAfter(call, "--timeout")).toBe("29");
      });

      const NASTY = [
        "a b",
        "it's",
        "$(touch X)",
        "`touch X`",
        ";touch X",
        "x'; touch X; '",
        '"',
        "\\",
        "-rf",
        "*",
        "%s",
        "é",
      ];
      for (const name of NASTY) {
        test(`a script called ${name}`, () => {
          const path = join(scratch, `${version} ${name}.sh`);
          writeFileSync(path, "#!/bin/sh\n#NEURARCH model=a\n");
          const gate = allow();
          once({ argv: [path], set: { gres: "gres:gpu:1", partition: name } }, gate);
          expect(wordAfter(gate.calls[0], "--script")).toBe(path);
          const partition =
            wordAfter(gate.calls[0], "--partition") ??
            gate.calls[0]?.find((w) => w.startsWith("--partition="))?.slice(12);
          expect(partition).toBe(name);
          expect(gate.calls.length).toBe(1);
        });
      }

      test("an option with a line break is not passed on, and the job is submitted", () => {
        const gate = allow();
        const { lines } = once({ set: { gres: "gres:gpu:1", partition: "a\nb" } }, gate);
        expect(gate.calls).toEqual([]);
        expect(lines).toEqual([
          "log info Neurarch: this job was not judged: partition has a value that cannot be passed on. Submitted unchecked.",
          "return 0",
        ]);
      });

      test("a clean environment, with no value of it on a command line", () => {
        const gate = new StandIn(
          fresh(),
          "cat /proc/$PPID/cmdline | tr '\\0' ' ' >$0.parent; printf 'decision=allow\\nend\\n'",
        );
        const hostile = {
          BUN_OPTIONS: "--preload ./x",
          BUN_BE_BUN: "1",
          BUN_SOMETHING_NEW: "1",
          JSC_useJIT: "0",
          LD_DEBUG_OUTPUT: "./x",
          MIMALLOC_LIMIT_OS_ALLOC: "1",
          mimalloc_verbose: "1",
          NODE_OPTIONS: "--require ./x",
          LD_LIBRARY_PATH: "/nowhere",
        };
        once(
          { set: { gres: "gres:gpu:1" } },
          gate,
          {},
          { ...hostile, HF_TOKEN: "hf_secret", NEURARCH_BATCH: "4" },
        );
        for (const name of Object.keys(hostile)) expect(gate.env).not.toContainKey(name);
        expect(gate.env.HF_TOKEN).toBe("hf_secret");
        expect(gate.env.NEURARCH_BATCH).toBe("4");
        expect(gate.env.BUN_JSC_useJIT).toBe("0");
        const parent = readFileSync(`${gate.path}.parent`, "utf8");
        expect(parent).toContain("timeout");
        expect(parent).not.toContain("hf_secret");
      });
    });

    describe("the answer", () => {
      const CASES: readonly (readonly [string, string[], LuaSettings, string[]])[] = [
        ["allow", ["decision=allow"], {}, ["return 0"]],
        [
          "allow with a line",
          ["decision=allow", "message=Neurarch: m"],
          {},
          ["log info Neurarch: m", "return 0"],
        ],
        ["warn", ["decision=warn", "message=Neurarch: m"], {}, ["log info Neurarch: m", "return 0"]],
        [
          "warn with two",
          ["decision=warn", "message=a", "message=b"],
          {},
          ["log info a", "log info b", "return 0"],
        ],
        [
          "reject",
          ["decision=reject", "message=Neurarch: m"],
          { mode: "reject" },
          ["log error Neurarch: m", "return -1"],
        ],
        ["reject by the site file", ["decision=reject", "message=m"], {}, ["log error m", "return -1"]],
        [
          "never a refusal in warn mode",
          ["decision=reject", "message=m"],
          { mode: "warn" },
          ["log info m", "return 0"],
        ],
        [
          "percent signs",
          ["decision=warn", "message=97% of %s %d"],
          {},
          ["log info 97% of %s %d", "return 0"],
        ],
        [
          "control characters",
          ["decision=warn", "message=a\tb\x1b[31mc\r"],
          {},
          ["log info a b [31mc ", "return 0"],
        ],
        [
          "a key from the future",
          ["decision=warn", "colour=red", "message=m"],
          {},
          ["log info m", "return 0"],
        ],
        [
          "a comment",
          ["decision=allow", "comment=neurarch:allow"],
          {},
          ["comment neurarch:allow", "return 0"],
        ],
        [
          "a comment, switched off",
          ["decision=allow", "comment=neurarch:allow"],
          { annotate: false },
          ["return 0"],
        ],
        ["no comment on a refusal", ["decision=reject", "comment=c"], { mode: "reject" }, ["return -1"]],
      ];
      for (const [name, answer, settings, lines] of CASES) {
        test(name, () => {
          const gate = StandIn.answering(fresh(), answer);
          const outcome = once({ set: { gres: "gres:gpu:1" } }, gate, settings);
          expect(outcome).toEqual({ lines, stderr: "" });
        });
      }
    });

    describe("no answer", () => {
      const CASES: readonly (readonly [string, string, string])[] = [
        ["silence", "exit 0", "gave no verdict (exit 0)"],
        ["a crash", "kill -SEGV $$", "gave no verdict (exit 139)"],
        ["a crash half way", "printf 'decision=reject\\nmessage=m\\n'; exit 70", "gave no verdict (exit 70)"],
        ["no decision", "printf 'message=m\\nend\\n'", "gave no verdict (exit 0)"],
        ["an unknown decision", "printf 'decision=perhaps\\nend\\n'", "gave no verdict (exit 0)"],
        ["garbage", "head -c 300000 /dev/urandom", "gave no verdict"],
        ["endless output", "yes reject", "gave no verdict"],
        ["endless zeros", "cat /dev/zero", "gave no verdict"],
        ["too slow", "sleep 30; printf 'decision=reject\\nend\\n'", "gave no verdict within 0.3 s"],
        ["slow and deaf", "trap '' TERM; sleep 30 & wait; sleep 30", "gave no verdict"],
      ];
      for (const [name, body, why] of CASES) {
        test(name, () => {
          const gate = new StandIn(fresh(), body);
          const started = performance.now();
          const { lines, stderr } = once({ set: { gres: "gres:gpu:1" } }, gate, {
            mode: "reject",
            timeout_s: 0.3,
          });
          expect(performance.now() - started).toBeLessThan(HELD_UP_MS);
          expect(stderr).toBe("");
          expect(lines.length).toBe(2);
          expect(lines[0]).toStartWith(`log info Neurarch: this job was not judged: ${gate.path} ${why}`);
          expect(lines[0]).toEndWith(". Submitted unchecked.");
          expect(lines[1]).toBe("return 0");
        });
      }

      test("a binary that is not there", () => {
        const { lines } = run(version, submitting({ set: { gres: "gres:gpu:1" } }), {
          binary: "/nowhere/gate",
        });
        expect(lines).toEqual([
          "log info Neurarch: this job was not judged: /nowhere/gate cannot be run on this host. Submitted unchecked.",
          "return 0",
        ]);
      });

      test("a complete answer counts although a process it left holds the pipe", () => {
        const gate = new StandIn(fresh(), "setsid sleep 20 & printf 'decision=warn\\nmessage=m\\nend\\n'");
        const started = performance.now();
        const { lines } = once({ set: { gres: "gres:gpu:1" } }, gate);
        expect(lines).toEqual(["log info m", "return 0"]);
        expect(performance.now() - started).toBeLessThan(HELD_UP_MS);
      });

      test("fail_closed refuses", () => {
        const gate = new StandIn(fresh(), "exit 3");
        const { lines } = once({ set: { gres: "gres:gpu:1" } }, gate, { fail_closed: true });
        expect(lines).toEqual([
          `log error Neurarch: this job could not be judged: ${gate.path} gave no verdict (exit 3). Refused, as this site asks (fail_closed).`,
          "return -1",
        ]);
      });
    });

    describe("the job's comment", () => {
      const note = "neurarch:warn need=297.9GB on a10g:1";
      const commentOf = (own: string) => {
        const gate = StandIn.answering(fresh(), ["decision=allow", `comment=${note}`]);
        const { lines } = once({ set: { gres: "gres:gpu:1", comment: own } }, gate);
        return lines.find((line) => line.startsWith("comment "))?.slice(8);
      };
      test("follows the user's own", () => expect(commentOf("project x")).toBe(`project x ${note}`));
      test("fills up to 1024 bytes", () =>
        expect(commentOf("c".repeat(1023 - note.length))).toBe(`${"c".repeat(1023 - note.length)} ${note}`));
      test("is cut there", () =>
        expect(commentOf("c".repeat(1010))).toBe(`${"c".repeat(1010)} ${note.slice(0, 13)}`));
      test("leaves a full one alone", () => expect(commentOf("c".repeat(1024))).toBeUndefined());
      test("leaves an over-long one alone", () => expect(commentOf("c".repeat(2000))).toBeUndefined());

      test("is given once to each component, although a component inherits", () => {
        const gate = new StandIn(fresh(), 'printf "decision=allow\\ncomment=n$(wc -l <"$0.calls")\\nend\\n"');
        const component = (offset: number, gres: string, own = "carried") => `
          values = { type = "sbatch", argv = { ${lua(job)} }, gres = ${lua(gres)}, comment = ${own} }
          slurm.json_cli_options = function() return json_of({ gres = values.gres }, values.argv) end
          submit(proxy(values), ${offset})
          carried = values.comment
        `;
        const text = [
          'carried = "mine"',
          component(0, "gres:gpu:1"),
          component(1, "gres:gpu:2"),
          component(2, "none"),
          component(3, "gres:gpu:1", '"other"'),
        ].join("\n");
        const { lines } = run(version, text, { binary: gate.path });
        expect(lines.filter((line) => line.startsWith("comment"))).toEqual([
          "comment mine n1",
          "comment mine", // what was inherited is put back first
          "comment mine n2",
          "comment mine",
          "comment other n3",
        ]);
      });
    });

    describe("nothing stops a submit", () => {
      test("options that raise", () => {
        const text = `submit(setmetatable({}, { __index = function() error("boom") end }))`;
        const { lines } = run(version, text, { binary: "/nowhere" });
        expect(lines.at(-1)).toBe("return 0");
        expect(lines[0]).toMatch(/^log info Neurarch: this job was not judged: the filter failed \(.*boom\)/);
      });
      test("options that are no table", () => {
        expect(run(version, "submit(nil)", {}).lines.at(-1)).toBe("return 0");
      });
      test("a setting of the wrong kind", () => {
        const text = `neurarch.gpu_map = {}\n${submitting({ set: { gres: "gres:gpu:1" } })}`;
        expect(run(version, text, {}).lines).toEqual([
          "log info Neurarch: this job was not judged: gpu-map has a value that cannot be passed on. Submitted unchecked.",
          "return 0",
        ]);
      });
      test("a Slurm without the log functions", () => {
        const text = `slurm = { SUCCESS = 0, ERROR = -1 }\n${submitting({ set: { gres: "gres:gpu:1" } })}`;
        const { lines, stderr } = run(version, text, { binary: "/nowhere" });
        expect(lines).toEqual(["return 0"]);
        expect(stderr).toContain("cannot be run on this host");
      });
      test("JSON that is broken", () => {
        for (const json of ['"{"', '"[]"', '"null"', '"{\\"gres\\":\\"x"', "nil", "7", "error()"]) {
          const gate = allow();
          const text = `${submitting({ set: { gres: "gres:gpu:1" } }).replace(/return json_of.*end/, `return ${json} end`)}`;
          expect(run(version, text, { binary: gate.path }).lines).toEqual(["return 0"]);
          expect(wordAfter(gate.calls[0], "--gres")).toBe("gres:gpu:1");
        }
      });
      test("the three functions and neurarch are there after a bare load", () => {
        const text = `
          print(type(neurarch.pre_submit), type(slurm_cli_setup_defaults), type(slurm_cli_pre_submit), type(slurm_cli_post_submit))
          print(slurm_cli_setup_defaults({}, false), slurm_cli_post_submit(0, 1, 2))`;
        expect(run(version, text, {}).lines).toEqual(["function\tfunction\tfunction\tfunction", "0\t0"]);
      });
      test("beside a filter of the site's own", () => {
        const gate = StandIn.answering(fresh(), ["decision=reject", "message=m"]);
        const text = `
          function slurm_cli_pre_submit(options, offset)
            if options.partition == "forbidden" then return slurm.ERROR end
            return neurarch.pre_submit(options, offset)
          end
          neurarch.mode = "reject"
          ${submitting({ set: { gres: "gres:gpu:1" } })}`;
        expect(run(version, text, { binary: gate.path }).lines).toEqual(["log error m", "return -1"]);
      });
      test("debug tells why a job was not judged", () => {
        expect(run(version, submitting({}), { debug: true }).lines).toEqual([
          "log info Neurarch: not judged: no GPU is asked for with --gres, --gpus* or a TRES option",
          "return 0",
        ]);
        const { lines } = run(version, submitting({ argv: [plain], set: { gres: "gpu:1" } }), {
          debug: true,
        });
        expect(lines[0]).toBe(
          "log info Neurarch: not judged: no model is named, neither by #NEURARCH in the script nor by NEURARCH_MODEL",
        );
      });
      test("debug shows what the binary says on stderr", () => {
        const gate = new StandIn(fresh(), "echo trouble >&2; printf 'decision=allow\\nend\\n'");
        expect(once({ set: { gres: "gpu:1" } }, gate, { debug: true }).stderr).toBe("trouble\n");
        expect(once({ set: { gres: "gpu:1" } }, gate).stderr).toBe("");
      });
    });
  });
}

describe("where /bin/sh is bash", () => {
  const version = VERSIONS[0] ?? "5.1";
  const CASES: readonly (readonly [string, string, string[]])[] = [
    ["an answer", "printf 'decision=warn\\nmessage=m\\nend\\n'", ["log info m", "return 0"]],
    ["a crash", "kill -SEGV $$", ["gave no verdict (exit 139)", "return 0"]],
    ["too slow", "sleep 30", ["gave no verdict within 0.3 s", "return 0"]],
    ["slow and deaf", "trap '' TERM; sleep 30 & wait; sleep 30", ["gave no verdict", "return 0"]],
    ["a child left behind", "setsid sleep 20 & printf 'decision=allow\\nend\\n'", ["return 0"]],
  ];
  for (const [name, body, expected] of CASES) {
    test(name, () => {
      const gate = new StandIn(fresh(), body);
      const path = `${fresh()} it's.sh`;
      writeFileSync(path, "#!/bin/sh\n#NEURARCH model=a\n");
      const scenario = submitting({ argv: [path], set: { gres: "gres:gpu:1", partition: "$(touch x)" } });
      const settings = { binary: gate.path, timeout_s: 0.3 };
      const { lines, stderr } = run(version, scenario, settings, { BUN_BE_BUN: "1" }, ["bash --posix -c"]);
      expect(stderr).toBe("");
      expect(lines).toEqual(expected.map((text) => expect.stringContaining(text)));
      expect(wordAfter(gate.calls[0], "--script")).toBe(path);
      expect(wordAfter(gate.calls[0], "--partition")).toBe("$(touch x)");
      expect(gate.env).not.toContainKey("BUN_BE_BUN");
    });
  }

  // Such a bash takes over what users export: functions, and the options of SHELLOPTS. Given in its own command line,
  // as the sh before it would drop such names.
  const folder = fresh();
  const bashAsSh = join(folder, "sh");
  mkdirSync(folder);
  symlinkSync(Bun.which("bash") ?? "/bin/bash", bashAsSh);
  const answers = (variable: string) => {
    const gate = new StandIn(fresh(), "printf 'decision=warn\\nmessage=m\\nend\\n'");
    const started = performance.now();
    const scenario = submitting({ set: { gres: "gres:gpu:1" } });
    const told = run(version, scenario, { binary: gate.path, timeout_s: 3 }, {}, [
      `env '${variable}' ${bashAsSh} -c`,
    ]);
    expect(told).toEqual({ lines: ["log info m", "return 0"], stderr: "" });
    expect(performance.now() - started).toBeLessThan(2000);
  };
  for (const name of ["timeout", "[", "printf", "ulimit", "echo", "command", "unset", "set", "export"])
    test(`a user's function ${name} is not ours`, () => answers(`BASH_FUNC_${name}%%=() {  sleep 3\n}`));
  for (const option of ["xtrace", "errexit", "nounset", "noglob"])
    test(`a user's shell option ${option} changes nothing`, () => answers(`SHELLOPTS=${option}`));
});
