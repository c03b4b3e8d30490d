import { ENVIRONMENT_FILE, environmentText, environmentValues } from "../bridge/environment-file.ts";
import { runText } from "../bridge/run-text.ts";
import type { Campaign, EvaluationRequest } from "../bridge/types.ts";
import type { ExtraFile } from "./types.ts";

/** What a job runs, and what lies beside the candidate for it. */
export interface RemoteRun {
  readonly run: string;
  readonly extra: readonly ExtraFile[];
}

/** One evaluation as the remote side is to run it; the environment goes in a file, never in the text. */
export function remoteRun(
  campaign: Campaign,
  request: Pick<EvaluationRequest, "kind" | "arguments" | "artifacts">,
  nonce: string,
  env: Readonly<Record<string, string | undefined>>,
): RemoteRun {
  const { values } = environmentValues(campaign.environment, env);
  const text = environmentText(values);
  const run = runText({
    argv: [...campaign.commands[request.kind], ...request.arguments],
    artifactPath: request.artifacts[0] ?? null,
    setup: campaign.setup,
    environment: text !== "",
    commandPrefix: campaign.resources.commandPrefix,
    nonce,
  });
  const extra = text === "" ? [] : [{ name: ENVIRONMENT_FILE, text, mode: 0o600 }];
  return { run, extra };
}
