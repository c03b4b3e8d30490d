import type { ArgsDef } from "citty";
import { loadSettings } from "../gate/load.ts";
import type { Settings } from "../gate/settings.ts";
import { workingDirectory } from "../host/env.ts";
import { resolve } from "../host/paths.ts";
import type { Entry } from "../ledger/types.ts";
import { GateError } from "../lib/errors.ts";
import { isAddress, shownAddress } from "../lib/sink.ts";

/** Which verdicts count. */
export const RANGE_FLAGS = {
  since: { type: "string", valueHint: "DAY", description: "verdicts of this day (UTC) and later" },
  until: { type: "string", valueHint: "DAY", description: "verdicts of this day (UTC) and earlier" },
  user: { type: "string", valueHint: "NAME", description: "verdicts of this user" },
} as const satisfies ArgsDef;

export interface Range {
  readonly since: string | null;
  readonly until: string | null;
  readonly user: string | null;
  holds(entry: Entry): boolean;
}

/** Throws `GateError("usage")` for what is no day. */
export function rangeOf(values: Readonly<Record<string, string>>): Range {
  const since = dayOf("since", values.since);
  const until = dayOf("until", values.until);
  const user = values.user ?? null;
  if (since !== null && until !== null && since > until)
    throw new GateError("usage", `--since ${since} is after --until ${until}`, "Exchange them.");
  return {
    since,
    until,
    user,
    holds: (entry) =>
      (since === null || entry.time >= since) &&
      (until === null || entry.time.slice(0, 10) <= until) &&
      (user === null || entry.user === user),
  };
}

/** The folder that is named, else the site's. Throws `GateError("usage")` without one. */
export async function ledgerFolder(
  named: string | undefined,
  values: Readonly<Record<string, string>>,
): Promise<{ readonly folder: string; readonly settings: Settings }> {
  const settings = await loadSettings({ values, switches: {} });
  const ledger = named ?? settings.ledger;
  if (ledger === null)
    throw new GateError(
      "usage",
      "no ledger is named, and the site keeps none",
      "Name its folder: ledger PATH.",
    );
  if (isAddress(ledger))
    throw new GateError(
      "usage",
      `verdicts of this site go to ${shownAddress(ledger)}, which keeps the ledger`,
      "Ask there, with the folder that its `serve --ledger` names.",
    );
  return { folder: resolve(workingDirectory(), ledger), settings };
}

function dayOf(flag: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  const day = /^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00:00Z`) : null;
  if (day === null || Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text)
    throw new GateError(
      "usage",
      `--${flag} is \`${text}\`, not a day`,
      `Write \`--${flag} 2026-11-01\`, say.`,
    );
  return text;
}
