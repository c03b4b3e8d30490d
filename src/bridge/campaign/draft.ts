import type * as v from "valibot";
import { GateError } from "../../lib/errors.ts";
import { hasControls } from "../../lib/shown.ts";
import type { EvaluationKind, PortableRequest } from "../types.ts";
import { absolutePath, folderOf, MAX_SOCKET_PATH_BYTES, nameOf } from "./paths.ts";
import { portableOf } from "./profiles.ts";
import { CAMPAIGN } from "./schemas.ts";
import { type FileText, readToml } from "./toml.ts";

/** The flags of a command line that concern the campaign, by long name; absent = not given. */
export interface CampaignFlags {
  readonly values: Readonly<Record<string, string>>;
  /** `hide` and `include`, which may be repeated. */
  readonly lists: Readonly<Record<string, readonly string[]>>;
  readonly switches: Readonly<Record<string, boolean>>;
}

/** Where the command was given. */
export interface Place {
  /** Absolute; relative paths of flags start here. */
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Where a value was given, for messages: ``--accuracy`` or `` `accuracy` in campaign.toml``. */
export type Origin = string;

/** Flags over the campaign file, every path absolute; the files that it names are not read yet. */
export interface CampaignDraft {
  readonly runId: string;
  readonly workspaceId: string;
  readonly workspace: string;
  readonly socketPath: string;
  readonly stateDir: string;
  readonly clustersPath: string;
  /** The file with the request, or the request itself where the campaign file holds it. */
  readonly request: { readonly path: string } | { readonly portable: PortableRequest; readonly path: string };
  /** Null: the one that the run's record names. */
  readonly profileName: string | null;
  readonly commands: Readonly<
    Record<EvaluationKind, { readonly given: string | readonly string[]; readonly origin: Origin }>
  >;
  readonly benchmarkOutputFlag: string;
  readonly skyPath: string;
  readonly errorFrames: "mainline" | "campaign";
  readonly hide: readonly string[];
  readonly include: readonly string[];
  readonly setup: string | null;
  readonly retries: number;
  readonly keep: boolean;
  readonly timeoutS: number | null;
  readonly launchTimeoutS: number | null;
  readonly environment: { readonly allow: readonly string[]; readonly set: Readonly<Record<string, string>> };
  readonly job: Readonly<Record<string, string>> | null;
  readonly artifactDays?: number;
  /** The campaign file's path, for messages; null where there is none. */
  readonly campaignPath: string | null;
}

type CampaignFile = v.InferOutput<typeof CAMPAIGN>;

/** Variables that a shell does not let be set, or that would change what our own shell lines mean. */
const RESERVED = ["BASHOPTS", "BASH_VERSINFO", "EUID", "IFS", "PPID", "SHELLOPTS", "UID"];

/**
 * Joins flags over a campaign file. Throws `GateError("usage")` for a flag, `GateError("input-invalid")` for the file,
 * naming what is missing and how to give it.
 */
export function draftCampaign(flags: CampaignFlags, file: FileText | null, place: Place): CampaignDraft {
  const { values, switches, lists } = flags;
  const home = place.environment.HOME;
  const fromFile: CampaignFile = file === null ? {} : readToml(CAMPAIGN, file, "input-invalid");
  const base = file === null ? place.cwd : folderOf(absolutePath(file.path, place.cwd, home));
  const where = (flag: string, key: keyof CampaignFile): Origin =>
    values[flag] !== undefined ? `--${flag}` : `\`${key}\` in ${file?.path ?? "the campaign file"}`;
  const invalid = (flag: string, key: keyof CampaignFile, problem: string, remedy: string): never => {
    throw new GateError(
      values[flag] !== undefined ? "usage" : "input-invalid",
      `${where(flag, key)} ${problem}`,
      remedy,
    );
  };
  const missing = (flag: string, key: keyof CampaignFile, example: string): never => {
    throw file === null
      ? new GateError("usage", `--${flag} is missing`, `Give it, or name a campaign file with --campaign.`)
      : new GateError("input-invalid", `${file.path} has no \`${key}\``, `Write ${key} = ${example}.`);
  };
  const textOf = (flag: string, key: keyof CampaignFile): string | null => {
    const value = values[flag] ?? fromFile[key];
    return typeof value === "string" ? value.trim() : null;
  };
  const pathOf = (flag: string, key: keyof CampaignFile): string | null => {
    const given = values[flag];
    if (given !== undefined) return absolutePath(given, place.cwd, home);
    const value = fromFile[key];
    return typeof value === "string" ? absolutePath(value.trim(), base, home) : null;
  };
  const commandOf = (kind: EvaluationKind) => ({
    given: values[kind] ?? fromFile[kind] ?? missing(kind, kind, '"sh check.sh"'),
    origin: where(kind, kind),
  });

  const runId = textOf("run-id", "run_id") ?? missing("run-id", "run_id", '"run-1"');
  if (hasControls(runId) || runId.includes("/") || /^\.+$/.test(runId) || runId.length > 128)
    invalid(
      "run-id",
      "run_id",
      "cannot name a run: it has a slash, a control character or more than 128 characters",
      "Use letters, digits and dashes.",
    );
  const workspace = pathOf("workspace", "workspace") ?? missing("workspace", "workspace", '"candidate"');
  const socketPath =
    pathOf("socket", "socket") ?? missing("socket", "socket", '"/run/user/1000/bridge/bridge.sock"');
  const socketBytes = new TextEncoder().encode(socketPath).length;
  if (socketBytes > MAX_SOCKET_PATH_BYTES)
    invalid(
      "socket",
      "socket",
      `is ${socketPath}, ${socketBytes} bytes long; a unix socket's path (sun_path) has at most ${MAX_SOCKET_PATH_BYTES}`,
      "Choose a shorter folder, such as one under /tmp or $XDG_RUNTIME_DIR.",
    );
  const requestPath = pathOf("request", "request");
  if (fromFile.request !== undefined && fromFile.resources !== undefined)
    throw new GateError(
      "input-invalid",
      `${file!.path} has both \`request\` and \`resources\``,
      "Keep the file's path or the table, not both.",
    );
  const request =
    requestPath !== null
      ? { path: requestPath }
      : fromFile.resources !== undefined
        ? { path: file!.path, portable: portableOf(fromFile.resources) }
        : missing("request", "request", '"resources.toml"');
  const retries = retriesOf(values.retries) ?? fromFile.retries ?? 1;
  const sky = textOf("sky", "sky") ?? "sky";
  return {
    runId,
    workspaceId: fromFile.workspace_id?.trim() ?? (nameOf(workspace) || "workspace"),
    workspace,
    socketPath,
    stateDir: pathOf("state", "state") ?? `${stateHome(place)}/neurarch/bridge/${runId}`,
    clustersPath: pathOf("clusters", "clusters") ?? `${configHome(place)}/vibesys/clusters.toml`,
    request,
    profileName: textOf("profile", "profile"),
    commands: { accuracy: commandOf("accuracy"), benchmark: commandOf("benchmark") },
    benchmarkOutputFlag:
      textOf("benchmark-output-flag", "benchmark_output_flag") ??
      missing("benchmark-output-flag", "benchmark_output_flag", '"--output-json"'),
    // A bare name is looked for in PATH; anything else is a path.
    skyPath: sky.includes("/") ? pathOf("sky", "sky")! : sky,
    errorFrames:
      (values["error-frames"] as "mainline" | "campaign" | undefined) ?? fromFile.error_frames ?? "mainline",
    hide: workspacePaths([...(fromFile.hide ?? []), ...(lists.hide ?? [])], workspace, place.cwd),
    include: [...(fromFile.include ?? []), ...(lists.include ?? [])],
    setup: values.setup ?? fromFile.setup ?? null,
    retries,
    keep: switches.keep ?? fromFile.keep ?? false,
    timeoutS: fromFile.timeout ?? null,
    launchTimeoutS: fromFile.launch_timeout ?? null,
    environment: environmentOf(fromFile, file),
    job: jobOf(fromFile),
    ...(fromFile.artifact_days === undefined ? {} : { artifactDays: fromFile.artifact_days }),
    campaignPath: file?.path ?? null,
  };
}

function retriesOf(given: string | undefined): number | null {
  if (given === undefined) return null;
  if (!/^\d{1,3}$/.test(given))
    throw new GateError(
      "usage",
      `--retries is \`${given}\`, not a whole number from 0 to 999`,
      "Write `--retries 1`.",
    );
  return Number(given);
}

/** Hidden paths as the workspace has them: relative, without dots. A path outside it hides nothing and is refused. */
function workspacePaths(paths: readonly string[], workspace: string, cwd: string): string[] {
  return paths.map((path) => {
    const whole = absolutePath(path, path.startsWith("/") ? cwd : workspace, undefined);
    if (whole === workspace || !whole.startsWith(`${workspace === "/" ? "" : workspace}/`))
      throw new GateError(
        "input-invalid",
        `the hidden path ${path} does not lie within the workspace ${workspace}`,
        "Name a path below the workspace.",
      );
    return whole.slice(workspace === "/" ? 1 : workspace.length + 1);
  });
}

function environmentOf(raw: CampaignFile, file: FileText | null): CampaignDraft["environment"] {
  const { allow = [], set = {} } = raw.environment ?? {};
  const both = allow.find((name) => Object.hasOwn(set, name));
  if (both !== undefined)
    throw new GateError(
      "input-invalid",
      `\`environment\` in ${file!.path} both allows and sets ${both}`,
      "Keep one of the two.",
    );
  const reserved = [...allow, ...Object.keys(set)].find((name) => RESERVED.includes(name));
  if (reserved !== undefined)
    throw new GateError(
      "input-invalid",
      `\`environment\` in ${file!.path} names ${reserved}, which a shell keeps for itself`,
      "Use another name.",
    );
  const broken = Object.keys(set).find((name) => set[name]!.includes("\0"));
  if (broken !== undefined)
    throw new GateError(
      "input-invalid",
      `\`environment.set.${broken}\` in ${file!.path} holds a zero character, which no variable can`,
      "Correct the value.",
    );
  return { allow: [...new Set(allow)], set };
}

function jobOf(raw: CampaignFile): Readonly<Record<string, string>> | null {
  if (raw.job === undefined) return null;
  return Object.fromEntries(
    Object.entries(raw.job).map(([key, value]) => [
      key,
      value === true ? "on" : value === false ? "off" : String(value),
    ]),
  );
}

/** XDG base directory specification: the variable where it is an absolute path, else the usual folder. */
function configHome({ environment, cwd }: Place): string {
  return xdg(environment.XDG_CONFIG_HOME, environment.HOME, ".config", cwd);
}

function stateHome({ environment, cwd }: Place): string {
  return xdg(environment.XDG_STATE_HOME, environment.HOME, ".local/state", cwd);
}

function xdg(given: string | undefined, home: string | undefined, usual: string, cwd: string): string {
  if (given?.startsWith("/")) return given;
  return absolutePath(usual, home?.startsWith("/") ? home : cwd, undefined);
}
