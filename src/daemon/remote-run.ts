import { ENVIRONMENT_FILE, environmentText, environmentValues } from "../bridge/environment-file.ts";
import { runText } from "../bridge/run-text.ts";
import type { Campaign, EvaluationRequest } from "../bridge/types.ts";
import type { ExtraFile } from "./types.ts";

/** Days that files of ours stay below the persistent folder unless the campaign says otherwise. */
const ARTIFACT_DAYS = 7;

/** The folder of an attempt's files: no two attempts share one, whatever became of the first. */
export function attemptFolderName(jobName: string, nonce: string): string {
  return `${jobName}-${nonce.slice(0, 12)}`;
}

/** What a job runs, and what lies beside the candidate for it. */
export interface RemoteRun {
  readonly run: string;
  readonly extra: readonly ExtraFile[];
}

/** One evaluation as the remote side is to run it; the environment goes in a file, never in the text. */
export function remoteRun(
  campaign: Campaign,
  request: Pick<EvaluationRequest, "kind" | "arguments" | "artifacts" | "declared">,
  { nonce, jobName }: { readonly nonce: string; readonly jobName: string },
  env: Readonly<Record<string, string | undefined>>,
): RemoteRun {
  const { values } = environmentValues(campaign.environment, env);
  const text = environmentText(values);
  const { remoteArtifactRootWritten: written } = campaign.resources;
  const root = written === undefined ? null : { written, days: campaign.artifactDays ?? ARTIFACT_DAYS };
  const run = runText({
    argv: [...campaign.commands[request.kind], ...request.arguments],
    artifactPath: request.artifacts[0] ?? null,
    setup: campaign.setup,
    environment: text !== "",
    commandPrefix: campaign.resources.commandPrefix,
    nonce,
    ...(root === null ? {} : { root: root.written }),
    ...(request.declared === undefined
      ? {}
      : {
          collect: {
            declared: request.declared,
            nonce,
            folder: attemptFolderName(jobName, nonce),
            root,
          },
        }),
  });
  const extra = text === "" ? [] : [{ name: ENVIRONMENT_FILE, text, mode: 0o600 }];
  return { run, extra };
}
