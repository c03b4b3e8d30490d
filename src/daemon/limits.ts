/** How long and how often: given to the daemon as a whole, so that a test needs no minutes. Milliseconds unless said. */
export interface Limits {
  /** For a client that connects and does not send its request. */
  readonly requestMs: number;
  /** For a client that takes nothing of what is sent to it; its evaluation goes on. */
  readonly stallMs: number;
  /** For a client that has its result and does not acknowledge it. */
  readonly ackMs: number;
  /** Connections at a time; further ones are answered with an error. */
  readonly connections: number;
  /** For an allocation that is being made and of which nothing is seen: neither in the cluster's queue nor there. */
  readonly launchMs: number;
  /** Between looks at one that waits in the cluster's queue. */
  readonly pendingPollMs: number;
  /** Between looks at a queue that does not show a submitted job yet, and for how long that may be so. */
  readonly queuePollMs: number;
  readonly queuePatienceMs: number;
  /** First and longest wait between looks at a cluster that cannot be reached, and for how long that may be so. */
  readonly reconnectMs: number;
  readonly reconnectMostMs: number;
  readonly reconnectPatienceMs: number;
  /** Between two looks at an allocation before it counts as gone. */
  readonly secondLookMs: number;
  /** After a cancellation: for the job's log to end. */
  readonly cancelMs: number;
  /** At close: for clients to take and acknowledge what there is. */
  readonly closeMs: number;
  /** Output that may wait for the disk before the log is held back, bytes. */
  readonly unsyncedBytes: number;
}

export const LIMITS: Limits = {
  requestMs: 30_000,
  stallMs: 120_000,
  ackMs: 60_000,
  connections: 64,
  launchMs: 300_000,
  pendingPollMs: 30_000,
  queuePollMs: 2000,
  queuePatienceMs: 60_000,
  reconnectMs: 1000,
  reconnectMostMs: 30_000,
  reconnectPatienceMs: 600_000,
  secondLookMs: 2000,
  cancelMs: 30_000,
  closeMs: 10_000,
  unsyncedBytes: 4_194_304,
};
