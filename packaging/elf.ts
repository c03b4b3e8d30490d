import { closeSync, openSync, readSync } from "node:fs";

/** What an ELF file asks of its host (elf(5)). */
export type Elf = {
  readonly machine: string;
  /** The dynamic loader, whole path. */
  readonly interpreter: string | null;
  /** Names of the libraries it is linked to. */
  readonly needed: readonly string[];
  /** Symbol versions it needs (`GLIBC_2.17`), of all libraries. */
  readonly versions: readonly string[];
};

const MACHINES: Readonly<Record<number, string>> = { 62: "x86-64", 183: "aarch64" };
const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT = { needed: 1, strtab: 5, verneed: 0x6ffffffe, verneednum: 0x6fffffff } as const;

/** Reads a 64-bit little-endian ELF file; null where it is none. */
export function readElf(path: string): Elf | null {
  const file = openSync(path, "r");
  try {
    const at = (offset: number, length: number) => {
      const bytes = Buffer.alloc(length);
      readSync(file, bytes, 0, length, offset);
      return bytes;
    };
    const head = at(0, 64);
    if (head.toString("latin1", 0, 6) !== "\x7fELF\x02\x01") return null;
    const segments = segmentsOf(at(Number(head.readBigUInt64LE(32)), head.readUInt16LE(56) * 56));
    const interpreter = segments.find(({ type }) => type === PT_INTERP);
    const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
    const tags = dynamic === undefined ? [] : tagsOf(at(dynamic.offset, dynamic.size));
    const fileOffset = (address: number) => {
      const home = segments.find(
        (one) => one.type === PT_LOAD && address >= one.address && address < one.address + one.size,
      );
      if (home === undefined) throw new Error(`${path}: address ${address} is in no segment`);
      return home.offset + address - home.address;
    };
    const tagged = (tag: number) => tags.find(([name]) => name === tag)?.[1];
    const strings = tagged(DT.strtab);
    const text = (offset: number) => cString(at(fileOffset(strings!) + offset, 256));
    return {
      machine: MACHINES[head.readUInt16LE(18)] ?? `machine ${head.readUInt16LE(18)}`,
      interpreter: interpreter === undefined ? null : cString(at(interpreter.offset, interpreter.size)),
      needed: tags.filter(([name]) => name === DT.needed).map(([, value]) => text(value)),
      versions: versionsOf(tagged(DT.verneed), tagged(DT.verneednum) ?? 0, fileOffset, at, text),
    };
  } finally {
    closeSync(file);
  }
}

type Segment = {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
};

function segmentsOf(table: Buffer): readonly Segment[] {
  return Array.from({ length: table.length / 56 }, (_, index) => {
    const row = table.subarray(index * 56);
    return {
      type: row.readUInt32LE(0),
      offset: Number(row.readBigUInt64LE(8)),
      address: Number(row.readBigUInt64LE(16)),
      size: Number(row.readBigUInt64LE(32)),
    };
  });
}

function tagsOf(table: Buffer): readonly (readonly [number, number])[] {
  return Array.from({ length: table.length / 16 }, (_, index) => [
    Number(table.readBigInt64LE(index * 16)),
    Number(table.readBigUInt64LE(index * 16 + 8)),
  ]);
}

/** The chains of `Elfxx_Verneed` and `Elfxx_Vernaux` records (System V ABI, Symbol Versioning). */
function versionsOf(
  address: number | undefined,
  count: number,
  fileOffset: (address: number) => number,
  at: (offset: number, length: number) => Buffer,
  text: (offset: number) => string,
): readonly string[] {
  const found: string[] = [];
  let place = address === undefined ? 0 : fileOffset(address);
  for (let index = 0; index < count; index++) {
    const need = at(place, 16);
    let part = place + need.readUInt32LE(8);
    for (let left = need.readUInt16LE(2); left > 0; left--) {
      const one = at(part, 16);
      found.push(text(one.readUInt32LE(8)));
      part += one.readUInt32LE(12);
    }
    place += need.readUInt32LE(12);
  }
  return found;
}

const cString = (bytes: Buffer) => bytes.toString("latin1").split("\0")[0]!;

/** The newest glibc that the versions need, as `[major, minor]`; null where none is named. */
export function glibcFloor(versions: readonly string[]): readonly [number, number] | null {
  const named = versions.flatMap((version) => {
    const found = /^GLIBC_(\d+)\.(\d+)/.exec(version);
    return found === null ? [] : [[Number(found[1]), Number(found[2])] as const];
  });
  return named.sort(([a, b], [c, d]) => c - a || d - b)[0] ?? null;
}
