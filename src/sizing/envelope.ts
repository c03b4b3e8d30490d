/** A local maximum of the live memory, as a line in the batch. */
export interface Peak {
  readonly fixed: number;
  readonly per: number;
  readonly phase: string;
  /** Live bytes by kind, as in the tape. */
  readonly byKind: readonly number[];
}

/** Keeps the local maxima that no other one exceeds at every batch. */
export class Envelope {
  /** By rising slope, and so by falling fixed bytes. */
  private readonly peaks: Peak[] = [];

  offer(fixed: number, per: number, phase: string, byKind: readonly number[]): void {
    const { peaks } = this;
    let end = 0;
    while (end < peaks.length && peaks[end]!.per < per) end++;
    const above = peaks[end];
    if (above !== undefined && above.fixed >= fixed) return;
    if (above !== undefined && above.per === per) end++;
    let begin = end;
    while (begin > 0 && peaks[begin - 1]!.fixed <= fixed) begin--;
    peaks.splice(begin, end - begin, { fixed, per, phase, byKind: byKind.slice() });
  }

  /** Those that are highest at some batch from zero on, by rising slope: the upper envelope of the lines. */
  hull(): Peak[] {
    const hull: Peak[] = [];
    for (const line of this.peaks) {
      while (hull.length > 1) {
        const last = hull[hull.length - 1]!;
        const before = hull[hull.length - 2]!;
        const hidden =
          (before.fixed - line.fixed) * (last.per - before.per) <=
          (before.fixed - last.fixed) * (line.per - before.per);
        if (!hidden) break;
        hull.pop();
      }
      hull.push(line);
    }
    return hull;
  }
}
