import { join } from "../host/paths.ts";
import { socketPathProblem } from "../host/socket-folder.ts";

/** Where a daemon keeps things, from its state folder. Nothing of it is in the folder that a sandbox gets. */
export interface Places {
  /** Socket of the operator's commands. */
  readonly operatorSocket: string;
  /** What the operator's commands need of a daemon that is gone. */
  readonly daemonFile: string;
}

/** `sha256` and the user's folder for run-time files stand in where the state folder's own path is too long. */
export function placesOf(
  stateDir: string,
  sha256: (text: string) => string,
  env: Readonly<Record<string, string | undefined>>,
  userId: number,
): Places {
  const near = join(stateDir, "operator", "bridge.sock");
  const short = join(runtimeFolder(env, userId), sha256(stateDir).slice(0, 16), "operator.sock");
  return {
    operatorSocket: socketPathProblem(near) === null ? near : short,
    daemonFile: join(stateDir, "daemon.json"),
  };
}

/** Where the state folder of the daemon behind a client's socket is written down. */
export function pointerFile(
  socketPath: string,
  sha256: (text: string) => string,
  env: Readonly<Record<string, string | undefined>>,
  userId: number,
): { readonly folder: string; readonly name: string } {
  return { folder: runtimeFolder(env, userId), name: `socket-${sha256(socketPath).slice(0, 16)}` };
}

function runtimeFolder(env: Readonly<Record<string, string | undefined>>, userId: number): string {
  const { XDG_RUNTIME_DIR } = env;
  return XDG_RUNTIME_DIR?.startsWith("/")
    ? join(XDG_RUNTIME_DIR, "neurarch-bridge")
    : `/tmp/neurarch-bridge-${userId}`;
}
