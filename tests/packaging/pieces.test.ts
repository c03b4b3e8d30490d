import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { glibcFloor, readElf } from "../../packaging/elf.ts";
import { inspect } from "../../packaging/inspect.ts";
import { readMachO } from "../../packaging/macho.ts";
import { installedVersions, runtimeParts } from "../../packaging/parts.ts";
import { setPythonVersion, VERSIONED } from "../../packaging/python-version.ts";
import { packageVersion, pythonVersion } from "../../packaging/release.ts";
import { run as shell } from "../../packaging/shell.ts";
import { BUN_VERSION, TARGETS, targetsOf } from "../../packaging/targets.ts";
import { BINARY, ROOT } from "../acceptance/run.ts";

const textOf = (path: string) => readFileSync(resolve(ROOT, path), "utf8");
const version = (JSON.parse(textOf("package.json")) as { version: string }).version;
let work: string;
beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), "neurarch-packaging-"));
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

describe("versions", () => {
  test("the Python package and the lock file have that of package.json", () => {
    for (const name of VERSIONED) {
      const found = /^(?:version|__version__) = ["'](.*)["']$/m.exec(textOf(`python-shim/${name}`));
      expect(found![1]!).toBe(pythonVersion(version));
    }
    const lock = JSON.parse(textOf("package-lock.json"));
    expect([lock.version, lock.packages[""].version]).toEqual([version, version]);
  });
  test("npm's script writes it into every file of the Python package", () => {
    const folder = join(work, "shim");
    cpSync(join(ROOT, "python-shim"), folder, { recursive: true });
    setPythonVersion(folder, "9.8.7-rc.6");
    for (const name of VERSIONED)
      expect(textOf(join(folder, name))).toMatch(/^(?:__)?version(?:__)? = ["']9\.8\.7rc6["']$/m);
  });
  test.each([
    ["1.2.3", "1.2.3", "1.2.3"],
    ["1.2.3-rc.1", "1.2.3rc1", "1.2.3~rc.1"],
    ["0.10.0-beta.12", "0.10.0b12", "0.10.0~beta.12"],
    ["0.10.0-alpha.0", "0.10.0a0", "0.10.0~alpha.0"],
  ])("%s is %s in Python and %s in a package", (given, python, packaged) => {
    expect([pythonVersion(given), packageVersion(given)]).toEqual([python, packaged]);
  });
  test.each(["1.2", "1.2.3-rc1", "1.2.3+x", "v1.2.3"])("%s has no form in Python", (given) => {
    expect(() => pythonVersion(given)).toThrow("no form in Python");
  });
});

describe("targets", () => {
  test("the runtimes are those of the Bun that is installed", () => {
    const lock = JSON.parse(textOf("package-lock.json")).packages as Record<
      string,
      { version: string; integrity: string }
    >;
    expect(lock["node_modules/bun"]!.version).toBe(BUN_VERSION);
    const locked = TARGETS.flatMap(({ runtime }) => {
      const entry = lock[`node_modules/${runtime.package}`];
      return entry === undefined ? [] : [[runtime.integrity, entry.integrity]];
    });
    // The baseline one is no dependency of Bun's package, so the lock file has not heard of it.
    expect(locked.length).toBe(TARGETS.length - 1);
    for (const [ours, theirs] of locked) expect(ours).toBe(theirs);
  });
  test("the baseline runtime stands first, and a name that is none is an error", () => {
    expect(TARGETS[0]!.name).toBe("linux-x64-baseline");
    expect(targetsOf(["linux-arm64", "linux-x64"]).map(({ name }) => name)).toEqual([
      "linux-x64",
      "linux-arm64",
    ]);
    expect(() => targetsOf(["linux-x86"])).toThrow("no target linux-x86; there are linux-x64-baseline,");
  });
  test("the licence of all that Bun says it links is known", () => {
    const parts = runtimeParts(installedVersions());
    expect(parts.find(({ name }) => name === "JavaScriptCore (WebKit)")!.version).toMatch(/^[0-9a-f]{40}$/);
    expect(() => runtimeParts({ ...installedVersions(), newlib: "1" })).toThrow("no licence of newlib");
  });
});

describe("where it is installed", () => {
  test("docs/install.md has the file of every target and package", () => {
    const page = textOf("docs/install.md");
    for (const { name, packages } of TARGETS) {
      expect(page).toContain(
        name.endsWith("arm64-musl") ? `\`-${name}\`` : `\`neurarch-gate-VERSION-${name}\``,
      );
      if (packages !== null) for (const kind of [packages.deb, packages.rpm]) expect(page).toContain(kind);
    }
  });
  test.each([
    [["/usr/local/bin/neurarch-gate", "/usr/bin/neurarch-gate"], "/usr/local/bin/neurarch-gate"],
    [["/usr/bin/neurarch-gate"], "/usr/bin/neurarch-gate"],
    [[], "/usr/local/bin/neurarch-gate"],
  ])("with %j the Python policy asks %s", (there, asked) => {
    const lines = [
      "import os, sys, types",
      "sky = types.ModuleType('sky')",
      "sky.AdminPolicy, sky.exceptions = object, types.ModuleType('sky.exceptions')",
      "sys.modules.update({'sky': sky, 'sky.exceptions': sky.exceptions})",
      `there = ${JSON.stringify(there)}`,
      "os.path.exists = lambda path: path in there",
      "import neurarch_gate",
      "print(neurarch_gate.NeurarchPolicy.binary)",
    ];
    const env = { PYTHONPATH: join(ROOT, "python-shim"), PYTHONDONTWRITEBYTECODE: "1" };
    expect(shell(["python3", "-c", lines.join("\n")], { env })).toBe(`${asked}\n`);
  });
});

describe("what an executable asks of its host", () => {
  const release = { version, commit: "none", epoch: 0 };
  const [baseline, , arm, musl, , mac] = TARGETS;
  test("this machine's own: its loader, its libraries, at most glibc 2.17", () => {
    const elf = readElf(BINARY)!;
    expect(elf.needed).toContain("libc.so.6");
    expect(elf.interpreter).toMatch(/^\/lib(?:64)?\/ld-linux-/);
    expect(elf.versions).toContain("GLIBC_2.17");
    expect(glibcFloor(elf.versions)).toEqual([2, 17]);
  });
  test.each([
    [
      ["GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.3.4"],
      [2, 17],
    ],
    [
      ["GLIBC_2.9", "GLIBC_2.28"],
      [2, 28],
    ],
    [["GLIBCXX_3.4.30", "GCC_3.0"], null],
    [
      ["GLIBC_3.0", "GLIBC_2.40"],
      [3, 0],
    ],
  ] as const)("%j need glibc %j", (versions, floor) => {
    expect(glibcFloor(versions)).toEqual(floor as [number, number] | null);
  });
  test("a newer glibc, another machine, another libc and a file of another kind are all refused", () => {
    // The name of the newest version in the file, changed to one that CentOS 7 and Debian 10 have not.
    const newer = join(work, "newer");
    const bytes = readFileSync(BINARY);
    for (let at = bytes.indexOf("GLIBC_2.17\0"); at >= 0; at = bytes.indexOf("GLIBC_2.17\0", at + 1))
      bytes.write("GLIBC_2.34", at, "latin1");
    writeFileSync(newer, bytes);
    expect(() => inspect(newer, baseline!, release)).toThrow("it needs glibc 2.34, and 2.17 is the floor");
    if (process.arch === "x64") expect(() => inspect(BINARY, arm!, release)).toThrow("it is for x86-64");
    expect(() => inspect(BINARY, musl!, release)).toThrow("it needs glibc");
    expect(() => inspect(BINARY, mac!, release)).toThrow("is no Mach-O file");
    expect(() => inspect(join(ROOT, "package.json"), baseline!, release)).toThrow("is no ELF file");
  });
  test.if(process.arch === "x64")("an executable that was stripped of its program is refused", () => {
    // What strip leaves: the runtime alone.
    const stripped = join(work, "stripped");
    copyFileSync(join(ROOT, "node_modules/bun/bin/bun.exe"), stripped);
    expect(() => inspect(stripped, baseline!, release)).toThrow(`says \`${BUN_VERSION}\``);
  });
});

describe("a Mach-O file's signature", () => {
  const PAGE = 4096;
  /** The smallest signed file: a header, two commands, one page of code and the code directory over it. */
  function signed(): Buffer {
    const bytes = Buffer.alloc(PAGE + 12 + 8 + 44 + 32);
    for (const [at, value] of [
      [0, 0xfeedfacf],
      [4, 0x0100000c],
      [16, 2],
      [32, 0x32],
      [36, 24],
      [44, 13 << 16],
      [56, 0x1d],
      [60, 16],
      [64, PAGE],
    ] as const)
      bytes.writeUInt32LE(value, at);
    const directory = PAGE + 20;
    for (const [at, value] of [
      [PAGE, 0xfade0cc0],
      [PAGE + 8, 1],
      [PAGE + 16, 20],
      [directory, 0xfade0c02],
      [directory + 16, 44],
      [directory + 28, 1],
      [directory + 32, PAGE],
    ] as const)
      bytes.writeUInt32BE(value, at);
    bytes[directory + 37] = 2;
    bytes[directory + 39] = 12;
    new Bun.CryptoHasher("sha256")
      .update(bytes.subarray(0, PAGE))
      .digest()
      .copy(bytes, directory + 44);
    return bytes;
  }
  const read = (bytes: Buffer) => {
    const path = join(work, "macho");
    writeFileSync(path, bytes);
    return readMachO(path);
  };
  test("holds, and does not when one byte of the code was changed or the signature is cut off", () => {
    expect(read(signed())).toEqual({ machine: "aarch64", macos: "13.0", signature: "whole" });
    const changed = signed();
    changed[2000] = 1;
    expect(read(changed)!.signature).toBe("page 0 was changed");
    const unsigned = signed();
    unsigned.writeUInt32LE(0x1b, 56);
    expect(read(unsigned)!.signature).toBe("there is none");
    const longer = Buffer.concat([signed().subarray(0, PAGE), Buffer.alloc(PAGE), signed().subarray(PAGE)]);
    longer.writeUInt32LE(2 * PAGE, 64);
    expect(read(longer)!.signature).toBe(`it ends at byte ${PAGE} of ${2 * PAGE}`);
  });
  test("a file that is none is told from one", () => {
    copyFileSync(BINARY, join(work, "elf"));
    truncateSync(join(work, "elf"), 4096);
    expect(readMachO(join(work, "elf"))).toBeNull();
  });
});
