import { joinCampaign } from "../bridge/campaign/campaign.ts";
import { type CampaignFlags, draftCampaign, type Place } from "../bridge/campaign/draft.ts";
import type { RunRecord } from "../bridge/campaign/run-record.ts";
import type { FileText } from "../bridge/campaign/toml.ts";
import type { Campaign } from "../bridge/types.ts";
import { FACT_SPECS } from "../facts/keys.ts";
import { readValue } from "../facts/values.ts";
import { nowMs } from "../host/clock.ts";
import { decodeStrict, pathKind, readBytes } from "../host/fs.ts";
import { digest } from "../host/private-files.ts";
import { userNames } from "../host/user.ts";
import { GateError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";
import { readRunText } from "./run-record.ts";

/** Largest file of a campaign. */
const MAX_FILE_BYTES = 1_000_000;

export interface LoadedCampaign {
  readonly campaign: Campaign;
  /** To be written by the daemon (`writeRunRecord`) before it does anything else. */
  readonly record: RunRecord;
  /** Whether the run was launched before. */
  readonly resumed: boolean;
  /** The files that were read, for messages. */
  readonly files: { readonly campaign: string | null; readonly clusters: string; readonly request: string };
}

/**
 * Reads everything that a campaign is made of, and checks it against what lies on this host. Nothing is written.
 * Throws `GateError` naming file or flag, key and remedy.
 */
export function loadCampaign(
  flags: CampaignFlags,
  campaignPath: string | undefined,
  place: Place & { readonly program: string },
): LoadedCampaign {
  const file =
    campaignPath === undefined ? null : textOf(campaignPath, "Name the campaign's file with --campaign.");
  const draft = draftCampaign(flags, file, place);
  if (pathKind(draft.workspace) !== "directory")
    throw new GateError(
      "input-invalid",
      `the workspace ${draft.workspace} is not a folder`,
      "Name the candidate's folder: --workspace, or `workspace` in the campaign file.",
    );
  const clusters = textOf(
    draft.clustersPath,
    "Write the operator's profiles there, or name the file with --clusters; `neurarch-gate schema clusters` has its form.",
    "settings-invalid",
  );
  const request =
    "portable" in draft.request
      ? null
      : textOf(
          draft.request.path,
          "Name the experiment's request with --request; `neurarch-gate schema resources` has its form.",
        );
  const recordText = readRunText(draft.stateDir);
  const { campaign, record } = joinCampaign(
    draft,
    { clusters, request, record: recordText },
    {
      names: userNames(place.environment),
      sha256Hex: digest,
      now: new Date(nowMs()).toISOString(),
      program: place.program,
    },
  );
  if (campaign.job !== null) checkJob(campaign.job, draft.campaignPath ?? "the campaign file");
  return {
    campaign,
    record,
    resumed: recordText.text !== null,
    files: { campaign: draft.campaignPath, clusters: draft.clustersPath, request: draft.request.path },
  };
}

function textOf(
  path: string,
  remedy: string,
  code: "input-unreadable" | "settings-invalid" = "input-unreadable",
): FileText {
  const bytes = readBytes(path, MAX_FILE_BYTES);
  if (!bytes.ok) throw new GateError(code, bytes.error.message, remedy);
  const text = decodeStrict(bytes.value);
  if (text === null) throw new GateError(code, `${path} is not UTF-8 text`, "Save it as UTF-8.");
  return { path, text: text.replace(/^\uFEFF/, "") };
}

/** The job's facts as the judge will read them: a value that cannot be read would leave the run unjudged. */
function checkJob(job: Readonly<Record<string, string>>, path: string): void {
  for (const [key, value] of Object.entries(job)) {
    const spec = FACT_SPECS.find(({ flag }) => flag === key);
    if (spec === undefined) {
      const known = FACT_SPECS.map(({ flag }) => flag);
      const near = nearest(key, known);
      throw new GateError(
        "input-invalid",
        `${path} has the unknown key \`job.${shown(key)}\``,
        near === null ? `Known keys: ${known.join(", ")}.` : `Did you mean \`${near}\`?`,
      );
    }
    const read = readValue(spec, value);
    if (!read.ok)
      throw new GateError(
        "input-invalid",
        `\`job.${key}\` in ${path} ${read.error.fault}`,
        `Write ${key} = ${JSON.stringify(read.error.write)}.`,
      );
  }
}
