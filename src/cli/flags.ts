import type { ArgsDef } from "citty";
import { FACT_SPECS, type FactSpec } from "../facts/keys.ts";
import { MODES, SIZINGS } from "../gate/settings.ts";
import { REPO_POLICIES } from "../policy/types.ts";

function valueHint(spec: FactSpec): string {
  switch (spec.form.kind) {
    case "choice":
      return spec.form.values.join("|");
    case "switch":
      return "on|off";
    case "model":
      return "ID";
    default:
      return "N";
  }
}

/** `--model --batch --seq-len ...`: the job's facts, the same in every command that judges or sizes. */
export function jobFlags(options: { readonly withModel: boolean }): ArgsDef {
  return Object.fromEntries(
    FACT_SPECS.filter((spec) => options.withModel || spec.key !== "model").map((spec) => [
      spec.flag,
      {
        type: "string",
        valueHint: valueHint(spec),
        description: `${spec.about} (${spec.byDefaultText})`,
      } as const,
    ]),
  );
}

export const MODE_FLAG = {
  mode: { type: "enum", options: [...MODES], description: "Slurm: tell people, or also refuse (warn)" },
} as const satisfies ArgsDef;

/** What a site sets; each flag lies over the same key of the site file. */
export const SITE_FLAGS = {
  ...MODE_FLAG,
  annotate: { type: "boolean", description: "Slurm: also print a comment= line" },
  config: {
    type: "string",
    valueHint: "FILE",
    description: "site settings (/etc/neurarch/gate.toml when it exists)",
  },
  "max-cost-usd": {
    type: "string",
    valueHint: "USD",
    description: "refuse a run whose list price is over this",
  },
  prices: { type: "string", valueHint: "FILE", description: "JSON: card -> USD per card-hour" },
  cards: { type: "string", valueHint: "FILE", description: "JSON: further cards with their capacity" },
  "gpu-map": { type: "string", valueHint: "FILE", description: "JSON: the site's GPU type -> card" },
  "partition-map": {
    type: "string",
    valueHint: "FILE",
    description: "JSON: partition -> GPU type, for untyped requests",
  },
  "default-gpu-type": { type: "string", valueHint: "TYPE", description: "what an untyped gpu:N means here" },
  headroom: { type: "string", valueHint: "X", description: "need = peak x this (1.15)" },
  "hours-from-time": {
    type: "boolean",
    description: "Slurm's --time stands in where the job names no hours",
  },
  mutate: { type: "boolean", description: "rewrite an over-request to the cheapest that holds the job" },
  "fail-closed": { type: "boolean", description: "refuse when we cannot answer, instead of admitting" },
  sizing: { type: "enum", options: [...SIZINGS], description: "where the size comes from (auto)" },
  cli: { type: "string", valueHint: "CMD", description: "command line of an external sizing CLI" },
  "plan-url": { type: "string", valueHint: "URL", description: "hosted plan that graphs are sent to" },
  timeout: { type: "string", valueHint: "S", description: "seconds for one sizing source" },
  cluster: { type: "string", valueHint: "NAME", description: "the cluster's name" },
  "policy-file": {
    type: "string",
    valueHint: "FILE",
    description: "policy file for every job, in place of the nearest .neurarch.yml",
  },
  "repo-policy": {
    type: "enum",
    options: [...REPO_POLICIES],
    description: "what a policy file may do (honour)",
  },
  "client-sizing": {
    type: "boolean",
    description: "SkyPilot: take a size from the client where the model cannot be read here (on)",
  },
  ledger: {
    type: "string",
    valueHint: "DIR",
    description: "folder, or collector, that verdicts go to (none)",
  },
  "ledger-anonymous": { type: "boolean", description: "record salted digests in place of users' names" },
} as const satisfies ArgsDef;

/** Slurm's own long option names, as the filter hands them over. */
export const SLURM_OPTION_FLAGS = Object.fromEntries(
  [
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
    "nodelist",
    "nodes",
    "time",
    "partition",
    "array",
    "exclusive",
    "constraint",
    "comment",
  ].map((name) => [name, { type: "string", valueHint: "VALUE", description: `Slurm's --${name}` } as const]),
) satisfies ArgsDef;

/** How the answer is written. */
export const OUTPUT_FLAGS = {
  json: { type: "boolean", description: "one JSON document on stdout" },
  output: { type: "enum", options: ["human", "json"], description: "the same by name (human)" },
} as const satisfies ArgsDef;

/** Where a command has more to say than its answer. */
export const QUIET_FLAG = {
  quiet: { type: "boolean", description: "nothing but errors on stderr" },
} as const satisfies ArgsDef;

/** The values a parsed command line gives for the flags of one group. */
export function pick(values: Readonly<Record<string, string>>, group: ArgsDef): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter(([name]) => Object.hasOwn(group, name)));
}
