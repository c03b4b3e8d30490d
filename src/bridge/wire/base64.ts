/** Strict base64 (RFC 4648 section 4: padded, no other characters); null where it is none. */
export function decodeBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  try {
    return Uint8Array.fromBase64(text);
  } catch {
    return null;
  }
}
