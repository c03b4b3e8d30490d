import { localDay } from "../../../host/clock.ts";
import { GateError } from "../../../lib/errors.ts";
import { isDay } from "../../../policy/dates.ts";

export const TODAY_FLAG = {
  today: { type: "string", valueHint: "DAY", description: "read the dates as on this day (2026-11-30)" },
} as const;

/** The day that dates are read on. Throws `GateError("usage")`. */
export function dayOf(given: string | undefined): string {
  if (given === undefined) return localDay();
  if (isDay(given)) return given;
  throw new GateError("usage", `--today is \`${given}\`, not a day`, "Write `--today 2026-11-30`.");
}
