import { combineSlurm } from "../facts/combine.ts";
import { type DirectiveLine, directiveFacts } from "../facts/directives.ts";
import { envFacts } from "../facts/env.ts";
import { flagFacts } from "../facts/flags.ts";
import { specOfRaw } from "../facts/raw.ts";
import { readFacts } from "../facts/read.ts";
import type { Place } from "../lib/place.ts";
import { arrayTasks } from "../request/array.ts";
import { slurmRequest } from "../request/slurm.ts";
import { optionOf, type SlurmOptions } from "../request/slurm-options.ts";
import { hoursOfTime } from "../request/time.ts";
import type { Settings } from "./settings.ts";
import type { JobPlace, TaskJob } from "./task.ts";
import { requestOption, slurmWords } from "./words.ts";

/** What is known of a Slurm job: its options, its `#NEURARCH` lines, the submitting environment, our own flags. */
export interface SlurmSources {
  readonly name: string | null;
  readonly options: SlurmOptions;
  readonly directives: readonly DirectiveLine[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly flags: Readonly<Record<string, string>>;
  readonly notes: readonly string[];
  /** Where an option stands in the script; null for one that is not there. Absent without a script. */
  readonly placeOf?: (option: string) => Place | null;
  /** Where the job begins in it. */
  readonly begins?: Place | null;
}

/** A Slurm job (or one component of a heterogeneous one) as a task to judge. */
export function slurmJob(sources: SlurmSources, settings: Settings): TaskJob {
  const { options } = sources;
  const combined = combineSlurm({
    directives: directiveFacts(sources.directives),
    env: envFacts(sources.env),
    flags: flagFacts(sources.flags),
  });
  const reading = readFacts(combined.raw, {
    unknownKeys: "report",
    siteDefaults: settings.factDefaults,
    notes: combined.notes,
  });
  const array = optionOf(options, "array");
  const tasks = array === null ? 1 : arrayTasks(array);
  const time = optionOf(options, "time");
  const fromEnvironment = combined.raw.some(
    (fact) => fact.from.kind === "env" && specOfRaw(fact)?.key === "model",
  );
  return {
    name: sources.name,
    reading,
    request: slurmRequest(options, settings.table, {
      defaultGpuType: settings.defaultGpuType,
      partitionMap: settings.partitionMap,
    }),
    words: slurmWords(options, fromEnvironment),
    unreadable: "unjudged",
    tasks: tasks ?? 1,
    useSpot: false,
    fallbackHours: settings.hoursFromTime && time !== null ? hoursOfTime(time) : null,
    rewriteCards: null,
    rewritable: false,
    mark: null,
    notTraining: null,
    notes:
      tasks === null && settings.maxCostUsd !== null
        ? [...sources.notes, `The array ${array} cannot be read, so the cost counts one task.`]
        : sources.notes,
    ...(sources.placeOf === undefined ? {} : { where: placeIn(sources, sources.placeOf) }),
  };
}

/** A script makes one request: all that it may come to stands where that option does. */
function placeIn({ options, begins }: SlurmSources, placeOf: (option: string) => Place | null): JobPlace {
  const option = requestOption(options);
  const job = (option === null ? null : placeOf(option)) ?? begins ?? null;
  return { candidates: [job], job };
}
