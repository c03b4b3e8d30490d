import { sandboxFiles } from "../bridge/mounts.ts";
import { runtimeNotes } from "../bridge/notes.ts";
import type { Campaign } from "../bridge/types.ts";
import { writeDurably } from "../host/durable-file.ts";
import { userId } from "../host/env.ts";
import { makePrivateFolder } from "../host/folder.ts";
import { pathInfo } from "../host/fs.ts";
import { dirname } from "../host/paths.ts";
import { GateError } from "../lib/errors.ts";

/**
 * Makes what the sandbox mounts and the daemon has not made yet: a container program refuses a mount whose source is
 * missing, or makes a folder in its place. Folders are 0700.
 * Throws `GateError("settings-invalid")` when one cannot be made.
 */
export function prepareSandbox(campaign: Campaign): void {
  const files = sandboxFiles(campaign);
  const shared = pathInfo(dirname(campaign.socketPath));
  if (shared !== null && (shared.uid !== userId() || (shared.mode & 0o077) !== 0))
    throw new GateError(
      "settings-invalid",
      `the socket's folder ${dirname(campaign.socketPath)} is not private, and the sandbox would see all of it`,
      "Give the socket a folder of its own (mkdir -m 700) with --socket.",
    );
  for (const folder of [campaign.stateDir, files.callerState, dirname(campaign.socketPath)]) {
    const problem = makePrivateFolder(folder);
    if (problem !== null)
      throw new GateError(
        "settings-invalid",
        `the folder ${folder} cannot be made: ${problem}`,
        "Name a folder of your own with --state and --socket.",
      );
  }
  const problem = writeDurably(campaign.stateDir, "environment.md", runtimeNotes(campaign));
  if (problem !== null)
    throw new GateError(
      "settings-invalid",
      `${files.notes} cannot be written: ${problem}`,
      "Make the folder writable, or name another one with --state.",
    );
}
