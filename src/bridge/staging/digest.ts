/** Something that takes bytes, as a running SHA-256 does. */
export interface ByteSink {
  update(bytes: Uint8Array): unknown;
}

/**
 * The framing of a snapshot's digest (SHA-256 over all paths in order): each path as eight bytes of length, big
 * end first, and its UTF-8; then `D` for a folder, `L` with length and target for a link, `F` and the content for
 * a file. Modes, owners and times are no part of it.
 */
export function frameFolder(sink: ByteSink, path: string): void {
  framed(sink, path, "D");
}

export function frameLink(sink: ByteSink, path: string, target: string): void {
  framed(sink, path, "L");
  sink.update(lengthAndText(target));
}

/** The content follows through `sink.update`. */
export function frameFile(sink: ByteSink, path: string): void {
  framed(sink, path, "F");
}

function framed(sink: ByteSink, path: string, kind: "D" | "L" | "F"): void {
  sink.update(lengthAndText(path, kind));
}

const encoder = new TextEncoder();

function lengthAndText(text: string, after = ""): Uint8Array {
  const body = encoder.encode(text + after);
  const bytes = new Uint8Array(body.length + 8);
  new DataView(bytes.buffer).setUint32(4, body.length - after.length);
  bytes.set(body, 8);
  return bytes;
}

/** The order of the paths: by code point, as POSIX paths. */
export function byCodePoint(a: string, b: string): number {
  // Only surrogates are ordered otherwise by their units than by their code points.
  if (!SURROGATE.test(a) && !SURROGATE.test(b)) return a < b ? -1 : a > b ? 1 : 0;
  const left = encoder.encode(a);
  const right = encoder.encode(b);
  for (let at = 0; at < left.length && at < right.length; at++)
    if (left[at] !== right[at]) return (left[at] as number) - (right[at] as number);
  return left.length - right.length;
}

const SURROGATE = /[\ud800-\udfff]/;
