import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type LuaSettings, luaWithSettings } from "../../src/slurm/lua.ts";
import { Cluster, type Submitted, type Surroundings, slurmIsHere } from "./cluster.ts";
import { HELD_UP_MS, StandIn } from "./standin.ts";

const ROOT = resolve(import.meta.dir, "../..");
const BINARY = join(ROOT, "dist/neurarch-gate");
const FILTER = readFileSync(join(ROOT, "lua/cli_filter.lua"), "utf8");
const CI = process.env.CI !== undefined;

const REQUEST = "#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\n";
const SCRIPT = `${REQUEST}#NEURARCH model=Qwen/Qwen3-8B batch=8 seq-len=2048\ntrain\n`;

/** What a user reads of a job that was let through because we could not answer. */
const unchecked = (why: string) =>
  `sbatch: lua: Neurarch: this job was not judged: ${why}. Submitted unchecked.\n`;
const GONE =
  "sbatch: lua: Neurarch: this GPU job was not checked: its script can be read only once (it came by a pipe), and NEURARCH_MODEL is not set.\n";

/** One row: what is wrong, and the exact text the user then sees on stderr (`""`: none). */
interface Trouble {
  readonly name: string;
  /** Body of a stand-in in the binary's place; without it the built binary answers. */
  readonly body?: string;
  readonly settings?: LuaSettings;
  /** Text of the batch script (SCRIPT). */
  readonly script?: string;
  /** Options of the command line. */
  readonly words?: readonly string[];
  readonly around?: Surroundings;
  /** A shell line in place of the plain submit; `$SBATCH` and `$JOB` are the command and the script. */
  readonly line?: string;
  /** Lua behind the filter; `before X` and `argv X` are a site's own filter that does X first or names another script. */
  readonly lua?: string;
  /** `judged` = what is seen with nothing wrong; `@` stands for the user's home, `GATE` for the binary. */
  readonly err: string | RegExp | ((home: string) => string);
}

const ANSWER = "printf 'decision=warn\\nmessage=Neurarch: m.\\nend\\n'";
const ANSWERED = "sbatch: lua: Neurarch: m.\n";
const gateSays = (what: string) => (home: string) => unchecked(`${home}/gates/stand-in ${what}`);

// biome-ignore format: a table reads by rows
const TROUBLES: readonly Trouble[] = [
  // The binary.
  { name: "missing", settings: { binary: "/nowhere/gate" }, err: unchecked("/nowhere/gate cannot be run on this host") },
  { name: "a folder", settings: { binary: "/usr/bin" }, err: unchecked("/usr/bin cannot be run on this host") },
  { name: "a device", settings: { binary: "/dev/null" }, err: unchecked("/dev/null cannot be run on this host") },
  { name: "not executable", body: "chmod", err: gateSays("cannot be run on this host") },
  { name: "for another machine", body: "elf", err: gateSays("cannot be run on this host") },
  { name: "its interpreter is missing", body: "hashbang", err: gateSays("cannot be run on this host") },
  { name: "crashes", body: "kill -SEGV $$", err: gateSays("gave no verdict (exit 139)") },
  { name: "aborts", body: "kill -ABRT $$", err: gateSays("gave no verdict (exit 134)") },
  { name: "is killed", body: "kill -KILL $$", err: gateSays("gave no verdict (exit 137)") },
  { name: "fails", body: "exit 70", err: gateSays("gave no verdict (exit 70)") },
  { name: "is silent", body: "exit 0", err: gateSays("gave no verdict (exit 0)") },
  { name: "speaks on stderr only", body: "echo trouble >&2", err: gateSays("gave no verdict (exit 0)") },
  { name: "prints garbage", body: "head -c 200000 /dev/urandom", err: gateSays("gave no verdict") },
  { name: "prints without an end", body: "yes decision=reject", err: gateSays("gave no verdict") },
  { name: "prints one endless line", body: "cat /dev/zero", err: gateSays("gave no verdict") },
  { name: "stops half way through a refusal", body: "printf 'decision=reject\\nmessage=m\\n'", err: gateSays("gave no verdict (exit 0)") },
  { name: "decides something new", body: "printf 'decision=perhaps\\nend\\n'", err: gateSays("gave no verdict (exit 0)") },
  { name: "is slow", body: "sleep 60", settings: { timeout_s: 1 }, err: gateSays("gave no verdict within 1 s") },
  { name: "is slow and deaf", body: "trap '' TERM; sleep 60 & wait; sleep 60", settings: { timeout_s: 1 }, err: gateSays("gave no verdict within 1 s") },
  { name: "is slow after half an answer", body: "printf 'decision=reject\\n'; sleep 60", settings: { timeout_s: 1 }, err: gateSays("gave no verdict within 1 s") },
  { name: "leaves a child on its output, says nothing", body: "setsid sleep 60 & exit 0", err: gateSays("gave no verdict (exit 0)") },
  { name: "leaves a child on its output, answers", body: `setsid sleep 60 & ${ANSWER}`, err: ANSWERED },
  { name: "answers and fails", body: `${ANSWER}; exit 9`, err: ANSWERED },
  { name: "answers with controls and percents", body: "printf 'decision=warn\\nmessage=50%% \\033[31mred\\007\\r\\nend\\n'", err: "sbatch: lua: 50%  [31mred  \n" },
  { name: "answers with a megabyte", body: `${ANSWER.replace("\\nend", "")}; head -c 1000000 /dev/zero | tr '\\\\0' x; printf '\\nend\\n'`, err: gateSays("gave no verdict") },
  { name: "answers with a comment beyond all bounds", body: `printf 'decision=allow\\ncomment='; head -c 5000 /dev/zero | tr '\\\\0' c; printf '\\nend\\n'`, settings: { annotate: true }, err: "" },
  { name: "reads its stdin to the end", body: `cat >/dev/null; ${ANSWER}`, around: { stdin: "/dev/zero" }, err: ANSWERED },
  // The filter's own settings.
  { name: "a setting that is no path", lua: "neurarch.binary = {}", err: unchecked("the setting binary is not a path") },
  { name: "a setting of the wrong kind", lua: "neurarch.gpu_map = {}", err: unchecked("gpu-map has a value that cannot be passed on") },
  { name: "a setting with a line break", lua: 'neurarch.cli = "a\\nb"', err: unchecked("cli has a value that cannot be passed on") },
  { name: "a time that is none", body: ANSWER, lua: 'neurarch.timeout_s = "soon"', err: ANSWERED },
  { name: "a mode that is none", lua: 'neurarch.mode = "strict"', err: "sbatch: lua: Neurarch: not judged: --mode is `strict`, not one of warn, reject; allowed unchecked (fail open).\n" },
  { name: "options that raise", lua: 'before options = setmetatable({}, { __index = function() error("boom") end })', err: /^sbatch: lua: Neurarch: this job was not judged: the filter failed \(.*boom\)\. Submitted unchecked\.\n$/ },
  { name: "a filter newer than the binary", lua: "contract 99", err: "sbatch: lua: Neurarch: not judged: the Slurm filter is of contract 99, and GATE (VERSION) knows up to 1; allowed unchecked (fail open). Install the neurarch-gate that printed the filter, or print it again with this one: neurarch-gate print-lua.\n" },
  // Files of the site.
  { name: "the site file is missing", settings: { config: "/nowhere.toml" }, err: "sbatch: lua: Neurarch: not judged: /nowhere.toml does not exist; allowed unchecked (fail open). Correct --config, or the file's permissions.\n" },
  { name: "the site file is a folder", settings: { config: "/etc" }, err: "sbatch: lua: Neurarch: not judged: /etc is a directory, not a file; allowed unchecked (fail open). Correct --config, or the file's permissions.\n" },
  { name: "the site file is broken", settings: { config: "@broken.toml" }, err: "sbatch: lua: Neurarch: not judged: @broken.toml:1:8 is not TOML: invalid value; allowed unchecked (fail open). Correct the line, or remove the file.\n" },
  { name: "the site file has an unknown key", settings: { config: "@key.toml" }, err: /^sbatch: lua: Neurarch: not judged: @key\.toml has the unknown key `mood`; allowed unchecked \(fail open\)\. Known keys: mode, [\w, ]+\.\n$/ },
  { name: "the GPU map is missing", settings: { gpu_map: "/nowhere.json" }, err: "sbatch: lua: Neurarch: not judged: --gpu-map: /nowhere.json does not exist; allowed unchecked (fail open). Name a readable JSON file.\n" },
  { name: "the GPU map is no JSON", settings: { gpu_map: "@broken.toml" }, err: "sbatch: lua: Neurarch: not judged: --gpu-map: @broken.toml is not JSON: JSON Parse error: Unexpected identifier \"mode\"; allowed unchecked (fail open). Correct it.\n" },
  { name: "the GPU map names no card", settings: { gpu_map: "@map.json" }, err: "sbatch: lua: Neurarch: not judged: the GPU map maps `a10g` to `A11`, which has no capacity on file; allowed unchecked (fail open). Did you mean `A10`?\n" },
  { name: "the GPU map is a FIFO", settings: { gpu_map: "@fifo" }, err: "sbatch: lua: Neurarch: not judged: --gpu-map: @fifo is not a regular file; allowed unchecked (fail open). Name a readable JSON file.\n" },
  { name: "the GPU map is a device", settings: { gpu_map: "/dev/zero" }, err: "sbatch: lua: Neurarch: not judged: --gpu-map: /dev/zero is not a regular file; allowed unchecked (fail open). Name a readable JSON file.\n" },
  { name: "the partition map is no map", settings: { partition_map: "@list.json" }, err: "sbatch: lua: Neurarch: not judged: --partition-map: @list.json holds no JSON object; allowed unchecked (fail open). Write it as {\"name\": value, ...}.\n" },
  { name: "the prices are no numbers", settings: { prices: "@prices.json" }, err: "sbatch: lua: Neurarch: not judged: the price of `A10G` is not an amount in USD per hour; allowed unchecked (fail open). Write a number such as 2.5.\n" },
  { name: "the cards have no capacity", settings: { cards: "@cards.json" }, err: "sbatch: lua: Neurarch: not judged: card `X1` has no `gb`; allowed unchecked (fail open). Write \"gb\": 80, say.\n" },
  { name: "the sizing CLI is missing", settings: { sizing: "cli", cli: "/nowhere/cli" }, err: "sbatch: lua: Neurarch: Qwen/Qwen3-8B not judged: The sizing CLI cannot be started: /nowhere/cli is not a program on PATH. Allowed unchecked (fail open).\n" },
  { name: "the sizing CLI is slow and leaves children", settings: { sizing: "cli", cli: "@slow-cli", timeout_s: 2 }, err: "sbatch: lua: Neurarch: Qwen/Qwen3-8B not judged: The sizing CLI gave no answer on Qwen/Qwen3-8B within 1.0 s. Allowed unchecked (fail open).\n" },
  { name: "a sizing that takes graphs only", settings: { sizing: "hosted" }, err: "sbatch: lua: Neurarch: Qwen/Qwen3-8B not judged: The hosted plan takes graphs, and Qwen/Qwen3-8B is no .neurarch.json on this machine; trace it with neurarch-trace. Allowed unchecked (fail open).\n" },
  // The job.
  { name: "an unknown card", words: ["--gres=gpu:k2000:1"], err: "sbatch: lua: Neurarch: k2000:1 not judged: No capacity is on file for 'k2000'; `neurarch-gate cards` lists the cards that are. Allowed unchecked (fail open).\n" },
  { name: "an untyped GPU", words: ["--gres=gpu:1"], err: "sbatch: lua: Neurarch: gpu:1 not judged: gpu:1 names no GPU type, and the site says none for it (a default type or a partition map). Name one, as in gpu:h100:1. Allowed unchecked (fail open).\n" },
  { name: "two kinds of cards", words: ["--gpus=a10g:1,h100:1", "--gres=none"], err: "sbatch: lua: Neurarch: a10g:1 + h100:1 not judged: a10g:1 + h100:1 are cards of different kinds in one job, which have no common capacity. Allowed unchecked (fail open).\n" },
  { name: "shares of a card", words: ["--gres=shard:2"], err: "sbatch: lua: Neurarch: shard:2 not judged: shard:2 asks for a share of a GPU, and the site does not say what a share holds. Allowed unchecked (fail open).\n" },
  { name: "a count that is none", script: `${SCRIPT.replace("batch=8", "batch=eight")}`, err: "sbatch: lua: Neurarch: #NEURARCH batch on line 3: \"eight\" is not a whole number from 1 to 1,000,000; write batch=8, say. Not judged; allowed unchecked.\n" },
  { name: "an unknown key", script: `${SCRIPT.replace("batch=8", "bacth=8 batch=8").replace("8B", "0.6B")}`, words: ["--gres=gpu:h100:1"], err: "sbatch: lua: Neurarch: Qwen/Qwen3-0.6B needs 87.5 GB to train at batch 8 per device, 2048 tokens (peak 76.0 GB x 1.15 headroom), and h100:1 holds 80 GB. The largest batch that fits h100:1 is 7 per device. The smallest card that holds this job is H200:1. Sized offline from the model's structure; nothing was trained. Change --gres or batch= in #NEURARCH and resubmit. With loss=fused it needs 54.4 GB. Submitted anyway.\nsbatch: lua: Neurarch: Unknown key `bacth` on line 3, did you mean `batch`?\n" },
  { name: "a model that is nowhere", script: SCRIPT.replace("Qwen/Qwen3-8B", "nobody/nothing"), err: "sbatch: lua: Neurarch: nobody/nothing not judged: No config was found for nobody/nothing: not in the Hugging Face cache (@.cache/huggingface/hub); not in the catalogue; the hub is not asked while HF_HUB_OFFLINE is set. Name a path to its config.json, put the model into the Hugging Face cache, or name a model of the catalogue. Allowed unchecked (fail open).\n" },
  { name: "a hub that does not answer", script: SCRIPT.replace("Qwen/Qwen3-8B", "nobody/nothing"), around: { env: { HF_ENDPOINT: "http://127.0.0.1:9", HF_HUB_OFFLINE: "0" } }, err: "sbatch: lua: Neurarch: nobody/nothing not judged: The config of nobody/nothing could not be fetched: 127.0.0.1:9 refused the connection; set HF_HUB_OFFLINE=1 where it cannot be reached, or name a path to its config.json, or put the model into the Hugging Face cache. Allowed unchecked (fail open).\n" },
  { name: "a model path that is a FIFO", script: SCRIPT.replace("Qwen/Qwen3-8B", "@fifo"), err: "sbatch: lua: Neurarch: @fifo not judged: @fifo is not a regular file. Allowed unchecked (fail open).\n" },
  { name: "a model path that is a device", script: SCRIPT.replace("Qwen/Qwen3-8B", "/dev/zero"), err: "sbatch: lua: Neurarch: /dev/zero not judged: /dev/zero is not a regular file. Allowed unchecked (fail open).\n" },
  { name: "a variable in the model's name", script: SCRIPT.replace("Qwen/Qwen3-8B", "$MODEL"), err: "sbatch: lua: Neurarch: #NEURARCH model on line 3: \"$MODEL\" names a variable, and nothing expands it here; write model=Qwen/Qwen3-8B, say. Not judged; allowed unchecked.\n" },
  // The script.
  { name: "a FIFO", line: `mkfifo "$JOB.fifo"; cat "$JOB" >"$JOB.fifo" & exec $SBATCH "$JOB.fifo"`, err: GONE },
  { name: "a pipe", line: `cat "$JOB" | $SBATCH`, err: GONE },
  { name: "a process substitution", line: `exec $SBATCH <(cat "$JOB")`, err: GONE },
  { name: "gone when it is read again", lua: "before os.remove(options.argv[1])", err: GONE },
  { name: "a device when it is read again", lua: `argv "/dev/zero"`, err: GONE },
  { name: "a folder when it is read again", lua: `argv "/etc"`, err: GONE },
  { name: "a gigabyte without a line end", lua: `argv "@giga"`, err: "" },
  { name: "a gigabyte behind its directives", lua: `argv "@giga-named"`, script: SCRIPT, err: "judged" },
  // The host.
  { name: "no home", line: `unset HOME; exec $SBATCH "$JOB"`, err: "judged" },
  { name: "a home that cannot be written", around: { env: { HOME: "/proc/1", HF_HOME: "/proc/1/x", XDG_CACHE_HOME: "/proc/1/y" } }, err: "judged" },
  { name: "a disk that takes no more", line: `ulimit -f 0; exec $SBATCH "$JOB"`, around: { env: { TMPDIR: "/dev/full" } }, err: "judged" },
  { name: "closed stdin", line: `exec $SBATCH "$JOB" <&-`, err: "judged" },
  { name: "closed stdout", line: `$SBATCH "$JOB" >&-; echo 1`, err: "judged" },
  { name: "closed stderr", line: `exec $SBATCH "$JOB" 2>&-`, err: "" },
  { name: "a full disk behind stderr", line: `exec $SBATCH "$JOB" 2>/dev/full`, err: "" },
  { name: "few open files", line: `ulimit -n 20; exec $SBATCH "$JOB"`, err: "judged" },
  { name: "little memory", line: `ulimit -v 150000; exec $SBATCH "$JOB"`, err: /^sbatch: lua: Neurarch: this job was not judged: GATE gave no verdict( \(exit \d+\))?\. Submitted unchecked\.\n$/ },
  { name: "little stack", line: `ulimit -s 256; exec $SBATCH "$JOB"`, err: "judged" },
  { name: "no PATH", line: `SBATCH=$(command -v sbatch); unset PATH; exec "$SBATCH" --hold --parsable "$JOB"`, err: "judged" },
  { name: "programs of the user's own", line: `mkdir -p fake; for p in timeout sh printf unset; do printf '#!/bin/sh\\nsleep 60\\n' >fake/$p; chmod +x fake/$p; done; PATH=$PWD/fake:$PATH exec $SBATCH "$JOB"`, err: "judged" },
  { name: "a shell start file", around: { env: { ENV: "/dev/zero", BASH_ENV: "/dev/zero" } }, err: "judged" },
  { name: "an exported function", line: `timeout() { sleep 60; }; export -f timeout; exec $SBATCH "$JOB"`, err: "judged" },
  { name: "another locale", around: { env: { LC_ALL: "xx_YY.UTF-16", LANG: "xx" } }, err: "judged" },
  { name: "an allocator that gives nothing", around: { env: { MIMALLOC_LIMIT_OS_ALLOC: "1" } }, err: "judged" },
  { name: "another library", around: { env: { LD_LIBRARY_PATH: "/proc" } }, err: "judged" },
];

/** Rows that a site which fails closed refuses instead, and what their users read first. */
const CLOSED: readonly (readonly [row: string, told: RegExp])[] = [
  [
    "missing",
    /could not be judged: \/nowhere\/gate cannot be run on this host\. Refused, as this site asks \(fail_closed\)\.$/,
  ],
  ["crashes", /could not be judged: \S+ gave no verdict \(exit 139\)\. Refused/],
  ["is slow", /could not be judged: \S+ gave no verdict within 1 s\. Refused/],
  [
    "a setting of the wrong kind",
    /could not be judged: gpu-map has a value that cannot be passed on\. Refused/,
  ],
  [
    "a filter newer than the binary",
    /not judged: the Slurm filter is of contract 99.*; refused, as this site fails closed\./,
  ],
  [
    "the site file is broken",
    /not judged: \S+broken\.toml:1:8 is not TOML.*; refused, as this site fails closed\./,
  ],
  ["a model that is nowhere", /nobody\/nothing not judged: No config was found/],
  ["an unknown card", /k2000:1 not judged: No capacity is on file/],
];

// Under CI these run and fail where something is missing; elsewhere they are left out.
describe.skipIf(!CI && !(slurmIsHere && existsSync(BINARY)))("a submit goes on, whatever is wrong", () => {
  let slurm: Cluster;
  let judged: string;
  beforeAll(() => {
    slurm = Cluster.start();
    const at = (name: string, text = "") => writeFileSync(join(slurm.home, name), text);
    at("broken.toml", "mode = \n");
    at("key.toml", 'mood = "reject"\n');
    at("map.json", '{"a10g": "A11"}');
    at("list.json", "[1]");
    at("prices.json", '{"A10G": "cheap"}');
    at("cards.json", '{"X1": {}}');
    at("slow-cli", "#!/bin/sh\nsetsid sleep 60 &\nsleep 60\n");
    at("giga", "#!/bin/sh\n#");
    at("giga-named", SCRIPT);
    chmodSync(join(slurm.home, "slow-cli"), 0o755);
    for (const name of ["giga", "giga-named"]) truncateSync(join(slurm.home, name), 1e9);
    Bun.spawnSync(["mkfifo", join(slurm.home, "fifo")]);
    slurm.install({ binary: BINARY });
    judged = submit({ name: "as it should be", err: "" }).err;
  }, 60_000);
  afterAll(() => slurm?.stop(), 60_000);

  const inHome = (text: string) => text.replaceAll("@", `${slurm.home}/`);

  function binaryOf({ body }: Trouble): string {
    if (body === undefined) return BINARY;
    const gate = new StandIn(join(slurm.home, "gates"), body);
    if (body === "chmod") chmodSync(gate.path, 0o644);
    if (body === "elf") writeFileSync(gate.path, "\x7fELF\x02\x01\x01 for no machine");
    if (body === "hashbang") writeFileSync(gate.path, "#!/nowhere/sh\n");
    return gate.path;
  }

  function filterOf(trouble: Trouble): string {
    const given = Object.entries(trouble.settings ?? {}).map(([name, value]) => [
      name,
      typeof value === "string" ? inHome(value) : value,
    ]);
    const settings = { binary: binaryOf(trouble), timeout_s: 10, ...Object.fromEntries(given) };
    const text = luaWithSettings(FILTER, settings);
    const { lua = "" } = trouble;
    const contract = /^contract (\d+)$/.exec(lua);
    if (contract !== null) return text.replace(/^local CONTRACT = \d+/m, `local CONTRACT = ${contract[1]}`);
    const hook = (change: string) =>
      `${text}\nfunction slurm_cli_pre_submit(options, offset) ${change} return neurarch.pre_submit(options, offset) end\n`;
    if (lua.startsWith("before ")) return hook(lua.slice(7));
    if (lua.startsWith("argv "))
      return hook(
        `options = setmetatable({ argv = { ${inHome(lua.slice(5))} } }, { __index = options, __newindex = options })`,
      );
    return `${text}\n${lua}\n`;
  }

  function submit(trouble: Trouble): Submitted {
    slurm.installText(filterOf(trouble));
    const job = join(slurm.home, "job.sh");
    writeFileSync(job, inHome(trouble.script ?? SCRIPT));
    const { around, line, words = [] } = trouble;
    if (line === undefined) return slurm.sbatch([...words, job], around);
    const env = { ...around?.env, SBATCH: "sbatch --hold --parsable", JOB: job };
    return slurm.run(["bash", "-c", line], { ...around, env });
  }

  test("the table is large", () => expect(TROUBLES.length).toBeGreaterThanOrEqual(80));

  test("with nothing wrong the job is warned", () => {
    expect(judged).toMatch(/^sbatch: lua: Neurarch: Qwen\/Qwen3-8B needs .* Submitted anyway\.\n$/);
  });

  for (const trouble of TROUBLES) {
    test(trouble.name, () => {
      const before = slurm.jobs();
      const { exit, out, err, ms } = submit(trouble);
      const wanted = typeof trouble.err === "function" ? trouble.err(slurm.home) : trouble.err;
      const seen = err
        .replaceAll(`${slurm.home}/`, "@")
        .replaceAll(BINARY, "GATE")
        .replace(/\(\d+\.\d+\.\d+\)/, "(VERSION)");
      expect({ exit, out }).toEqual({ exit: 0, out: expect.stringMatching(/^\d+\n$/) });
      if (wanted instanceof RegExp) expect(seen).toMatch(wanted);
      else expect(seen).toBe(wanted === "judged" ? judged : wanted.replaceAll(`${slurm.home}/`, "@"));
      expect(slurm.jobs()).toBe(before + 1);
      expect(ms).toBeLessThan(HELD_UP_MS);
    });
  }

  for (const [row, told] of CLOSED) {
    test(`a site that fails closed refuses: ${row}`, () => {
      const trouble = TROUBLES.find(({ name }) => name === row)!;
      const before = slurm.jobs();
      const { exit, out, err } = submit({ ...trouble, settings: { ...trouble.settings, fail_closed: true } });
      expect({ exit, out, err }).toMatchObject({ exit: 1, out: "" });
      const [first = "", ...rest] = err.split("\n");
      expect(first).toStartWith("sbatch: error: lua: Neurarch: ");
      expect(first).toMatch(told);
      expect(rest).toEqual(["sbatch: error: cli_filter plugin terminated with error", ""]);
      expect(slurm.jobs()).toBe(before);
    });
  }
});
