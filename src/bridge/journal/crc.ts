let table: Uint32Array | null = null;

/** The CRC-32 of zlib and Ethernet (reflected, polynomial EDB88320): finds every burst of up to 32 wrong bits. */
export function crc32(bytes: Uint8Array): number {
  table ??= makeTable();
  let crc = 0xffffffff;
  for (let at = 0; at < bytes.length; at++) crc = (table[(crc ^ bytes[at]!) & 0xff] as number) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** Eight hex digits, as they stand in files. */
export function crcText(bytes: Uint8Array): string {
  return crc32(bytes).toString(16).padStart(8, "0");
}

function makeTable(): Uint32Array {
  const made = new Uint32Array(256);
  for (let value = 0; value < 256; value++) {
    let crc = value;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
    made[value] = crc >>> 0;
  }
  return made;
}
