import type { RunRecord } from "../bridge/campaign/run-record.ts";
import type { Campaign } from "../bridge/types.ts";
import { onStopSignals, ownPid, runCommand, startGuard } from "../host/editor.ts";
import { userId } from "../host/env.ts";
import { join } from "../host/paths.ts";
import { GateError } from "../lib/errors.ts";
import { judgeCampaign } from "./judge.ts";
import type { RunningDaemon } from "./server.ts";
import { type BridgeOptions, startBridge } from "./start.ts";

export interface DaemonCommand extends Pick<BridgeOptions, "limits" | "onTransition"> {
  readonly campaign: Campaign;
  readonly record: RunRecord;
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly log: (line: string) => void;
}

/** A campaign that the judge refuses: nothing was started. */
export class Refused extends Error {
  override readonly name = "Refused";
}

/**
 * Judges, listens and makes the allocation ready, unless `stopped` comes first. What fails is taken down again. `started`
 * is called when the state folder and the sockets are ours.
 */
async function open(
  command: DaemonCommand,
  stops: Stops,
  started: () => void = () => {},
): Promise<RunningDaemon | null> {
  const { campaign, log } = command;
  const { refusal, warnings } = await judgeCampaign(campaign, command);
  for (const warning of warnings) log(warning);
  if (refusal !== null) throw new Refused(refusal);
  if (stops.first !== null) return null;
  const daemon = await startBridge({ ...command, pid: ownPid(), userId: userId() });
  started();
  stops.onSecond = () => daemon.hurry();
  log(`listening on ${campaign.socketPath}; making the allocation ready`);
  const ended = await Promise.race([daemon.open(), stops.signalled.then(() => "stopped" as const)]);
  if (ended === null) {
    log(`serving run ${campaign.runId} on ${campaign.socketPath}`);
    return daemon;
  }
  await daemon.close(ended === "stopped" ? `asked to (${stops.first})` : ended.message);
  if (ended === "stopped") return null;
  throw new GateError("unreachable", `the allocation could not be made ready: ${ended.message}`);
}

/** Requests to end: the first, and what is done about a second. */
class Stops {
  first: NodeJS.Signals | null = null;
  onSecond: () => void = () => {};
  onFirst: (name: NodeJS.Signals) => void = () => {};
  #resolve: () => void = () => {};
  readonly signalled = new Promise<void>((done) => {
    this.#resolve = done;
  });
  readonly end = onStopSignals((name) => {
    if (this.first !== null) return this.onSecond();
    this.first = name;
    this.onFirst(name);
    this.#resolve();
  });
}

/** `bridge`: serves until it is asked to end. */
export async function serveCampaign(command: DaemonCommand): Promise<void> {
  const stops = new Stops();
  try {
    const daemon = await open(command, stops);
    if (daemon === null) return;
    await stops.signalled;
    await daemon.close(`asked to (${stops.first})`);
  } finally {
    stops.end();
  }
}

/**
 * `bridge run`: serves while a command runs, with the environment that its clients need; its exit code. `releasing` is a
 * command that gives the allocation back: should we be killed, it is run when the command was ended.
 */
export async function runUnder(
  command: DaemonCommand,
  argv: readonly string[],
  variables: Readonly<Record<string, string>>,
  releasing: readonly string[],
): Promise<number> {
  const stops = new Stops();
  const groupFile = join(command.campaign.stateDir, "command");
  let dismissGuard = () => {};
  try {
    const daemon = await open(command, stops, () => {
      dismissGuard = startGuard(groupFile, command.campaign.keep ? ["true"] : releasing, command.env);
    });
    if (daemon === null) return 143;
    const running = runCommand(argv, { ...command.env, ...variables }, groupFile);
    let hard = false;
    stops.onFirst = (name) => running.signal(name);
    stops.onSecond = () => {
      if (hard) daemon.hurry();
      hard = true;
      running.signal("SIGKILL");
    };
    // A request that came while the command was being started.
    if (stops.first !== null) running.signal(stops.first);
    const code = await running.ended;
    await running.sweep();
    stops.onSecond = () => daemon.hurry();
    if (running.startError !== null) command.log(`${argv[0]} could not be started: ${running.startError}`);
    await daemon.close(`the command ended with ${code}`);
    return code;
  } finally {
    dismissGuard();
    stops.end();
  }
}
