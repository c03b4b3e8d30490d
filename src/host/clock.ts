/** Milliseconds since 1970. */
export function nowMs(): number {
  return Date.now();
}

/** Milliseconds since the process started; never goes back. */
export function monotonicMs(): number {
  return performance.now();
}

/** The day in UTC, `2026-11-30`. */
export function utcDay(): string {
  return new Date().toISOString().slice(0, 10);
}

/** The day by this host's clock and zone, `2026-11-30`. Costs some milliseconds: the zone's rules are loaded for it. */
export function localDay(): string {
  const now = new Date();
  const two = (value: number) => String(value).padStart(2, "0");
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}

/** Does something a moment later, after what is under way; a process that has nothing else to do still waits for it. */
export function soon(work: () => void): void {
  setTimeout(work, 1);
}
