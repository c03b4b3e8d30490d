import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { SITE_FLAGS } from "../../src/cli/flags.ts";
import { LUA_SETTINGS, type LuaSettings } from "../../src/slurm/lua.ts";
import { Cluster, type Submitted, slurmIsHere, slurmVersion } from "./cluster.ts";
import { HELD_UP_MS, StandIn } from "./standin.ts";

const ROOT = resolve(import.meta.dir, "../..");
const BINARY = join(ROOT, "dist/neurarch-gate");
const EXAMPLE = join(ROOT, "examples/finetune-qwen3-8b.sbatch");
const CI = process.env.CI !== undefined;

const HEADER = "#!/bin/bash\n";
const DIRECTIVE = "#NEURARCH model=Qwen/Qwen3-8B batch=8 seq-len=2048\n";
/** How the options table shows a `--gres`, by version. */
const PREFIX = slurmVersion() < "23.11" ? "gres:" : "gres/";
const JOB_ID = /^\d+\n$/;
const GONE =
  "sbatch: lua: Neurarch: this GPU job was not checked: its script can be read only once (it came by a pipe), and NEURARCH_MODEL is not set.\n";

// Under CI these run and fail where something is missing; elsewhere they are left out.
describe.skipIf(!CI && !slurmIsHere)("under a real Slurm", () => {
  let slurm: Cluster;
  let scripts: string;
  let script: string;

  beforeAll(() => {
    slurm = Cluster.start();
    scripts = join(slurm.home, "scripts");
    mkdirSync(scripts);
    script = write("job.sh", `${HEADER}#SBATCH --gres=gpu:a10g:1\n${DIRECTIVE}train\n`);
  }, 60_000);
  afterAll(() => slurm?.stop(), 60_000);

  function write(name: string, text: string): string {
    const path = join(scripts, name);
    writeFileSync(path, text);
    return path;
  }

  /** Puts a stand-in with this answer in the binary's place. */
  function answering(lines: readonly string[], settings = {}): StandIn {
    const gate = StandIn.answering(join(slurm.home, "gates"), lines);
    gate.forget();
    slurm.install({ binary: gate.path, ...settings });
    return gate;
  }
  function behaving(body: string, settings = {}): StandIn {
    const gate = new StandIn(join(slurm.home, "gates"), body);
    gate.forget();
    slurm.install({ binary: gate.path, ...settings });
    return gate;
  }

  const queuedSilently = ({ exit, out, err }: Submitted) =>
    expect({ exit, out, err }).toEqual({ exit: 0, out: expect.stringMatching(JOB_ID), err: "" });

  describe("with a stand-in", () => {
    test("a warning is shown and the job is queued; stdout is the job's id only", () => {
      answering(["decision=warn", "message=Neurarch: 97% too small. Submitted anyway."]);
      const { exit, out, err } = slurm.sbatch([script]);
      expect({ exit, err }).toEqual({
        exit: 0,
        err: "sbatch: lua: Neurarch: 97% too small. Submitted anyway.\n",
      });
      expect(out).toMatch(JOB_ID);
      expect(slurm.field(out, "JobState")[0]).toStartWith("PENDING ");
    });

    test("--quiet silences a warning, not a refusal", () => {
      answering(["decision=warn", "message=m"]);
      // Under -Q sbatch keeps even the job's id to itself.
      const before = slurm.jobs();
      expect(slurm.sbatch(["-Q", script])).toMatchObject({ exit: 0, out: "", err: "" });
      expect(slurm.jobs()).toBe(before + 1);
      answering(["decision=reject", "message=m"], { mode: "reject" });
      const { exit, out, err } = slurm.sbatch(["-Q", script]);
      expect({ exit, out }).toEqual({ exit: 1, out: "" });
      expect(err).toStartWith("sbatch: error: lua: m\n");
    });

    test("a refusal queues nothing", () => {
      answering(["decision=reject", "message=Neurarch: too small."], { mode: "reject" });
      const before = slurm.jobs();
      const { exit, out, err } = slurm.sbatch([script]);
      expect({ exit, out }).toEqual({ exit: 1, out: "" });
      expect(err).toBe(
        "sbatch: error: lua: Neurarch: too small.\nsbatch: error: cli_filter plugin terminated with error\n",
      );
      expect(slurm.jobs()).toBe(before);
    });

    test("the binary is told the merged request, from #SBATCH, SBATCH_* and the command line", () => {
      const gate = answering(["decision=allow"]);
      queuedSilently(
        slurm.sbatch(["-N", "2-4", "--exclusive", script], {
          env: { SBATCH_PARTITION: "gpu", SBATCH_TIMELIMIT: "30" },
        }),
      );
      expect(gate.calls).toEqual([
        // biome-ignore format: a command line reads as one
        ["slurm", "--lua-contract", "1", "--timeout", "4", "--cluster", "gatetest", "--gres", `${PREFIX}gpu:a10g:1`, "--nodes", "2-4", "--time", "00:30:00", "--partition", "gpu", "--exclusive=exclusive", "--script", script],
      ]);
    });

    const REQUESTS: readonly (readonly [string, readonly string[], readonly string[]])[] = [
      ["--gpus", ["--gpus=2"], ["--gpus", "2"]],
      ["--gpus-per-node", ["--gpus-per-node=h100:4"], ["--gpus-per-node", "h100:4"]],
      ["--gpus-per-task", ["--gpus-per-task=2", "-n3"], ["--gpus-per-task", "2", "--ntasks", "3"]],
      [
        "--gpus-per-socket",
        ["--gpus-per-socket=1", "--sockets-per-node=1"],
        ["--gpus-per-socket", "1", "--sockets-per-node", "1"],
      ],
      ["--ntasks-per-gpu", ["--ntasks-per-gpu=2", "-n4"], ["--ntasks", "4", "--ntasks-per-gpu", "2"]],
      ["a MIG slice", ["--gres=gpu:a100_3g.20gb:1"], ["--gres", `${PREFIX}gpu:a100_3g.20gb:1`]],
      ["shards", ["--gres=shard:2"], ["--gres", `${PREFIX}shard:2`]],
    ];
    for (const [name, words, flags] of REQUESTS) {
      test(`a request by ${name}`, () => {
        const gate = answering(["decision=allow"]);
        const bare = write("bare.sh", HEADER + DIRECTIVE);
        slurm.run(["sbatch", "--test-only", ...words, bare]);
        expect(gate.calls[0]?.slice(7)).toEqual([...flags, "--script", bare]);
      });
    }

    test("nothing runs for a job without a GPU or without a model", () => {
      const gate = answering(["decision=reject"], { mode: "reject" });
      queuedSilently(slurm.sbatch([write("nogpu.sh", HEADER + DIRECTIVE)]));
      queuedSilently(slurm.sbatch(["--gres=none", script]));
      queuedSilently(slurm.sbatch([write("nomodel.sh", `${HEADER}#SBATCH --gres=gpu:1\n`)]));
      queuedSilently(slurm.sbatch(["--gres=gpu:1", "--wrap", "train"]));
      expect(gate.calls).toEqual([]);
    });

    test("NEURARCH_MODEL names the model of a job whose script does not", () => {
      const gate = answering(["decision=allow"]);
      queuedSilently(slurm.sbatch(["--gres=gpu:1", "--wrap", "train"], { env: { NEURARCH_MODEL: "a/b" } }));
      expect(gate.calls.length).toBe(1);
      expect(gate.calls[0]).not.toContain("--script");
      expect(gate.env.NEURARCH_MODEL).toBe("a/b");
    });

    test("a script on stdin is read again when stdin is a file", () => {
      const gate = behaving(
        'for last; do :; done; head -n 1 "$last" >"$0.head"; printf "decision=warn\\nmessage=m\\nend\\n"',
      );
      const { exit, out, err } = slurm.sbatch([], { stdin: script });
      expect({ exit, err }).toEqual({ exit: 0, err: "sbatch: lua: m\n" });
      expect(out).toMatch(JOB_ID);
      expect(gate.calls[0]?.slice(-2)).toEqual(["--script", "/proc/self/fd/0"]);
      expect(readFileSync(`${gate.path}.head`, "utf8")).toBe(HEADER);
      expect(slurm.sbatch(["/dev/stdin"], { stdin: script }).err).toBe("sbatch: lua: m\n");
    });

    test("a script from a pipe is gone by then: only the environment can name its model", () => {
      const gate = answering(["decision=allow"]);
      const text = readFileSync(script, "utf8");
      expect(slurm.sbatch([], { piped: text })).toMatchObject({
        exit: 0,
        out: expect.stringMatching(JOB_ID),
        err: GONE,
      });
      expect(gate.calls).toEqual([]);
      queuedSilently(slurm.sbatch([], { piped: text, env: { NEURARCH_MODEL: "a/b" } }));
      expect(gate.calls.length).toBe(1);
      expect(gate.calls[0]).not.toContain("--script");
    });

    test("a FIFO or a process substitution as the script does not hang", () => {
      const gate = answering(["decision=allow"]);
      const fifo = join(scripts, "fifo");
      const made = slurm.run(["mkfifo", fifo]);
      expect(made.exit).toBe(0);
      const queued = (env: object, { exit, out, err }: Submitted) =>
        expect({ exit, out, err }).toEqual({
          exit: 0,
          out: expect.stringMatching(JOB_ID),
          err: "NEURARCH_MODEL" in env ? "" : GONE,
        });
      for (const env of [{}, { NEURARCH_MODEL: "a/b" }] as Record<string, string>[]) {
        const viaFifo = slurm.run(
          ["sh", "-c", `cat '${script}' >'${fifo}' & exec sbatch --hold --parsable '${fifo}'`],
          { env },
        );
        queued(env, viaFifo);
        expect(viaFifo.ms).toBeLessThan(HELD_UP_MS);
        queued(env, slurm.run(["bash", "-c", `sbatch --hold --parsable <(cat '${script}')`], { env }));
        const onStdin = `cat '${script}' >'${fifo}' & exec sbatch --hold --parsable <'${fifo}'`;
        queued(env, slurm.run(["sh", "-c", onStdin], { env }));
      }
      expect(gate.calls.map((call) => call.includes("--script"))).toEqual([false, false, false]);
    });

    test("paths that need quoting, that are relative, or found elsewhere", () => {
      const gate = answering(["decision=allow"]);
      const odd = write(`it's a "job" $(x) \`y\`; é.sh`, readFileSync(script, "utf8"));
      queuedSilently(slurm.sbatch([odd]));
      queuedSilently(slurm.sbatch(["job.sh", "--alpha"], { cwd: scripts }));
      queuedSilently(slurm.sbatch(["--chdir=/tmp", "scripts/job.sh"], { cwd: slurm.home }));
      expect(gate.calls.map((call) => call.at(-1))).toEqual([odd, script, "scripts/job.sh"]);
    });

    test("srun and salloc: the environment names the model, and the command is never read", () => {
      const gate = behaving("cat >/dev/null; printf 'decision=warn\\nmessage=m\\nend\\n'");
      const env = { NEURARCH_MODEL: "a/b" };
      const reading = slurm.run(["srun", "--gres=gpu:a10g:1", "cat", script]);
      expect({ out: reading.out, err: reading.err.replace(/srun: job .*\n/g, "") }).toEqual({
        out: readFileSync(script, "utf8"),
        err: "",
      });
      const { exit, err, out } = slurm.run(["srun", "--gres=gpu:a10g:1", "cat"], { env, piped: "typed\n" });
      expect(exit).toBe(0);
      expect(err).toContain("srun: lua: m\n");
      // Its stdin is the job's: the binary does not drink it.
      expect(out).toBe("typed\n");
      expect(gate.calls.length).toBe(1);
      gate.forget();
      // One verdict for the allocation, none for the steps in it; a nested sbatch is a job of its own.
      const shell = `srun -n1 true; srun --gres=gpu:a10g:1 true; sbatch --hold --parsable '${script}'`;
      const alloc = slurm.run(["salloc", "--gres=gpu:a10g:1", "sh", "-c", shell], { env });
      expect(alloc.exit).toBe(0);
      expect(gate.calls.map((call) => call.includes("--script"))).toEqual([false, true]);
    });

    test("srun and salloc are refused alike", () => {
      answering(["decision=reject", "message=m"], { mode: "reject" });
      for (const command of [
        ["srun", "--gres=gpu:a10g:1", "true"],
        ["salloc", "--gres=gpu:a10g:1", "true"],
      ]) {
        const { exit, err } = slurm.run(command, { env: { NEURARCH_MODEL: "a/b" } });
        expect(exit).toBe(1);
        expect(err).toContain(`${command[0]}: error: lua: m\n`);
      }
    });

    const BROKEN: readonly (readonly [string, string, string])[] = [
      ["crashes", "kill -SEGV $$", "gave no verdict (exit 139)"],
      [
        "crashes half way through a refusal",
        "printf 'decision=reject\\n'; exit 70",
        "gave no verdict (exit 70)",
      ],
      ["prints garbage", "head -c 200000 /dev/urandom", "gave no verdict"],
      ["never ends", "sleep 60", "gave no verdict within 1 s"],
      ["never ends and ignores the signal", "trap '' TERM; sleep 60 & wait; sleep 60", "gave no verdict"],
      [
        "leaves a child that holds its output and says nothing",
        "setsid sleep 30 & exit 0",
        "gave no verdict (exit 0)",
      ],
    ];
    for (const [name, body, why] of BROKEN) {
      test(`a binary that ${name} costs one line`, () => {
        const gate = behaving(body, { mode: "reject", timeout_s: 1 });
        const { exit, out, err, ms } = slurm.sbatch([script]);
        expect(exit).toBe(0);
        expect(out).toMatch(JOB_ID);
        expect(err).toStartWith(`sbatch: lua: Neurarch: this job was not judged: ${gate.path} ${why}`);
        expect(err.split("\n").length).toBe(2);
        expect(ms).toBeLessThan(HELD_UP_MS);
      });
    }

    test("a binary that leaves a child behind is answered at once", () => {
      behaving("setsid sleep 30 & printf 'decision=warn\\nmessage=m\\nend\\n'");
      const { err, ms } = slurm.sbatch([script]);
      expect(err).toBe("sbatch: lua: m\n");
      expect(ms).toBeLessThan(HELD_UP_MS);
    });

    test("a binary that is missing, or is no program", () => {
      for (const binary of ["/nowhere/gate", script, scripts]) {
        slurm.install({ binary, mode: "reject" });
        const { exit, out, err } = slurm.sbatch([script]);
        expect(exit).toBe(0);
        expect(out).toMatch(JOB_ID);
        expect(err).toBe(
          `sbatch: lua: Neurarch: this job was not judged: ${binary} cannot be run on this host. Submitted unchecked.\n`,
        );
      }
    });

    test("a verdict is appended to the comment", () => {
      answering(["decision=allow", "comment=neurarch:allow need=21.0GB on a10g:1"], { annotate: true });
      const commentOf = (words: string[]) => slurm.field(slurm.sbatch([...words, script]).out, "Comment");
      expect(commentOf([])).toEqual(["neurarch:allow need=21.0GB on a10g:1"]);
      expect(commentOf(["--comment=project x"])).toEqual(["project x neurarch:allow need=21.0GB on a10g:1"]);
      const full = "c".repeat(1020);
      expect(commentOf([`--comment=${full}`])).toEqual([`${full} neu`]);
      expect(commentOf([`--comment=${"c".repeat(1024)}`])).toEqual(["c".repeat(1024)]);
    });

    test("each component of a heterogeneous job is judged and annotated once", () => {
      const gate = behaving(
        'printf "decision=warn\\nmessage=m$(wc -l <"$0.calls")\\ncomment=n$(wc -l <"$0.calls")\\nend\\n"',
      );
      const bare = write("bare.sh", HEADER + DIRECTIVE);
      const words = ["--comment=mine", "--gres=gpu:a10g:1", ":", "--gres=gpu:h100:2", ":", "-n1", bare];
      const { exit, out, err } = slurm.sbatch(words);
      expect({ exit, err }).toEqual({ exit: 0, err: "sbatch: lua: m1\nsbatch: lua: m2\n" });
      expect(gate.calls.map((call) => call[call.indexOf("--gres") + 1])).toEqual([
        `${PREFIX}gpu:a10g:1`,
        `${PREFIX}gpu:h100:2`,
      ]);
      expect(slurm.field(out, "Comment").sort()).toEqual(["mine", "mine n1", "mine n2"]);
    });

    test("one refused component refuses the heterogeneous job", () => {
      behaving(
        'case " $* " in *h100*) printf "decision=reject\\nmessage=m\\nend\\n";; *) printf "decision=allow\\nend\\n";; esac',
        { mode: "reject" },
      );
      const bare = write("bare.sh", HEADER + DIRECTIVE);
      const before = slurm.jobs();
      expect(slurm.sbatch(["--gres=gpu:a10g:1", ":", "--gres=gpu:h100:2", bare]).exit).toBe(1);
      expect(slurm.jobs()).toBe(before);
    });

    test("an array is judged once", () => {
      const gate = answering(["decision=allow"]);
      queuedSilently(slurm.sbatch(["--array=0-9%2", script]));
      expect(gate.calls.length).toBe(1);
      expect(gate.calls[0]).toContain("0-9%2");
    });

    test("beside a filter of the site's own", () => {
      const gate = answering(["decision=reject", "message=m"], { mode: "reject" });
      const ours = join(slurm.folder, "etc/neurarch.lua");
      writeFileSync(ours, readFileSync(join(slurm.folder, "etc/cli_filter.lua")));
      slurm.installText(`
        pcall(dofile, "${ours}")
        function slurm_cli_setup_defaults(options, early_pass) return slurm.SUCCESS end
        function slurm_cli_pre_submit(options, offset)
          if options.partition == "short" then slurm.log_error("not there") return slurm.ERROR end
          if neurarch then return neurarch.pre_submit(options, offset) end
          return slurm.SUCCESS
        end
        function slurm_cli_post_submit(offset, job_id, step_id) return slurm.SUCCESS end
      `);
      expect(slurm.sbatch([script]).err).toContain("error: lua: m\n");
      expect(slurm.sbatch(["-p", "short", script]).err).toContain("error: lua: not there\n");
      expect(gate.calls.length).toBe(1);
    });

    test("a hostile environment does not reach the binary", () => {
      const gate = answering(["decision=allow"]);
      const hostile = {
        BUN_OPTIONS: "--preload ./x.ts",
        BUN_BE_BUN: "1",
        BUN_NEW: "x",
        NODE_OPTIONS: "-r x",
      };
      queuedSilently(slurm.sbatch([script], { env: { ...hostile, HF_TOKEN: "t" } }));
      for (const name of Object.keys(hostile)) expect(gate.env).not.toContainKey(name);
      expect(gate.env.HF_TOKEN).toBe("t");
    });
  });

  describe.skipIf(!CI && !existsSync(BINARY))("with the built binary", () => {
    const install = (settings = {}) => slurm.install({ binary: BINARY, ...settings });
    // The example's global batch of 8 on cards that hold it when sharded.
    const ENOUGH = ["--gres=gpu:h100:8"];
    const SHARDED = `${HEADER}#NEURARCH model=Qwen/Qwen3-8B batch=1 seq-len=2048 parallel=sharded\n`;

    const siteTypes = () =>
      write("site.json", JSON.stringify({ a10g: "A10G", a100: "A100-40", h100: "H100" }));

    test("warn mode: the example is warned and queued", () => {
      install();
      const { exit, out, err } = slurm.sbatch([EXAMPLE]);
      expect({ exit, out }).toEqual({ exit: 0, out: expect.stringMatching(JOB_ID) });
      expect(err).toMatch(
        /^sbatch: lua: Neurarch: Qwen\/Qwen3-8B needs \d+\.\d GB to train at batch 8 per device, 2048 tokens \(peak \d+\.\d GB x 1\.15 headroom\), and a10g:1 holds 24 GB\. .*--gres.*Submitted anyway\.\n$/,
      );
    });

    test("reject mode: the example is refused", () => {
      install({ mode: "reject" });
      const { exit, out, err } = slurm.sbatch([EXAMPLE]);
      expect({ exit, out }).toEqual({ exit: 1, out: "" });
      expect(err).toMatch(
        /^sbatch: error: lua: Neurarch: Qwen\/Qwen3-8B needs .*resubmit\.\nsbatch: error: cli_filter/,
      );
      expect(err).not.toContain("Submitted anyway");
    });

    test("reject mode: the same job with enough memory is queued silently", () => {
      install({ mode: "reject", gpu_map: siteTypes() });
      queuedSilently(slurm.sbatch([...ENOUGH, write("sharded.sh", SHARDED)]));
    });

    test("reject mode: a small job on one card is queued silently", () => {
      install({ mode: "reject" });
      const small = write("small.sh", `${HEADER}#NEURARCH model=Qwen/Qwen3-0.6B batch=1 seq-len=512\n`);
      queuedSilently(slurm.sbatch(["--gres=gpu:a10g:1", small]));
    });

    test("srun and salloc by the environment", () => {
      install({ mode: "reject" });
      const env = { NEURARCH_MODEL: "Qwen/Qwen3-8B", NEURARCH_BATCH: "8" };
      for (const command of ["srun", "salloc"]) {
        const { exit, err } = slurm.run([command, "--gres=gpu:a10g:1", "true"], { env });
        expect(exit).toBe(1);
        expect(err).toStartWith(`${command}: error: lua: Neurarch: Qwen/Qwen3-8B needs `);
      }
    });

    test("a script on stdin", () => {
      install({ mode: "reject" });
      const { exit, err } = slurm.sbatch([], { stdin: EXAMPLE });
      expect(exit).toBe(1);
      expect(err).toStartWith("sbatch: error: lua: Neurarch: Qwen/Qwen3-8B needs ");
    });

    test("every component of a heterogeneous job, and arrays", () => {
      install({ mode: "reject", gpu_map: siteTypes() });
      const bare = write("sharded.sh", SHARDED);
      expect(slurm.sbatch([...ENOUGH, ":", "--gres=gpu:a10g:1", bare]).exit).toBe(1);
      queuedSilently(slurm.sbatch([...ENOUGH, ":", ...ENOUGH, bare]));
      queuedSilently(slurm.sbatch([...ENOUGH, "--array=0-3", bare]));
      expect(slurm.sbatch(["--gres=gpu:a10g:1", "--array=0-3", bare]).exit).toBe(1);
    });

    test("the comment tells the verdict", () => {
      install({ annotate: true });
      const { out } = slurm.sbatch(["--comment=mine", EXAMPLE]);
      expect(slurm.field(out, "Comment")).toEqual([
        expect.stringMatching(/^mine neurarch:\S+ need=\S+ on a10g:1$/),
      ]);
    });

    test("a value that cannot be read is told and let through", () => {
      install({ mode: "reject" });
      const { exit, err } = slurm.sbatch([
        write(
          "unreadable.sh",
          `${HEADER}#SBATCH --gres=gpu:a10g:1\n#NEURARCH model=Qwen/Qwen3-8B batch=eight\n`,
        ),
      ]);
      expect(exit).toBe(0);
      expect(err).toContain("eight");
    });

    test("a hostile folder and environment change nothing", () => {
      install({ mode: "reject" });
      const folder = join(slurm.home, "hostile");
      mkdirSync(folder, { recursive: true });
      const trace = join(folder, "preload-ran");
      writeFileSync(join(folder, ".env"), "NEURARCH_MODEL=openai-community/gpt2\nBUN_BE_BUN=1\n");
      writeFileSync(join(folder, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
      writeFileSync(
        join(folder, "preload.ts"),
        `require("node:fs").writeFileSync(${JSON.stringify(trace)}, "x");\n`,
      );
      writeFileSync(join(folder, "tsconfig.json"), "{ broken");
      writeFileSync(join(folder, "package.json"), "{ broken");
      const env = {
        BUN_OPTIONS: `--preload ${join(folder, "preload.ts")}`,
        BUN_BE_BUN: "1",
        BUN_INSPECT_PRELOAD: join(folder, "preload.ts"),
        BUN_CONFIG_VERBOSE_FETCH: "1",
      };
      const plain = slurm.sbatch([EXAMPLE]);
      const hostile = slurm.sbatch([EXAMPLE], { cwd: folder, env });
      expect({ ...hostile, ms: 0 }).toEqual({ ...plain, ms: 0 });
      expect(plain.exit).toBe(1);
      expect(existsSync(trace)).toBe(false);
    });

    test("every setting of the table is one that the binary knows", () => {
      const json = (name: string, value: unknown) => write(name, JSON.stringify(value));
      // The executable may be built without policies.
      const takesPolicies = "policy-file" in SITE_FLAGS;
      const settings: LuaSettings = {
        mode: "reject",
        config: write("gate.toml", ""),
        gpu_map: json("gpus.json", { a10g: "A10G", h100: "H100" }),
        default_gpu_type: "a10g",
        partition_map: json("partitions.json", { short: "a10g" }),
        cards: json("cards.json", {}),
        prices: json("prices.json", { A10G: 1.1 }),
        max_cost_usd: 1000,
        hours_from_time: true,
        headroom: 1.15,
        sizing: "builtin",
        cli: "/bin/false",
        plan_url: "http://127.0.0.1:9",
        annotate: true,
        cluster: "here",
        fail_closed: false,
        ledger: join(slurm.home, "ledger"),
        notice: "always",
        ...(takesPolicies ? { policy_file: write("policy.yml", "version: 1\n"), repo_policy: "ignore" } : {}),
        timeout_s: 10,
        debug: false,
      };
      expect(Object.keys(settings).sort()).toEqual(
        Object.keys(LUA_SETTINGS)
          .filter((name) => name !== "binary" && (takesPolicies || !name.includes("policy")))
          .sort(),
      );
      for (const [name, value] of Object.entries(settings)) {
        install({ mode: "reject", [name]: value });
        const { exit, err } = slurm.sbatch([EXAMPLE]);
        const kind = exit === 1 ? "refused" : err;
        expect([name, kind]).toEqual([name, "refused"]);
      }
      expect(readdirSync(join(slurm.home, "ledger")).length).toBe(1);
      install(settings);
      expect(slurm.sbatch([EXAMPLE]).err).toStartWith("sbatch: error: lua: Neurarch: Qwen/Qwen3-8B needs ");
    });

    test("a FIFO as the script does not hang", () => {
      install({ mode: "reject" });
      const fifo = join(scripts, "fifo-real");
      slurm.run(["mkfifo", fifo]);
      const { exit, ms } = slurm.run([
        "sh",
        "-c",
        `cat '${EXAMPLE}' >'${fifo}' & exec sbatch --hold '${fifo}'`,
      ]);
      expect(exit).toBe(0);
      expect(ms).toBeLessThan(HELD_UP_MS);
    });

    test("a memory limit of the login node does not stop a submit", () => {
      install({ mode: "reject" });
      const { exit, err } = slurm.run([
        "bash",
        "-c",
        `ulimit -v 600000; sbatch --hold --parsable '${EXAMPLE}'`,
      ]);
      // Judged or not, by how little the runtime gets by with: but one or the other, and no banner.
      expect(err.split("\n").length).toBeLessThanOrEqual(3);
      expect(exit === 1 ? err : `${exit} ${err}`).toMatch(
        /^sbatch: error: lua: Neurarch: Qwen|^0 sbatch: lua: Neurarch: this job was not judged/,
      );
    });
  });
});

describe("the cluster script", () => {
  test("Slurm is there under CI", () => {
    expect(slurmIsHere || !CI).toBe(true);
  });
  test("wrong use is told apart", () => {
    const run = (...words: string[]) =>
      Bun.spawnSync(["bash", join(import.meta.dir, "cluster.sh"), ...words]);
    expect(run().exitCode).toBe(2);
    expect(run("stop", "/tmp", "--what").exitCode).toBe(2);
    expect(run("dance", "/tmp").exitCode).toBe(2);
  });
});
