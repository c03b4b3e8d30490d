import { readdirSync, readFileSync, statSync } from "node:fs";

/** Descriptors that are left to our own files (a policy, a config, a ledger) however many clients there are. */
const OWN = 16;
/** How often the open ones are counted, in ms. */
const LOOK_MS = 100;
/** Rest between two tries to take a connection while there is no room for it, in ms. */
const REST_MS = 5;
/** At most one line about it in so many ms. */
const TELL_MS = 60_000;

/** Descriptors that this process may have (RLIMIT_NOFILE, the soft one); null where the system does not say. */
export function descriptorLimit(): number | null {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    return limit === undefined ? null : Number(limit);
  } catch {
    return null;
  }
}

/** Descriptors that are open now; null where they cannot be counted (without one left, the folder cannot be read). */
function openDescriptors(): number | null {
  try {
    // Since Linux 6.2 its size is the number, which is read without a descriptor.
    return statSync("/proc/self/fd").size || readdirSync("/proc/self/fd").length;
  } catch (error) {
    return (error as { code?: string }).code === "EMFILE" ? Number.POSITIVE_INFINITY : null;
  }
}

/**
 * Watches how many clients a server has. A loop that is told of a connection it has no descriptor for is told at once
 * again, for as long as the connection waits: it would take a whole core. Near the limit, connections on which nothing
 * is under way are closed (`closeIdle`), and while there is no room at all the process rests between two tries, so that
 * those that have a connection are answered. Returns a function that ends the watch.
 */
export function watchCrowd(closeIdle: () => number, tell: (line: string) => void): () => void {
  const limit = descriptorLimit();
  if (limit === null || openDescriptors() === null) return () => {};
  const most = limit - Math.min(OWN, Math.floor(limit / 4));
  let toldMs = Number.NEGATIVE_INFINITY;
  let rest: ReturnType<typeof setInterval> | null = null;
  const look = setInterval(() => {
    const full = (openDescriptors() ?? 0) >= most;
    if (full) {
      const closed = closeIdle();
      if (performance.now() - toldMs > TELL_MS) {
        toldMs = performance.now();
        tell(
          `more clients than the ${limit} open files this process may have (ulimit -n, LimitNOFILE=); ${closed} idle connections were closed`,
        );
      }
    }
    const crowded = full && (openDescriptors() ?? 0) >= most;
    if (crowded) rest ??= setInterval(() => Bun.sleepSync(REST_MS), 1);
    else if (rest !== null) {
      clearInterval(rest);
      rest = null;
    }
  }, LOOK_MS);
  look.unref();
  return () => {
    clearInterval(look);
    if (rest !== null) clearInterval(rest);
  };
}
