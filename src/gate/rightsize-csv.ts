/** One record of a CSV file: its fields, or in a few words why it has none. */
export type CsvRecord =
  | { readonly line: number; readonly fields: readonly string[] }
  | { readonly line: number; readonly problem: string };

/** Longest record in characters; a longer one is a quote that was never closed. */
export const MAX_RECORD = 65_536;

/**
 * The records of a CSV text that comes in pieces (RFC 4180): fields between commas; in double quotes a field may
 * hold commas, line ends and doubled quotes. Lines end in CR, LF or both; empty lines are left out. A record that
 * breaks the rules costs itself alone: reading goes on at the line after its first. Memory does not grow with the
 * text. `line` is 1-based, the one a record begins on.
 */
export function* csvRecords(pieces: Iterable<string>): Generator<CsvRecord> {
  const reader = new Reader();
  for (const piece of pieces) {
    reader.add(piece);
    yield* reader.records(false);
  }
  yield* reader.records(true);
}

class Reader {
  #text = "";
  #at = 0;
  #line = 1;
  /** A record was too long to hold: the rest of its line is passed over. */
  #skipping = false;
  /** Places of the next quote and carriage return, so that each is searched for once; text length = none. */
  #quote = -1;
  #return = -1;

  add(piece: string): void {
    this.#text = this.#text.slice(this.#at) + piece;
    this.#at = 0;
    this.#quote = -1;
    this.#return = -1;
  }

  *records(final: boolean): Generator<CsvRecord> {
    while (this.#at < this.#text.length) {
      if (this.#skipping) {
        const end = this.#lineEnd(this.#at, final);
        if (end === null) {
          this.#at = this.#pending();
          return;
        }
        this.#skipping = false;
        this.#pass(end.next);
        continue;
      }
      this.#quote = this.#found('"', this.#quote);
      const end = this.#lineEnd(this.#at, final);
      const plain = end !== null && this.#quote >= end.at;
      const line = this.#line;
      if (plain) {
        const text = this.#text.slice(this.#at, end.at);
        this.#at = end.next;
        this.#line++;
        if (text.length > MAX_RECORD) yield { line, problem: TOO_LONG };
        else if (text !== "") yield { line, fields: text.split(",") };
        continue;
      }
      const quoted = this.#quote < this.#text.length ? this.#quotedRecord(final) : null;
      if (quoted !== null && "fields" in quoted) {
        this.#pass(quoted.next);
        yield { line, fields: quoted.fields };
        continue;
      }
      const tooLong = this.#text.length - this.#at > MAX_RECORD;
      if (quoted === null && !final && !tooLong) return;
      const problem =
        quoted?.problem ?? (this.#quote < this.#text.length ? "a quote is opened and not closed" : TOO_LONG);
      if (end === null) {
        this.#at = this.#pending();
        this.#skipping = true;
      } else this.#pass(end.next);
      yield { line, problem };
    }
  }

  /** Where to go on when the line's end is not seen yet: a CR at the very end may be that end, or half of it. */
  #pending(): number {
    return this.#text.endsWith("\r") ? this.#text.length - 1 : this.#text.length;
  }

  /** Goes on at `next`, counting the lines on the way. */
  #pass(next: number): void {
    for (let at = this.#at; at < next; ) {
      const end = this.#lineEnd(at, true);
      if (end === null || end.next > next) break;
      this.#line++;
      at = end.next;
    }
    this.#at = next;
  }

  #found(char: string, before: number, from = this.#at): number {
    if (before >= from) return before;
    const at = this.#text.indexOf(char, from);
    return at === -1 ? this.#text.length : at;
  }

  /** Where the line ends and the next begins; null when that is not seen yet. The end of all is a line's end. */
  #lineEnd(from: number, final: boolean): { readonly at: number; readonly next: number } | null {
    const { length } = this.#text;
    const feed = this.#text.indexOf("\n", from);
    this.#return = this.#found("\r", this.#return, from);
    const back = this.#return;
    if (back < (feed === -1 ? length : feed)) {
      if (back + 1 === length && !final) return null;
      return { at: back, next: back + (this.#text.charAt(back + 1) === "\n" ? 2 : 1) };
    }
    if (feed !== -1) return { at: feed, next: feed + 1 };
    return final ? { at: length, next: length } : null;
  }

  /** A record with quotes; null when its end is not seen yet. */
  #quotedRecord(
    final: boolean,
  ): { readonly fields: string[]; readonly next: number } | { readonly problem: string } | null {
    const text = this.#text;
    const most = Math.min(text.length, this.#at + MAX_RECORD);
    const fields: string[] = [];
    let at = this.#at;
    for (;;) {
      let field = "";
      if (text.charAt(at) === '"') {
        let from = at + 1;
        for (;;) {
          const close = text.indexOf('"', from);
          if (close === -1 || close >= most) return null;
          field += text.slice(from, close);
          at = close + 1;
          if (at === text.length && !final) return null;
          if (text.charAt(at) !== '"') break;
          field += '"';
          from = at + 1;
        }
      } else {
        const start = at;
        while (at < most && !",\n\r".includes(text.charAt(at))) at++;
        field = text.slice(start, at);
      }
      fields.push(field);
      const after = text.charAt(at);
      if (after === ",") {
        at++;
        continue;
      }
      if (at >= text.length) return final ? { fields, next: at } : null;
      if (after === "\n") return { fields, next: at + 1 };
      if (after === "\r") {
        if (at + 1 === text.length && !final) return null;
        return { fields, next: at + (text.charAt(at + 1) === "\n" ? 2 : 1) };
      }
      return at >= most ? null : { problem: "text follows a closing quote" };
    }
  }
}

const TOO_LONG = `it is longer than ${MAX_RECORD} characters`;
