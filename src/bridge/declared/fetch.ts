import { asBuffer, NEWLINE } from "../evidence/ansi.ts";
import { runText } from "../run-text.ts";
import { decodeBase64 } from "../wire/base64.ts";
import { BASE64_LINE } from "./collect-text.ts";
import { attemptFolder, rootLines } from "./root.ts";

/** A piece of a stored file. */
export interface Piece {
  /** The file's number in the attempt's folder. */
  readonly number: number;
  /** Where it begins. */
  readonly offset: number;
  readonly length: number;
}

/** Most bytes that one job hands out: its log is read anew from its start where the connection was lost. */
export const FETCH_BYTES = 67_108_864;

/**
 * The run text of a job that prints pieces of stored files. It is the follow-up of an evaluation on the same
 * allocation: SkyPilot has no call that downloads from a Slurm cluster, and every other way would need credentials of
 * its own beside sky's. It runs outside the command prefix, whose container need not see the folder.
 *
 * `nonce` begins each of its lines, so that what the shell or sky prints besides is no data; each line of data has its
 * place in the file, so that one which a torn connection swallowed is missed.
 */
export function fetchText(written: string, folder: string, pieces: readonly Piece[], nonce: string): string {
  const script = [
    ...rootLines(written),
    `cd -- ${attemptFolder(folder)} 2>/dev/null || cd /`,
    `piece() {`,
    `  if ! [ -f "./$1" ]; then echo "${nonce} gone $1"; return; fi`,
    `  echo "${nonce} file $1 $2"`,
    `  tail -c "+$(($2 + 1))" "./$1" | head -c "$3" | base64 | tr -d '\\n' | LC_ALL=C fold -w ${BASE64_LINE} | awk -v at="$2" '{ print "${nonce} data " at " " $0; at += int(length($0) / 4) * 3 }'`,
    `  echo`,
    `}`,
    ...pieces.map(({ number, offset, length }) => `piece ${number} ${offset} ${length}`),
  ].join("\n");
  return runText({
    argv: ["sh", "-c", script],
    artifactPath: null,
    setup: null,
    environment: false,
    commandPrefix: null,
    nonce,
  });
}

export type Fetched =
  | { readonly kind: "file"; readonly number: number; readonly offset: number }
  | { readonly kind: "data"; readonly offset: number; readonly bytes: Uint8Array }
  | { readonly kind: "gone"; readonly number: number };

/** Longest line that may be one of the job's. */
const MAX_LINE_BYTES = 16_384;

/** Reads what such a job prints, in whatever chunks it comes. A line that is not whole, or not base64, says nothing. */
export class FetchReader {
  #rest: Buffer = Buffer.alloc(0);

  constructor(readonly nonce: string) {}

  take(chunk: Uint8Array): readonly Fetched[] {
    const data = this.#rest.length === 0 ? asBuffer(chunk) : Buffer.concat([this.#rest, chunk]);
    const found: Fetched[] = [];
    let from = 0;
    for (let end = data.indexOf(NEWLINE); end !== -1; end = data.indexOf(NEWLINE, from)) {
      const one = end - from > MAX_LINE_BYTES ? null : this.#line(data.toString("latin1", from, end));
      if (one !== null) found.push(one);
      from = end + 1;
    }
    // A beginning that is too long is kept as far as needed to know that it is too long.
    this.#rest = Buffer.from(data.subarray(from, from + MAX_LINE_BYTES + 1));
    return found;
  }

  #line(line: string): Fetched | null {
    const [nonce, kind, first = "", second = ""] = line.replace(/\r$/, "").split(" ");
    if (nonce !== this.nonce) return null;
    if (!/^\d{1,10}$/.test(first)) return null;
    if (kind === "data") {
      const bytes = decodeBase64(second);
      return bytes === null || bytes.length === 0 ? null : { kind, offset: Number(first), bytes };
    }
    if (kind === "gone") return { kind, number: Number(first) };
    if (kind === "file" && /^\d{1,10}$/.test(second))
      return { kind, number: Number(first), offset: Number(second) };
    return null;
  }
}
