/**
 * Hours of a Slurm time limit, as `time_str2secs` in Slurm's `src/common/parse_time.c` reads it: `minutes`,
 * `minutes:seconds`, `hours:minutes:seconds`, `days-hours[:minutes[:seconds]]`. Null for no limit (`UNLIMITED`,
 * `INFINITE`, `-1`), for the way an unset limit was printed before 23.11 (`2982616-04:14:00`) and for what is no time.
 */
export function hoursOfTime(text: string): number | null {
  const match = /^(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?$/.exec(text.trim());
  if (match === null) return null;
  const [days, first, second, third] = match
    .slice(1)
    .map((part) => (part === undefined ? null : Number(part)));
  let seconds: number;
  if (days !== null) seconds = days! * 86_400 + first! * 3600 + (second ?? 0) * 60 + (third ?? 0);
  else if (third !== null) seconds = first! * 3600 + second! * 60 + third!;
  else seconds = first! * 60 + (second ?? 0);
  // NO_VAL and INFINITE minutes are some 8,000 years; no limit is longer than a lifetime of a cluster.
  const hours = seconds / 3600;
  return hours > 0 && hours <= 1_000_000 ? hours : null;
}
