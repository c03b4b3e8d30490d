import type { Campaign } from "../bridge/types.ts";
import { loadSettings } from "../gate/load.ts";
import { plainJob } from "../gate/plain-job.ts";
import { makePolicy } from "../gate/policy.ts";
import { makeSizer, SKYPILOT_DEADLINE_MS } from "../gate/size.ts";
import { judgeTask } from "../gate/task.ts";

/** What the judge says of the accelerators before they are asked for. */
export interface CampaignVerdict {
  /** Why the campaign is not started; null = it is. */
  readonly refusal: string | null;
  /** For the log. */
  readonly warnings: readonly string[];
}

/**
 * Judges the profile's accelerators against the campaign's job facts, as `judge` does a request. A campaign that names
 * no model is not judged; what cannot be judged is let through and said.
 */
export async function judgeCampaign(
  campaign: Campaign,
  place: { readonly cwd: string; readonly env: Readonly<Record<string, string | undefined>> },
): Promise<CampaignVerdict> {
  if (campaign.job === null || campaign.job.model === undefined) return { refusal: null, warnings: [] };
  const { acceleratorType, acceleratorsPerNode, nodes } = campaign.resources;
  const settings = await loadSettings({ values: {}, switches: {} });
  const job = plainJob(
    { ...campaign.job, request: `${acceleratorType}:${acceleratorsPerNode}`, nodes: String(nodes) },
    settings,
  );
  const size = makeSizer(settings, { ...place, deadlineMs: SKYPILOT_DEADLINE_MS });
  const outcome = await judgeTask(job, settings, size, makePolicy(settings, { ...place, file: null }));
  const { messages, decision } = outcome;
  if (decision === "refuse")
    return { refusal: messages[0] ?? "the request does not hold the job", warnings: messages.slice(1) };
  return { refusal: null, warnings: messages };
}
