import { directiveFacts } from "../../../src/facts/directives.ts";
import { FACT_SPECS } from "../../../src/facts/keys.ts";
import { readFacts } from "../../../src/facts/read.ts";
import { readValue } from "../../../src/facts/values.ts";
import { slurmJob } from "../../../src/gate/slurm-job.ts";
import { judgeTask } from "../../../src/gate/task.ts";
import { commentOf, filterLines } from "../../../src/render/lines.ts";
import { arrayTasks } from "../../../src/request/array.ts";
import { readGres } from "../../../src/request/gres.ts";
import { countHosts, readNodes, readTasks } from "../../../src/request/nodes.ts";
import { plainRequest } from "../../../src/request/plain.ts";
import { slurmRequest } from "../../../src/request/slurm.ts";
import { hoursOfTime } from "../../../src/request/time.ts";
import { readDirectives } from "../../../src/slurm/comments.ts";
import { readSacct } from "../../../src/slurm/sacct.ts";
import { cardsOf, gpuMemoryGb, hostMemoryBytes } from "../../../src/slurm/sacct-fields.ts";
import { readScript } from "../../../src/slurm/script.ts";
import { readSlurmConf } from "../../../src/slurm/slurm-conf.ts";
import { OPTION_WORDS, SCRIPTS } from "./corpus.ts";
import { mutated, ODD, type Random } from "./random.ts";
import { ENV, policyOf, SITES, size } from "./settings.ts";
import { hold, isOneLine, type Target, target } from "./target.ts";

const FACT_WORDS = FACT_SPECS.flatMap(({ flag }) => [`${flag}=`, ` ${flag}=1 `, ` ${flag}=none `]);
const PIECES: readonly string[] = [
  "#SBATCH ",
  "#NEURARCH ",
  "#SLURM ",
  "#",
  "#!/bin/sh\n",
  "\n",
  "\r\n",
  " ",
  "\t",
  "hetjob",
  "packjob",
  "--gres=",
  "--gpus",
  "-N",
  "-n ",
  "--nodes=",
  "--ntasks-per-node=",
  "--exclusive",
  "--array=",
  "--time=",
  "gpu:",
  "gres:",
  "gres/",
  "shard:",
  "a10g",
  "h100:",
  "a100_3g.20gb:",
  "mps:",
  "(S:0-1)",
  "none",
  ",",
  ":",
  "=",
  "[1-4]",
  "0-9",
  "%",
  "k",
  "M",
  '"',
  "'",
  "\\",
  "model=Qwen/Qwen3-8B",
  "model=gpt2 ",
  "batch=8",
  "seq-len=",
  "lora-rank=",
  "precision=bf16 ",
  "quant=nf4",
  "2",
  "16",
  "1-00:00:00",
  "train\n",
  "\u0000",
  "\ufeff",
  ...FACT_WORDS,
];

const script = (random: Random): string =>
  random.once(4) ? random.soup(PIECES, 40) : mutated(random, random.of(SCRIPTS), PIECES);

const VALUE_PIECES = [
  "gpu",
  "gres:",
  "gres/",
  "shard",
  "mps",
  "craynetwork",
  ":",
  "=",
  ",",
  "a10g",
  "h100",
  "tesla_v100-sxm2-32gb",
  "a100_1g.5gb",
  "a100-80",
  "1",
  "2",
  "08",
  "-",
  "+",
  "k",
  "M",
  "G",
  ".",
  "(S:0-1)",
  "(IDX:0)",
  "(",
  ")",
  "[",
  "]",
  "none",
  "no_consume",
  "gpu[1-4]",
  "0",
  "999999999",
  "/",
  " ",
  "x2",
];
const OPTIONS = [
  "gres",
  "gpus",
  "gpus-per-node",
  "gpus-per-socket",
  "gpus-per-task",
  "tres-per-task",
  "tres-per-node",
  "ntasks",
  "ntasks-per-node",
  "ntasks-per-gpu",
  "ntasks-per-socket",
  "ntasks-per-tres",
  "cpus-per-task",
  "sockets-per-node",
  "cores-per-socket",
  "threads-per-core",
  "extra-node-info",
  "nodes",
  "nodelist",
  "time",
  "partition",
  "array",
  "exclusive",
  "comment",
  "job-name",
];
const value = (random: Random): string => {
  if (random.once(3)) return random.soup(VALUE_PIECES, 8);
  const word = random.of(OPTION_WORDS);
  const whole = word.includes("=") ? word.slice(word.indexOf("=") + 1) : word.replace(/^-+\w?/, "");
  return random.once(3) ? whole : mutated(random, whole, VALUE_PIECES);
};

function options(random: Random): Record<string, string> {
  const given: Record<string, string> = {};
  for (let left = random.int(5) + 1; left > 0; left--) given[random.of(OPTIONS)] = value(random);
  if (random.once(20)) given[random.of(ODD)] = value(random);
  return given;
}

const environment = (random: Random): Record<string, string> => {
  const env: Record<string, string> = { ...ENV };
  if (random.once(3))
    env.NEURARCH_MODEL = random.once(2) ? "Qwen/Qwen3-0.6B" : random.of(ODD) + random.of(PIECES);
  if (random.once(4)) env[random.of(FACT_SPECS).env] = random.once(2) ? "4" : random.of(ODD);
  return env;
};

const LINE = /^decision=(?:allow|warn|reject)\n(?:message=[^\n]+\n)*(?:comment=[^\n]+\n)?$/;

export const SLURM_TARGETS: readonly Target[] = [
  target({
    name: "slurm-script",
    input: script,
    check(text) {
      const read = readScript(text);
      hold(read.components.length > 0, "there is always a component");
      for (const { message } of read.notes)
        hold(isOneLine(message), `a note of more than one line: ${JSON.stringify(message)}`);
      // What a submit reads alone is what is read of the whole.
      const same = JSON.stringify(readDirectives(text)) === JSON.stringify(read.neurarch);
      hold(same, "the directives of a submit are others than those of the script");
    },
  }),
  target({
    name: "slurm-directives",
    input: (random) =>
      random.once(2)
        ? random.soup(PIECES, 20)
        : mutated(random, "model=Qwen/Qwen3-8B batch=8 seq-len=2048 lora-rank=16", PIECES),
    check(text) {
      const reading = readFacts(directiveFacts([{ text, line: 1 }]), {
        unknownKeys: "report",
        siteDefaults: {},
        notes: [],
      });
      if (reading.kind === "facts") hold(reading.facts.batch.value >= 1, "a batch below 1");
    },
  }),
  target({
    name: "gres",
    input: (random) => ({ text: value(random), syntax: random.of(["gres", "tres", "gpus"] as const) }),
    check({ text, syntax }) {
      const list = readGres(text, syntax);
      for (const { count } of list.gpus.values())
        hold(count >= 0 && Number.isSafeInteger(count), `a count that is none: ${count}`);
    },
  }),
  target({
    name: "slurm-request",
    input: (random) => ({ options: options(random), site: random.int(SITES.length) }),
    check({ options: given, site }) {
      const request = slurmRequest(given, SITES[site]!.table, {
        defaultGpuType: SITES[site]!.defaultGpuType,
        partitionMap: SITES[site]!.partitionMap,
      });
      for (const { count, nodes } of request.candidates)
        hold((count === null || count > 0) && (nodes === null || nodes > 0), "a request of no cards");
    },
  }),
  target({
    name: "slurm-amounts",
    input: value,
    check(text) {
      const hours = hoursOfTime(text);
      hold(hours === null || (Number.isFinite(hours) && hours >= 0), `hours ${hours}`);
      const tasks = arrayTasks(text);
      hold(tasks === null || (Number.isSafeInteger(tasks) && tasks >= 0), `tasks ${tasks}`);
      const hosts = countHosts(text);
      hold(hosts === null || (Number.isSafeInteger(hosts) && hosts >= 0), `hosts ${hosts}`);
      readNodes(text);
      readTasks(text);
      const memory = [hostMemoryBytes(text), gpuMemoryGb(text), cardsOf(text)];
      hold(
        memory.every((amount) => amount === null || amount >= 0),
        `memory ${memory}`,
      );
      plainRequest(text, text, SITES[0]!.table);
    },
  }),
  target({
    name: "fact-values",
    input: (random) => ({
      spec: random.int(FACT_SPECS.length),
      text: random.once(2)
        ? random.of(ODD) + random.of(ODD)
        : mutated(random, random.of(["8", "0.5", "bf16", "none", "on", "Qwen/Qwen3-8B", "1e3"]), PIECES),
    }),
    check({ spec, text }) {
      const read = readValue(FACT_SPECS[spec]!, text);
      if (!read.ok || read.value === null) return;
      // A value that was read reads the same when it is written again.
      const again = readValue(FACT_SPECS[spec]!, String(read.value));
      hold(
        again.ok && again.value === read.value,
        `${JSON.stringify(text)} is ${read.value}, and that is ${JSON.stringify(again)}`,
      );
    },
  }),
  target({
    name: "slurm-judge",
    share: 4,
    input: (random) => ({
      text: script(random),
      options: random.once(2) ? options(random) : null,
      env: environment(random),
      site: random.int(SITES.length),
    }),
    async check({ text, options: given, env, site }) {
      const settings = SITES[site]!;
      const read = readScript(text);
      for (const component of read.components.slice(0, 3)) {
        const job = slurmJob(
          {
            name: null,
            options: given ?? component.options,
            directives: read.neurarch,
            env,
            flags: {},
            notes: [],
          },
          settings,
        );
        const outcome = await judgeTask(job, settings, size, policyOf);
        const { result, request, telling, messages } = outcome;
        const comment = result !== null && telling !== null ? commentOf(result, request, telling) : null;
        const mode = outcome.closed ? "reject" : settings.mode;
        const lines = filterLines({ decision: outcome.decision, mode, messages, comment });
        hold(LINE.test(lines), `no decision: ${JSON.stringify(lines)}`);
        for (const line of lines.split("\n"))
          hold(isOneLine(line), `a line that steers a terminal: ${JSON.stringify(line)}`);
      }
    },
  }),
  target({
    name: "sacct",
    input: (random) => {
      const head = "JobID|Cluster|User|Submit|State|ExitCode|Comment|TRESUsageInTot|ReqTRES";
      const row =
        "123_4|lab|ada|2026-11-30T10:00:00|FAILED|1:0|neurarch:fits need=1.0GB on h100:1|gres/gpumem=100M|billing=1,gres/gpu=2,mem=4G";
      return mutated(
        random,
        `${head}\n${row}\n123.batch|lab|ada|2026-11-30T10:00:00|OUT_OF_MEMORY|0:125|||\n7+1|lab|x|1700000000|RUNNING|0:0|||\n`,
        ["|", "\n", "[1-5%2]", "_", "+", ".", "0:9", "COMPLETED", "1970-01-01T00:00:00", ...VALUE_PIECES],
      );
    },
    check(text) {
      const reading = readSacct(text);
      for (const job of reading?.jobs ?? []) hold(job.tasks >= 1, "a job of no tasks");
    },
  }),
  target({
    name: "slurm-conf",
    input: (random) =>
      mutated(
        random,
        'ClusterName=lab\nCliFilterPlugins=cli_filter/lua,x # y\nInclude other.conf\nNodeName=a[1-2] \\\n Gres="gpu:2"\n',
        ["Include ", "include x.conf\n", "=", "\\\n", "#", "\n"],
      ),
    check(text) {
      readSlurmConf("/etc/slurm/slurm.conf", () => text);
    },
  }),
];
