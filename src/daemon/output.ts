import type { Spool } from "./types.ts";

/** The visible output of one attempt, and how much of it is durable and so may be handed out. */
export interface OutputPart {
  readonly kind: "output";
  readonly spool: Spool;
  /** Durable bytes. */
  committed: number;
  /** No more comes behind `committed`. */
  sealed: boolean;
}

/** A line of the daemon's own for the client's stderr, handed to one client once. */
export interface NoticePart {
  readonly kind: "notice";
  /** With its line end. */
  readonly data: string;
  /** Where in the output before it was said: it is told once that much was handed out. */
  readonly after: { readonly part: OutputPart; readonly bytes: number } | null;
  told: boolean;
}

/** A sentence of the daemon's own as it stands on the client's stderr, apart from what sky says there. */
export function spoken(text: string): string {
  return `neurarch-gate: ${text}\n`;
}

/** Everything that a client of an evaluation is to see before its end, in order. */
export class Output {
  readonly parts: (OutputPart | NoticePart)[] = [];
  #listeners = new Set<() => void>();

  /** Calls `listener` after each change until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** Begins the output of an attempt, whose spool is ours to close; what was there before is complete. */
  begin(spool: Spool): OutputPart {
    const last = this.#last();
    if (last?.spool === spool) {
      spool.close();
      return last;
    }
    if (last !== null) last.sealed = true;
    const part: OutputPart = { kind: "output", spool, committed: spool.bytes, sealed: false };
    this.parts.push(part);
    this.changed();
    return part;
  }

  /** Puts a text for the client's stderr behind the output that is there now. */
  say(data: string): void {
    const last = this.#last();
    this.parts.push({
      kind: "notice",
      data,
      after: last === null ? null : { part: last, bytes: last.committed },
      told: false,
    });
    this.changed();
  }

  seal(): void {
    const last = this.#last();
    if (last !== null) last.sealed = true;
    this.changed();
  }

  /** Nobody looks at it any more. */
  end(): void {
    for (const part of this.parts.splice(0)) if (part.kind === "output") part.spool.close();
  }

  #last(): OutputPart | null {
    for (let index = this.parts.length - 1; index >= 0; index--) {
      const part = this.parts[index]!;
      if (part.kind === "output") return part;
    }
    return null;
  }
}

/**
 * What is to be handed out next: a notice, or bytes of a spool; null when all that is there was handed out, with
 * `complete` telling whether more can come.
 */
export function nextPart(
  output: Output,
):
  | { readonly kind: "notice"; readonly part: NoticePart }
  | { readonly kind: "bytes"; readonly part: OutputPart; readonly upTo: number }
  | null {
  const { parts } = output;
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index]!;
    if (part.kind === "notice") {
      if (part.told) continue;
      return { kind: "notice", part };
    }
    // A notice that was said in the middle of this output is told there.
    let upTo = part.committed;
    for (let at = index + 1; at < parts.length; at++) {
      const later = parts[at]!;
      if (later.kind === "output") break;
      if (!later.told && later.after?.part === part) {
        upTo = Math.min(upTo, later.after.bytes);
        break;
      }
    }
    if (part.spool.delivered < upTo) return { kind: "bytes", part, upTo };
  }
  return null;
}
