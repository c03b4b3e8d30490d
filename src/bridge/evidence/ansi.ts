/** Text without terminal control sequences (colours, cursor moves) and without carriage returns. */
export function withoutAnsi(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is control characters that are taken out
  return text.replace(/\x1b\[[0-?]*[ -/]*[@-~]|\r/g, "");
}

/** A Buffer over the same bytes, which can search for more than one byte. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export const NEWLINE = 0x0a;

/** Whether `bytes` has `wanted` at `at`. */
export function hasAt(bytes: Uint8Array, wanted: Uint8Array, at: number): boolean {
  if (at + wanted.length > bytes.length) return false;
  for (let i = 0; i < wanted.length; i++) if (bytes[at + i] !== wanted[i]) return false;
  return true;
}
