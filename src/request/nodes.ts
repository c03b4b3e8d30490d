/** Largest number of nodes or tasks that is believed. */
const MAX_COUNT = 10_000_000;

/** How many nodes a job accepts at least, and whether that is also the most. */
export interface NodeCount {
  readonly least: number;
  readonly fixed: boolean;
}

/**
 * Reads `--nodes` as Slurm's `verify_node_count` does: `4`, `2-6`, `2-`, `1k`, a list of sizes (`2,4,8`, `1-5:2`).
 * The minimum counts: the smallest allocation the job accepts is the one that has to hold it. 0 is at least one.
 * Null when it cannot be read.
 */
export function readNodes(text: string): NodeCount | null {
  const asked = text.trim();
  if (/[,:]/.test(asked)) {
    const sizes = asked.split(/[,:-]/).map((part) => (/^\d{1,8}$/.test(part) ? Number(part) : null));
    if (sizes.some((size) => size === null)) return null;
    // After a colon stands a step, not a size; the first number of each item is its smallest.
    const smallest = asked.split(",").map((item) => Number(/^\d+/.exec(item)?.[0] ?? 0));
    return { least: Math.max(1, Math.min(...smallest)), fixed: false };
  }
  const [, low = "", dash, high = ""] = /^([^-]*)(-)?(.*)$/s.exec(asked)!;
  const least = readSize(low);
  if (least === null) return null;
  if (dash === undefined) return { least: Math.max(1, least), fixed: true };
  const most = high === "" ? 0 : readSize(high);
  if (most === null || (most !== 0 && most < least)) return null;
  return { least: Math.max(1, least), fixed: most !== 0 && most === least };
}

function readSize(text: string): number | null {
  const match = /^(\d{1,12})(k)?(m)?$/i.exec(text.trim());
  if (match === null) return null;
  const size =
    Number(match[1]) * (match[2] === undefined ? 1 : 1024) * (match[3] === undefined ? 1 : 1024 ** 2);
  return size <= MAX_COUNT ? size : null;
}

/** A positive whole number such as `--ntasks`; null when it is none. */
export function readTasks(text: string): number | null {
  const count = /^\d{1,12}$/.test(text.trim()) ? Number(text) : 0;
  return count > 0 && count <= MAX_COUNT ? count : null;
}

/**
 * How many hosts a `--nodelist` names: `n1,n[3-5,7],gpu[01-02]-ib[0-1]`. Null when it is the path of a file or
 * cannot be read. Names given twice are counted once where they stand as such, as sbatch does.
 */
export function countHosts(list: string): number | null {
  if (list.includes("/") || list.length > 10_000) return null;
  const hosts = new Set(list.split(/,(?![^[]*\])/).map((host) => host.trim()));
  let total = 0;
  for (const host of hosts) {
    if (host === "") continue;
    let count = 1;
    for (const [, ranges = ""] of host.matchAll(/\[([^\]]*)\]/g)) {
      let inside = 0;
      for (const range of ranges.split(",")) {
        const match = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(range.trim());
        if (match === null) return null;
        inside += Math.max(0, Number(match[2] ?? match[1]) - Number(match[1]) + 1);
      }
      count *= inside;
    }
    if (/[[\]]/.test(host.replace(/\[[^\]]*\]/g, ""))) return null;
    total += count;
  }
  return total > 0 && total <= MAX_COUNT ? total : null;
}
