import { makeSpool, spool, spoolFolder } from "../host/spool.ts";
import { type Collector, deliverSoon, post, SEND_MS } from "./ledger-send.ts";
import type { Recorder } from "./recorder.ts";
import type { Settings } from "./settings.ts";

/** Where the lines of this user wait; null without a home. */
export function spoolOf({ place, settings }: Recorder): string | null {
  const folder = spoolFolder(place.env);
  // The salt of an anonymous ledger lies there.
  if (folder !== null && settings.ledgerAnonymous) makeSpool(folder);
  return folder;
}

/** The collector that settings name. */
export function collectorOf(
  settings: Settings & { readonly ledger: string },
  env: Collector["env"],
  version: string,
): Collector {
  return { ledger: settings.ledger, tokenFile: settings.ledgerUpkeep?.tokenFile ?? null, env, version };
}

/**
 * Lets lines wait on disk first and then sends them, with what waited before: a process that is killed, or a collector
 * that is away, loses none. Where nothing can wait they are sent all the same.
 */
export function send(lines: readonly string[], recorder: Recorder): void {
  const { settings, adapter, place } = recorder;
  const collector = collectorOf(settings, place.env, place.version);
  const timeoutMs = SEND_MS[adapter];
  const folder = spoolOf(recorder);
  if (folder !== null && spool(folder, lines)) deliverSoon(folder, collector, timeoutMs);
  else
    post(
      lines.map((line) => line.trimEnd()),
      collector,
      timeoutMs,
    ).catch(() => undefined);
}
