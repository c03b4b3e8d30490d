import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const MAGIC_64 = 0xfeedfacf;
const CPU_ARM64 = 0x0100000c;
const LC_CODE_SIGNATURE = 0x1d;
const LC_BUILD_VERSION = 0x32;
const CODE_DIRECTORY = 0xfade0c02;
const SUPER_BLOB = 0xfade0cc0;
const SHA256 = 2;

/** What a Mach-O file says of itself, and whether its code signature covers the bytes that are there. */
export type MachO = {
  readonly machine: "aarch64" | "other";
  /** Oldest macOS that it is for, `13.0`; null where it does not say. */
  readonly macos: string | null;
  /** `whole`, or what is wrong: macOS kills an arm64 program whose signature does not hold. */
  readonly signature: string;
};

/** Reads a 64-bit Mach-O file (mach-o/loader.h); null where it is none. */
export function readMachO(path: string): MachO | null {
  const bytes = readFileSync(path);
  if (bytes.readUInt32LE(0) !== MAGIC_64) return null;
  const commands: { readonly kind: number; readonly at: number }[] = [];
  for (let at = 32, left = bytes.readUInt32LE(16); left > 0; left--, at += bytes.readUInt32LE(at + 4))
    commands.push({ kind: bytes.readUInt32LE(at), at });
  const signature = commands.find(({ kind }) => kind === LC_CODE_SIGNATURE);
  const build = commands.find(({ kind }) => kind === LC_BUILD_VERSION);
  const least = build === undefined ? null : bytes.readUInt32LE(build.at + 12);
  return {
    machine: bytes.readUInt32LE(4) === CPU_ARM64 ? "aarch64" : "other",
    macos: least === null ? null : `${least >> 16}.${(least >> 8) & 255}`,
    signature:
      signature === undefined ? "there is none" : signatureOf(bytes, bytes.readUInt32LE(signature.at + 8)),
  };
}

/** Holds every page of the file against its hash in the code directory (cs_blobs.h; its numbers are big-endian). */
function signatureOf(bytes: Buffer, blobAt: number): string {
  if (bytes.readUInt32BE(blobAt) !== SUPER_BLOB) return "it is no signature";
  const count = bytes.readUInt32BE(blobAt + 8);
  const parts = Array.from(
    { length: count },
    (_, index) => blobAt + bytes.readUInt32BE(blobAt + 16 + index * 8),
  );
  const directory = parts.find((at) => bytes.readUInt32BE(at) === CODE_DIRECTORY);
  if (directory === undefined) return "it has no code directory";
  const hashesAt = directory + bytes.readUInt32BE(directory + 16);
  const slots = bytes.readUInt32BE(directory + 28);
  const limit = bytes.readUInt32BE(directory + 32);
  if (bytes[directory + 37] !== SHA256) return "its hashes are not SHA-256";
  const page = 2 ** bytes[directory + 39]!;
  if (slots !== Math.ceil(limit / page)) return `it has ${slots} hashes for ${limit} bytes`;
  if (limit !== blobAt) return `it ends at byte ${limit} of ${blobAt}`;
  for (let slot = 0; slot < slots; slot++) {
    const content = bytes.subarray(slot * page, Math.min((slot + 1) * page, limit));
    const wanted = bytes.subarray(hashesAt + slot * 32, hashesAt + slot * 32 + 32);
    if (!createHash("sha256").update(content).digest().equals(wanted)) return `page ${slot} was changed`;
  }
  return "whole";
}
