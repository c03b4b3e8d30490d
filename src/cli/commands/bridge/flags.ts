import type { ArgsDef } from "citty";
import type { CampaignFlags } from "../../../bridge/campaign/draft.ts";
import { type LoadedCampaign, loadCampaign } from "../../../daemon/campaign-files.ts";
import { environment, workingDirectory } from "../../../host/env.ts";
import type { Command, ParsedWords } from "../../command.ts";
import { version } from "../../version.ts";

/** What a campaign is given by: one file, or these flags, or flags over a file. */
export const CAMPAIGN_FLAGS = {
  campaign: { type: "string", valueHint: "FILE", description: "all of this in one file; flags lie over it" },
  socket: { type: "string", valueHint: "PATH", description: "unix socket that clients connect to" },
  workspace: { type: "string", valueHint: "DIR", description: "the candidate's folder" },
  "run-id": { type: "string", valueHint: "ID", description: "the run's id; names its cluster" },
  profile: {
    type: "string",
    valueHint: "NAME",
    description: "profile of the clusters file (the resumed run's)",
  },
  request: { type: "string", valueHint: "FILE", description: "the experiment's [resources]" },
  accuracy: { type: "string", valueHint: "CMD", description: "trusted accuracy command" },
  benchmark: { type: "string", valueHint: "CMD", description: "trusted benchmark command" },
  "benchmark-output-flag": {
    type: "string",
    valueHint: "FLAG",
    description: "flag that hands the benchmark its output path",
  },
  clusters: {
    type: "string",
    valueHint: "FILE",
    description: "the operator's profiles (~/.config/vibesys/clusters.toml)",
  },
  state: {
    type: "string",
    valueHint: "DIR",
    description: "records, snapshots and logs (~/.local/state/neurarch/bridge/ID)",
  },
  sky: { type: "string", valueHint: "PATH", description: "sky executable (sky, of PATH)" },
  "error-frames": {
    type: "enum",
    options: ["mainline", "campaign"],
    description: "which clients the error frames are for (mainline)",
  },
  hide: { type: "string", valueHint: "PATH", description: "workspace path that is never sent; repeatable" },
  include: {
    type: "string",
    valueHint: "GLOB",
    description: "large model weights that are sent all the same; repeatable",
  },
  setup: { type: "string", valueHint: "CMD", description: "shell text run before each evaluation" },
  retries: {
    type: "string",
    valueHint: "N",
    description: "further attempts after an infrastructure failure (1)",
  },
  keep: { type: "boolean", description: "leave the allocation when the daemon ends" },
} as const satisfies ArgsDef;

/** How those flags are read: shared by every command that has them. */
export const CAMPAIGN_MANNERS = {
  repeatable: ["hide", "include"],
  verbatim: ["benchmark-output-flag"],
} as const satisfies Partial<Command>;

/** Reads and checks the campaign that a command line names. Throws `GateError`. */
export function campaignOf(input: ParsedWords): LoadedCampaign {
  return loadCampaign(campaignFlags(input), input.values.campaign, {
    cwd: workingDirectory(),
    environment: environment(),
    program: `neurarch-gate ${version()}`,
  });
}

function campaignFlags({ values, lists, switches }: ParsedWords): CampaignFlags {
  return { values, lists, switches };
}
