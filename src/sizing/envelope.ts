/** A local maximum of the live memory, as a line in the batch. */
export interface Peak {
  readonly fixed: number;
  readonly per: number;
  readonly phase: string;
  /** Live bytes by kind, as in the tape. */
  readonly byKind: Float64Array;
}

/** Keeps the local maxima that no other one exceeds at every batch. */
export class Envelope {
  private peaks: Peak[] = [];

  offer(fixed: number, per: number, phase: string, byKind: Float64Array): void {
    for (const peak of this.peaks) if (peak.fixed >= fixed && peak.per >= per) return;
    this.peaks = this.peaks.filter((peak) => peak.fixed > fixed || peak.per > per);
    this.peaks.push({ fixed, per, phase, byKind: byKind.slice() });
  }

  /** Those that are highest at some batch from zero on, by rising slope: the upper envelope of the lines. */
  hull(): Peak[] {
    const lines = this.peaks.slice().sort((a, b) => a.per - b.per || a.fixed - b.fixed);
    const hull: Peak[] = [];
    for (const line of lines) {
      while (hull.length > 0) {
        const last = hull[hull.length - 1]!;
        const before = hull[hull.length - 2];
        const hidden =
          last.fixed <= line.fixed ||
          (before !== undefined &&
            (before.fixed - line.fixed) * (last.per - before.per) <=
              (before.fixed - last.fixed) * (line.per - before.per));
        if (!hidden) break;
        hull.pop();
      }
      hull.push(line);
    }
    return hull;
  }
}
