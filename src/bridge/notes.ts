import { NO_PROFILER } from "./capabilities.ts";
import { MAX_ARTIFACT_BYTES } from "./markers.ts";
import { SANDBOX, sandboxSocket } from "./mounts.ts";
import { quoteWords } from "./shell-words.ts";
import type { Campaign } from "./types.ts";

/**
 * The runtime notes for the agent in the editor's sandbox, Markdown: what it can run, where, and what it must not
 * expect. Nothing in them is a secret: of the environment only the names are told.
 */
export function runtimeNotes(campaign: Campaign): string {
  const { resources, environment } = campaign;
  const names = [...environment.allow, ...Object.keys(environment.set)].sort();
  const evaluate = (kind: string, more: readonly string[] = []) =>
    `    ${quoteWords([SANDBOX.client, "evaluate", kind, ...more, "--socket", sandboxSocket(campaign)])}`;
  const sections = [
    "# Runtime environment",
    "",
    "This container edits; it has no accelerator and no credentials of the cluster. The trusted evaluations run on",
    "remote accelerators, and nothing else does: do not look for a GPU here, and do not try to reach the cluster.",
    "",
    "## Remote accelerators",
    "",
    `- Profile: ${campaign.profile.name}`,
    `- Nodes: ${resources.nodes}`,
    `- Accelerators per node: ${resources.acceleratorsPerNode} x ${resources.acceleratorType} (${campaign.portable.acceleratorBackend})`,
    ...(resources.cpusPerNode === null ? [] : [`- CPUs per node: ${resources.cpusPerNode}`]),
    ...(resources.memoryGbPerNode === null ? [] : [`- Memory per node: ${resources.memoryGbPerNode} GB`]),
    ...(resources.allocationTime === null
      ? []
      : [`- Wall time of an allocation: ${resources.allocationTime}`]),
    ...(resources.runtimeImage === null ? [] : [`- Image: ${resources.runtimeImage}`]),
    ...(resources.remoteArtifactRoot === null
      ? []
      : [`- Persistent folder for models and caches: ${resources.remoteArtifactRoot}`]),
    ...(campaign.timeoutS === null ? [] : [`- Time limit of one evaluation: ${campaign.timeoutS} s`]),
    ...(names.length === 0 ? [] : [`- Variables that an evaluation gets: ${names.join(", ")}`]),
    "",
    "## Evaluations",
    "",
    "Run the trusted commands, and only these:",
    "",
    evaluate("accuracy"),
    evaluate("benchmark", [campaign.benchmarkOutputFlag, "/tmp/vibesys-framework-benchmark-NAME.json"]),
    "",
    "- The workspace is sent as it is at that moment, uncommitted changes included.",
    `- The benchmark's output file comes back, up to ${MAX_ARTIFACT_BYTES / 1024} KiB. Of the other files that an evaluation writes, those`,
    "  come back that the call names, into a folder of yours outside the workspace:",
    `    ${quoteWords([SANDBOX.client, "evaluate", "benchmark", "--artifact", "profile/*.json", "--artifact-dir", "/tmp/returned"])}`,
    "- Exit 0: the evaluation passed. 1: the program failed. 130: it was cancelled. 2: no result; ask again.",
    "- After an exit 2 the next call of that kind collects the evaluation that is still open, of the workspace as it was",
    "  then. It says so; call once more to measure what you have changed since.",
    "- One evaluation runs at a time: parallel candidates are not measured, a second call waits.",
    `- ${NO_PROFILER}`,
    "",
    "## What is not sent",
    "",
    "Git-ignored files, caches, virtual environments, `.env` files, keys and credentials, and large model weights: keep",
    "models on the cluster's persistent storage.",
    ...(campaign.hide.length === 0
      ? []
      : [`Hidden as well: ${campaign.hide.map((path) => `\`${path}\``).join(", ")}.`]),
    ...(campaign.include.length === 0
      ? []
      : [`Sent although large: ${campaign.include.map((glob) => `\`${glob}\``).join(", ")}.`]),
  ];
  return `${sections.join("\n")}\n`;
}
