/** Tasks above which an array is not counted: Slurm's largest MaxArraySize is 4,000,001. */
const MAX_INDEX = 4_000_001;
/** slurmctld refuses a longer text (`_test_job_desc_fields`). */
const MAX_LENGTH = 4096;

/**
 * How many tasks an `--array` makes, as `slurm_parse_array_tok` in Slurm's
 * `src/common/slurm_protocol_defs.c` reads it: `0-9%2` is 10 tasks (two at a time), `1,3,5-7:2` is 4. Indices
 * named twice count once. Null when it cannot be read; an empty text is no array, 1.
 */
export function arrayTasks(text: string): number | null {
  const asked = text.trim();
  if (asked === "") return 1;
  if (asked.length > MAX_LENGTH) return null;
  const ranges: { first: number; last: number; step: number }[] = [];
  for (const item of asked.replace(/[[\]]/g, "").split(",")) {
    const match = /^(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?(?:%\d+)?$/.exec(item.trim());
    if (match === null) return null;
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    const step = match[3] === undefined ? 1 : Number(match[3]);
    if (last < first || last >= MAX_INDEX || step === 0) return null;
    ranges.push({ first, last, step });
  }
  if (ranges.length === 1) {
    const [{ first, last, step }] = ranges as [(typeof ranges)[0]];
    return Math.floor((last - first) / step) + 1;
  }
  return distinct(ranges);
}

/** Null where overlapping ranges would take longer to count than the answer is worth. */
function distinct(ranges: readonly { first: number; last: number; step: number }[]): number | null {
  const steps = ranges.reduce((sum, { first, last, step }) => sum + (last - first) / step + 1, 0);
  if (steps > 2 * MAX_INDEX) return null;
  const size = Math.max(...ranges.map((range) => range.last)) + 1;
  const taken = new Uint8Array(size);
  let count = 0;
  for (const { first, last, step } of ranges) {
    for (let index = first; index <= last; index += step) {
      if (taken[index] === 0) count++;
      taken[index] = 1;
    }
  }
  return count;
}
