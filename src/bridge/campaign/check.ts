import { clusterName, resourceFingerprint, type Sha256Hex } from "../names.ts";
import { quoteWords } from "../shell-words.ts";
import type { Campaign } from "../types.ts";

/** A campaign that was found to be in order. */
export interface CheckedCampaign {
  readonly campaign: Campaign;
  readonly resumed: boolean;
  /** What is allowed and may surprise. */
  readonly notes: readonly string[];
}

/** What is no mistake of a file and still keeps a run from doing what is expected, one sentence each. */
export function checkNotes(
  campaign: Campaign,
  place: { readonly skyFound: boolean; readonly environment: Readonly<Record<string, string | undefined>> },
): readonly string[] {
  const unset = campaign.environment.allow.filter((name) => place.environment[name] === undefined);
  return [
    place.skyFound ? [] : [`${campaign.skyPath} is not in PATH here; the daemon will not start without it.`],
    unset.map((name) => `environment.allow names ${name}, which is not set here; evaluations go without it.`),
    campaign.job !== null && campaign.job.model === undefined
      ? ["The job table names no model, so the accelerators are not judged."]
      : [],
    campaign.resources.allocationTime === null
      ? ["The profile sets no allocation_time: the partition's own limit is the only one."]
      : [],
  ].flat();
}

function clusterOf(campaign: Campaign, sha256Hex: Sha256Hex): string {
  const { acceleratorBackend } = campaign.portable;
  return clusterName(
    campaign.runId,
    resourceFingerprint(campaign.resources, acceleratorBackend, sha256Hex),
    sha256Hex,
  );
}

/** One fact a line, for people. Values of the environment are not among them. */
export function checkLines({ campaign, resumed, notes }: CheckedCampaign, sha256Hex: Sha256Hex): string {
  const { resources, commands } = campaign;
  const each = resources.nodes === 1 ? "" : `${resources.nodes} nodes of `;
  const lines = [
    `Run ${campaign.runId} is ${resumed ? "resumed" : "new"}; its cluster is ${clusterOf(campaign, sha256Hex)}.`,
    `Profile ${campaign.profile.name}: ${each}${resources.acceleratorsPerNode} x ${resources.acceleratorType} on ${resources.infra}${resources.allocationTime === null ? "" : `, for ${resources.allocationTime}`}.`,
    `Accuracy: ${quoteWords(commands.accuracy)}`,
    `Benchmark: ${quoteWords(commands.benchmark)} ${campaign.benchmarkOutputFlag} PATH`,
    `Socket ${campaign.socketPath}, state ${campaign.stateDir}.`,
    ...notes.map((note) => `Note: ${note}`),
    "The campaign is in order.",
  ];
  return `${lines.join("\n")}\n`;
}

/** The same for programs. */
export function checkDocument(
  { campaign, resumed, notes }: CheckedCampaign,
  sha256Hex: Sha256Hex,
): Record<string, unknown> {
  const { environment, resources } = campaign;
  return {
    schema: "neurarch-gate/bridge-check",
    version: 1,
    runId: campaign.runId,
    workspaceId: campaign.workspaceId,
    workspace: campaign.workspace,
    socket: campaign.socketPath,
    state: campaign.stateDir,
    resumed,
    cluster: clusterOf(campaign, sha256Hex),
    resources,
    commands: campaign.commands,
    benchmarkOutputFlag: campaign.benchmarkOutputFlag,
    errorFrames: campaign.errorFrames,
    hide: campaign.hide,
    include: campaign.include,
    retries: campaign.retries,
    keep: campaign.keep,
    timeoutS: campaign.timeoutS,
    launchTimeoutS: campaign.launchTimeoutS,
    // Names only: values are secrets.
    environment: { allow: environment.allow, set: Object.keys(environment.set) },
    job: campaign.job,
    notes,
  };
}
