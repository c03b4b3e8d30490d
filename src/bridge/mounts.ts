import { folderOf, nameOf } from "./campaign/paths.ts";
import { quoteWords } from "./shell-words.ts";
import type { Campaign } from "./types.ts";

export const MOUNT_FORMATS = ["docker", "podman", "apptainer", "env"] as const;
export type MountFormat = (typeof MOUNT_FORMATS)[number];

/** The variable by which clients find the folder of their tokens. */
export const CALLER_STATE = "VIBESYS_SKYPILOT_CALLER_STATE";
/** The variable that keeps NVIDIA's container runtime, where it is the default one, from adding devices by itself. */
const NO_DEVICES = ["NVIDIA_VISIBLE_DEVICES", "void"] as const;

/** Where things are within the editor's sandbox. */
export const SANDBOX = {
  workspace: "/workspace",
  bridge: "/opt/vibesys-skypilot",
  callerState: "/opt/vibesys-skypilot-caller",
  notes: "/opt/vibesys-runtime/environment.md",
  client: "/opt/neurarch/neurarch-gate",
} as const;

export interface Mount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/** What a run keeps for its sandbox, below its state folder. */
export function sandboxFiles(campaign: Campaign): { readonly callerState: string; readonly notes: string } {
  return { callerState: `${campaign.stateDir}/caller`, notes: `${campaign.stateDir}/environment.md` };
}

/** The socket's path within the sandbox. */
export function sandboxSocket(campaign: Campaign): string {
  return `${SANDBOX.bridge}/${nameOf(campaign.socketPath)}`;
}

/**
 * What the editor's sandbox gets: the candidate, the folder of the socket (a restarted daemon's socket is another
 * file, so the file itself would go stale), a folder for the clients' tokens, the notes and the client. Nothing else:
 * no home, no keys, no state of the run.
 */
export function sandboxMounts(campaign: Campaign, executable: string): readonly Mount[] {
  const files = sandboxFiles(campaign);
  return [
    { source: campaign.workspace, target: SANDBOX.workspace, readOnly: false },
    { source: folderOf(campaign.socketPath), target: SANDBOX.bridge, readOnly: true },
    { source: files.callerState, target: SANDBOX.callerState, readOnly: false },
    { source: files.notes, target: SANDBOX.notes, readOnly: true },
    { source: executable, target: SANDBOX.client, readOnly: true },
  ];
}

/** The flags for a container program, as one line of shell words, or the environment as lines for `eval`. */
export function mountsText(campaign: Campaign, executable: string, format: MountFormat): string {
  const mounts = sandboxMounts(campaign, executable);
  if (format === "env") return environmentText(campaign, executable);
  const variables = [[CALLER_STATE, SANDBOX.callerState], NO_DEVICES] as const;
  if (format === "apptainer") {
    // --containall: neither the home folder nor the host's /dev, environment or processes; no --nv, no --rocm.
    const words = [
      "--containall",
      "--no-home",
      ...mounts.flatMap(({ source, target, readOnly }) => [
        "--mount",
        fields([
          ["type", "bind"],
          ["source", source],
          ["destination", target],
          ...(readOnly ? ([["ro", ""]] as const) : []),
        ]),
      ]),
      ...variables.flatMap(([name, value]) => ["--env", `${name}=${value}`]),
      "--pwd",
      SANDBOX.workspace,
    ];
    return `${quoteWords(words)}\n`;
  }
  const words = [
    ...mounts.flatMap(({ source, target, readOnly }) => [
      "--mount",
      fields([
        ["type", "bind"],
        ["source", source],
        ["target", target],
        ...(readOnly ? ([["readonly", format === "podman" ? "true" : ""]] as const) : []),
      ]),
    ]),
    ...variables.flatMap(([name, value]) => ["--env", `${name}=${value}`]),
    "--workdir",
    SANDBOX.workspace,
  ];
  return `${quoteWords(words)}\n`;
}

/** A line of comma-separated fields; one with a comma or a quote is quoted as in CSV, which all three read. */
function fields(all: readonly (readonly [string, string])[]): string {
  return all
    .map(([name, value]) => (value === "" ? name : `${name}=${value}`))
    .map((field) => (/[",]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field))
    .join(",");
}

/** For a sandbox that sees this host's paths: where the client finds everything, and that no device is to be used. */
function environmentText(campaign: Campaign, executable: string): string {
  return Object.entries(sandboxVariables(campaign, executable))
    .map(([name, value]) => `export ${name}=${quoteWords([value])}\n`)
    .join("");
}

/** The environment of a sandbox that sees this host's paths. */
export function sandboxVariables(campaign: Campaign, executable: string): Readonly<Record<string, string>> {
  const files = sandboxFiles(campaign);
  return Object.fromEntries([
    [CALLER_STATE, files.callerState],
    ["NEURARCH_BRIDGE_SOCKET", campaign.socketPath],
    ["NEURARCH_BRIDGE_CLIENT", executable],
    ["NEURARCH_BRIDGE_NOTES", files.notes],
    ["CUDA_VISIBLE_DEVICES", ""],
    ["HIP_VISIBLE_DEVICES", ""],
    ["ROCR_VISIBLE_DEVICES", ""],
    NO_DEVICES,
  ]);
}
