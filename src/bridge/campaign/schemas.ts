import * as v from "valibot";
import { oneOf, positiveNumber, shaped, text, texts, wholeNumber, yesNo } from "./leaves.ts";

/** `[D-]H:MM:SS` as Slurm's --time reads it; not zero, and no part beyond its unit. */
export const ALLOCATION_TIME = /^(?=.*[1-9])(?:\d+-(?:[01]?\d|2[0-3])|\d+):[0-5]\d:[0-5]\d$/;
const PROFILE_NAME = /^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$/;
/** Names of variables that a shell can be given. */
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

export const BACKEND = oneOf(["cuda", "rocm", "trainium"]);

export function described<Schema extends v.GenericSchema>(schema: Schema, about: string) {
  return v.pipe(schema, v.description(about));
}

const PROFILE = v.strictObject({
  runner: v.optional(described(oneOf(["skypilot"]), "What speaks to the cluster.")),
  infra: described(
    text("text, where SkyPilot is to go", 'Write it as SkyPilot does: infra = "slurm/CLUSTER/PARTITION".'),
    "Where SkyPilot goes, as it spells it: slurm/CLUSTER/PARTITION.",
  ),
  accelerator_backend: described(BACKEND, "What the accelerators are programmed with."),
  accelerator_type: described(
    shaped(
      /^[^:]*[^:\s][^:]*$/,
      "the name of an accelerator, without a count",
      'Write the type alone, for example "H100"; accelerators_per_node is the count.',
    ),
    "The accelerator as SkyPilot names it.",
  ),
  accelerators_per_node: described(
    wholeNumber(1, "Write how many a node has, for example 4."),
    "Accelerators of a node.",
  ),
  cpus_per_node: v.optional(
    described(
      wholeNumber(1, "Write how many a node has, for example 96."),
      "CPUs of a node; given to sky unless a request asks for fewer.",
    ),
  ),
  memory_gb_per_node: v.optional(
    described(
      positiveNumber("Write the memory of a node in GB, for example 480."),
      "Memory asked of a node, GB. SkyPilot's own 4 GB a CPU can be more than a node has.",
    ),
  ),
  max_nodes: v.optional(
    described(
      wholeNumber(1, "Write how many nodes a run may ask for."),
      "Most nodes that a run may ask for (1).",
    ),
  ),
  exclusive: v.optional(
    described(yesNo("Write it without quotes."), "Whole nodes for this run alone (true)."),
  ),
  remote_runtime_image: v.optional(
    described(
      text("the name of an image", "Name an image, or leave the key out."),
      "Container image, where SkyPilot starts it.",
    ),
  ),
  command_prefix: v.optional(
    described(
      texts("a list of words, none of them empty", 'Write one word an item: ["srun", "--overlap"].', 1),
      "Words put before the evaluator's: how a site starts its containers inside an allocation.",
    ),
  ),
  allocation_time: v.optional(
    described(
      shaped(
        ALLOCATION_TIME,
        'a length of time in quotes, such as "08:00:00"',
        "Write [D-]HH:MM:SS, with minutes and seconds below 60 and, behind days, hours below 24.",
      ),
      "Wall time asked for an allocation, [D-]HH:MM:SS.",
    ),
  ),
  remote_artifact_root: v.optional(
    described(
      text("a path", "Write a path that begins with /, $HOME or $USER's folder, or leave the key out."),
      "Persistent folder on the cluster for models, caches and large artifacts, made where it is missing; $USER and $HOME are expanded there.",
    ),
  ),
});

/** The operator's file, `~/.config/vibesys/clusters.toml`. */
export const CLUSTERS = v.strictObject({
  schema_version: v.optional(
    described(
      v.literal(1, "1, the version that is read\nWrite schema_version = 1, or leave it out."),
      "Version of this form.",
    ),
  ),
  profiles: described(
    v.pipe(
      v.record(
        v.pipe(
          v.string(),
          v.regex(
            PROFILE_NAME,
            "a profile's name: lower-case letters, digits, and . _ - between them, at most 64\nRename the profile.",
          ),
        ),
        PROFILE,
        "a table of profiles\nWrite each profile as [profiles.NAME].",
      ),
      v.minEntries(1, "a table with at least one profile\nAdd one as [profiles.NAME]."),
    ),
    "Profiles by name.",
  ),
});

const RESOURCES_TABLE = v.strictObject({
  nodes: v.optional(
    described(wholeNumber(1, "Write how many nodes the run needs, for example 1."), "Nodes (1)."),
  ),
  accelerators_per_node: described(
    wholeNumber(1, "Write how many accelerators of each node the run needs, for example 4."),
    "Accelerators of each node.",
  ),
  accelerator_backend: described(BACKEND, "What the accelerators are programmed with."),
  cpus_per_node: v.optional(
    described(
      wholeNumber(1, "Write how many CPUs of each node the run needs, or leave the key out."),
      "CPUs of each node (the profile's).",
    ),
  ),
});

/** The experiment's file, `resources.toml`: what it needs, on no cluster in particular. */
export const RESOURCES = v.strictObject({
  resources: described(RESOURCES_TABLE, "What the experiment needs."),
});

const COMMAND_MESSAGE =
  "a command line, or a list of its words\nWrite it as a shell would read it, or as a list of words.";
const COMMAND = v.union(
  [
    v.pipe(v.string(COMMAND_MESSAGE), v.regex(/\S/, COMMAND_MESSAGE)),
    texts("a list of words", "List its words.", 1),
  ],
  COMMAND_MESSAGE,
);
const path = (about: string) =>
  v.optional(described(text("a path", "Write a path; a relative one starts at this file's folder."), about));
const name = (remedy: string) =>
  v.pipe(v.string(`a name of a variable\n${remedy}`), v.regex(VARIABLE, `a name of a variable\n${remedy}`));

/** The one file of a campaign: what `bridge` is otherwise given in flags, and what only a file can say. */
export const CAMPAIGN = v.strictObject({
  run_id: v.optional(described(text("text", "Write the run's id."), "The run's id; names its cluster.")),
  workspace: path("The candidate's folder."),
  workspace_id: v.optional(
    described(
      text("text", "Write a name for the workspace."),
      "Names the workspace in records (the folder's name).",
    ),
  ),
  socket: path("The unix socket that clients connect to."),
  state: path("Folder of the run's records, snapshots and logs."),
  clusters: path("The operator's profiles (~/.config/vibesys/clusters.toml)."),
  profile: v.optional(
    described(text("a profile's name", "Name a profile of the clusters file."), "The profile to run on."),
  ),
  request: path("File with the [resources] of the experiment; or write that table here."),
  resources: v.optional(described(RESOURCES_TABLE, "What the experiment needs, in place of a request file.")),
  accuracy: v.optional(described(COMMAND, "The trusted accuracy command.")),
  benchmark: v.optional(described(COMMAND, "The trusted benchmark command.")),
  benchmark_output_flag: v.optional(
    described(
      text("a flag", 'Write the flag, for example "--output-json".'),
      "The flag that hands the benchmark its output path.",
    ),
  ),
  sky: v.optional(
    described(text("a program", "Write its path, or its name."), "The sky executable (sky, of PATH)."),
  ),
  error_frames: v.optional(
    described(oneOf(["mainline", "campaign"]), "Which clients the error frames are for (mainline)."),
  ),
  hide: v.optional(
    described(
      texts("a list of paths", 'List paths of the workspace: hide = ["private"].'),
      "Workspace paths that are never sent.",
    ),
  ),
  include: v.optional(
    described(
      texts("a list of patterns", 'List patterns: include = ["weights/*.safetensors"].'),
      "Patterns of model weights that are sent although they are large.",
    ),
  ),
  setup: v.optional(
    described(
      text("a shell text", "Write shell lines, or leave the key out."),
      "Shell text run before each evaluation, in the workdir.",
    ),
  ),
  retries: v.optional(
    described(
      wholeNumber(0, "Write how often an evaluation is tried again, for example 1."),
      "Further attempts after an infrastructure failure (1).",
    ),
  ),
  keep: v.optional(
    described(yesNo("Write it without quotes."), "Leaves the allocation when the daemon ends (false)."),
  ),
  timeout: v.optional(
    described(
      positiveNumber("Write seconds, for example 3600."),
      "Seconds one evaluation may run once it has started.",
    ),
  ),
  artifact_days: v.optional(
    described(
      wholeNumber(1, "Write days, for example 7."),
      "Days that files kept below the profile's remote_artifact_root stay there (7).",
    ),
  ),
  launch_timeout: v.optional(
    described(
      positiveNumber("Write seconds, for example 14400."),
      "Seconds an allocation may wait in the cluster's queue before it is given up (as long as it takes).",
    ),
  ),
  environment: v.optional(
    described(
      v.strictObject({
        allow: v.optional(
          described(
            v.array(
              name('List names: allow = ["HF_TOKEN"].'),
              'a list of names\nList names: allow = ["HF_TOKEN"].',
            ),
            "Variables of the daemon's own environment that the evaluation gets.",
          ),
        ),
        set: v.optional(
          described(
            v.record(
              name("Rename the variable."),
              v.string("text\nPut the value into quotes."),
              'a table of values\nWrite NAME = "value" lines.',
            ),
            "Further variables and their values, which are treated as secrets.",
          ),
        ),
      }),
      "The evaluation's environment; values never stand in an argument or a log.",
    ),
  ),
  job: v.optional(
    described(
      v.record(
        v.string(),
        v.union([v.string(), v.number(), v.boolean()], "text, a number or true/false\nWrite one value."),
        'a table of facts\nWrite facts as flags name them: model = "ORG/NAME".',
      ),
      "Facts of the job, by their flags' names; with a model the accelerators are judged before they are asked for.",
    ),
  ),
});
