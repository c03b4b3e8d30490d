/** Milliseconds since 1970. */
export function nowMs(): number {
  return Date.now();
}

/** Milliseconds since the process started; never goes back. */
export function monotonicMs(): number {
  return performance.now();
}
