import type { ArgsDef } from "citty";
import type { Campaign } from "../../../bridge/types.ts";
import type { OperatorReply, OperatorRequest } from "../../../daemon/operator.ts";
import { askOperator } from "../../../daemon/operator-client.ts";
import { placesOf, pointerFile } from "../../../daemon/places.ts";
import { environment, userId, workingDirectory } from "../../../host/env.ts";
import { join, resolve } from "../../../host/paths.ts";
import { digest, readPrivateFile } from "../../../host/private-files.ts";
import { GateError } from "../../../lib/errors.ts";
import type { ParsedWords } from "../../command.ts";

/** How an operator's command finds its daemon: one of these. */
export const OPERATED_FLAGS = {
  state: { type: "string", valueHint: "DIR", description: "the run's state folder" },
  socket: { type: "string", valueHint: "PATH", description: "the socket that its clients connect to" },
  campaign: { type: "string", valueHint: "FILE", description: "the campaign it was started with" },
} as const satisfies ArgsDef;

/** Asked for a daemon's time to cancel or release: sky calls take seconds each. */
const PATIENCE_MS = 300_000;

/** A daemon, or what one left. */
export interface Operated {
  readonly stateDir: string;
  readonly operatorSocket: string;
}

/** Finds the daemon that a command line means. Throws `GateError`. */
export async function operatedBy(input: ParsedWords): Promise<Operated> {
  const { state, socket, campaign } = input.values;
  const given = [state, socket, campaign].filter((value) => value !== undefined);
  if (given.length !== 1)
    throw new GateError(
      "usage",
      given.length === 0
        ? "which daemon is meant is not said"
        : "--state, --socket and --campaign exclude each other",
      "Give one of --state DIR, --socket PATH and --campaign FILE.",
    );
  const stateDir =
    state !== undefined
      ? resolve(workingDirectory(), state)
      : socket !== undefined
        ? stateBehind(resolve(workingDirectory(), socket))
        : (await campaignAt(input)).stateDir;
  return { stateDir, operatorSocket: placesOf(stateDir, digest, environment(), userId()).operatorSocket };
}

async function campaignAt(input: ParsedWords): Promise<Campaign> {
  const { campaignOf } = await import("./flags.ts");
  return campaignOf({ ...input, values: { campaign: input.values.campaign! } }).campaign;
}

function stateBehind(socket: string): string {
  const { folder, name } = pointerFile(socket, digest, environment(), userId());
  const text = readPrivateFile(join(folder, name), 65_536);
  try {
    const { stateDir } = JSON.parse(text ?? "") as { stateDir?: unknown };
    if (typeof stateDir === "string") return stateDir;
  } catch {
    // said below
  }
  throw new GateError(
    "unreachable",
    `no daemon of yours serves ${socket}`,
    "Name the run's state folder with --state.",
  );
}

/** What a daemon answers; null where none runs. Throws `GateError` for a refusal. */
export async function answerOf(
  operated: Operated,
  request: OperatorRequest,
): Promise<Extract<OperatorReply, { ok: true }> | null> {
  const reply = await askOperator(operated.operatorSocket, request, PATIENCE_MS);
  if (reply.ok) return reply.value;
  if (reply.error.away) return null;
  throw new GateError("unreachable", reply.error.message);
}

/** For a command that needs a daemon. */
export function noDaemon({ stateDir }: Operated): GateError {
  return new GateError(
    "unreachable",
    `no daemon runs on ${stateDir}`,
    "Start one with `neurarch-gate bridge`; `bridge release --state DIR` gives back what a killed one left.",
  );
}
