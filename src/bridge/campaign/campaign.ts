import { GateError } from "../../lib/errors.ts";
import { resourceFingerprint, type Sha256Hex } from "../names.ts";
import { rewriteCommand } from "../rewrite.ts";
import { shellWords } from "../shell-words.ts";
import type { Campaign, EvaluationKind } from "../types.ts";
import { allocationSeconds } from "./allocation-time.ts";
import type { CampaignDraft } from "./draft.ts";
import { type Names, profileNamed, readClusters, readResources, resolveResources } from "./profiles.ts";
import { type RunRecord, readRunRecord, resumeRun } from "./run-record.ts";
import type { FileText } from "./toml.ts";

/** The files that a draft names, read. */
export interface CampaignTexts {
  readonly clusters: FileText;
  /** Null where the draft holds the request itself. */
  readonly request: FileText | null;
  /** `STATE/run.json`; `text` null where the run is new. */
  readonly record: { readonly path: string; readonly text: string | null };
}

/** What the outside world adds. */
export interface CampaignPlace {
  readonly names: Names;
  readonly sha256Hex: Sha256Hex;
  /** UTC, ISO 8601. */
  readonly now: string;
  /** Name and version of the program, for the record. */
  readonly program: string;
}

/**
 * Everything a daemon is started with, from a draft and the files that it names; with it the run's record as it is to
 * be written before anything else happens.
 * Throws `GateError("settings-invalid" | "input-invalid" | "usage")` naming file or flag, key and remedy.
 */
export function joinCampaign(
  draft: CampaignDraft,
  texts: CampaignTexts,
  place: CampaignPlace,
): { readonly campaign: Campaign; readonly record: RunRecord } {
  const previous =
    texts.record.text === null ? null : readRunRecord({ path: texts.record.path, text: texts.record.text });
  const profileName = draft.profileName ?? previous?.profile;
  if (profileName === undefined)
    throw draft.campaignPath === null
      ? new GateError(
          "usage",
          "--profile is missing, and the run is new",
          "Name a profile of the clusters file.",
        )
      : new GateError(
          "input-invalid",
          `${draft.campaignPath} has no \`profile\`, and the run is new`,
          'Write profile = "NAME", or give --profile.',
        );
  const profile = profileNamed(readClusters(texts.clusters, place.names), profileName, texts.clusters.path);
  const portable = "portable" in draft.request ? draft.request.portable : readResources(texts.request!);
  const places = { request: draft.request.path, clusters: texts.clusters.path };
  const resources = resolveResources(portable, profile, places);
  refuseTimeout(draft, resources.allocationTime, profile.name);
  const record = resumeRun(
    previous,
    {
      runId: draft.runId,
      workspaceId: draft.workspaceId,
      portable,
      launch: {
        at: place.now,
        profile: profile.name,
        infra: profile.infra,
        acceleratorType: profile.acceleratorType,
        fingerprint: resourceFingerprint(resources, portable.acceleratorBackend, place.sha256Hex),
        program: place.program,
      },
    },
    { record: texts.record.path, request: draft.request.path },
  );
  const commands: Record<EvaluationKind, readonly string[]> = {
    accuracy: commandOf(draft, "accuracy"),
    benchmark: commandOf(draft, "benchmark"),
  };
  const {
    request: _request,
    commands: _commands,
    profileName: _name,
    clustersPath: _path,
    campaignPath: _file,
    ...same
  } = draft;
  return { campaign: { ...same, profile, portable, resources, commands }, record };
}

function commandOf(draft: CampaignDraft, kind: EvaluationKind): readonly string[] {
  const { given, origin } = draft.commands[kind];
  const code = origin.startsWith("--") ? "usage" : "input-invalid";
  const words = typeof given === "string" ? shellWords(given) : ({ ok: true, value: given } as const);
  if (!words.ok) throw new GateError(code, `${origin} ${words.error.message}`, words.error.hint);
  const rewritten = rewriteCommand(words.value);
  if (!rewritten.ok) throw new GateError(code, `${origin} ${rewritten.error.message}`, rewritten.error.hint);
  return rewritten.value;
}

/** An evaluation that may run longer than its allocation would be moved to a new one for ever. */
function refuseTimeout(draft: CampaignDraft, allocationTime: string | null, profile: string): void {
  if (draft.timeoutS === null || allocationTime === null) return;
  if (draft.timeoutS <= allocationSeconds(allocationTime)) return;
  throw new GateError(
    "input-invalid",
    `\`timeout\` in ${draft.campaignPath ?? "the campaign file"} is ${draft.timeoutS} s, and profile ${profile} asks for allocations of ${allocationTime}`,
    "Lower the timeout, or raise the profile's allocation_time.",
  );
}
