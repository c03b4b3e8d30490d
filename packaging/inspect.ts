import { existsSync } from "node:fs";
import { join } from "node:path";
import { glibcFloor, readElf } from "./elf.ts";
import { readMachO } from "./macho.ts";
import type { Release } from "./release.ts";
import { ROOT, run } from "./shell.ts";
import type { Target } from "./targets.ts";

/** The newest glibc that an executable may need: that of the oldest hosts, CentOS 7's. */
export const GLIBC_FLOOR = [2, 17] as const;

const LOADERS = {
  glibc: { "x86-64": "/lib64/ld-linux-x86-64.so.2", aarch64: "/lib/ld-linux-aarch64.so.1" },
  musl: { "x86-64": "/lib/ld-musl-x86_64.so.1", aarch64: "/lib/ld-musl-aarch64.so.1" },
} as const;

/** Libraries that an executable may be linked to, beside its loader: those every system of its kind has. */
const LIBRARIES = {
  glibc: /^lib(?:c|pthread|dl|m)\.so\.\d$/,
  // Alpine has libstdc++ as a package of its own.
  musl: /^libc\.musl-\w+\.so\.1$|^libstdc\+\+\.so\.6$/,
} as const;

/**
 * Looks at an executable before it is released: the machine it is for, what it is linked to, and its own word where it
 * runs here. Gives what was found in a line; throws on anything that is not as its name says.
 */
export function inspect(path: string, target: Target, { version, commit }: Release): string {
  const found = target.libc === "none" ? inspectMac(path, target) : inspectLinux(path, target, target.libc);
  if (!runsHere(target)) return found;
  const said = run([path, "--version"], { env: { HOME: "/nonexistent" } }).trim();
  const wanted = `neurarch-gate ${version} (${commit}, ${target.name})`;
  if (said !== wanted) throw new Error(`${path} says \`${said}\`, not \`${wanted}\``);
  // Whole means that the program behind the runtime is there, which its own test tells.
  run([path, "self-test", "--config", join(ROOT, "examples/gate.toml")], {
    env: { HOME: process.env.TMPDIR ?? "/tmp" },
  });
  return `${found}, runs`;
}

/** Whether a target is of this machine; x64 that is not baseline needs AVX2, which a builder may lack. */
function runsHere({ machine, libc, name }: Target): boolean {
  const here = process.platform === "linux" && { x64: "x86-64", arm64: "aarch64" }[process.arch as string];
  const musl = existsSync("/etc/alpine-release");
  if (machine !== here || (libc === "musl") !== musl) return false;
  return name.endsWith("-baseline") || machine !== "x86-64" || /\bavx2\b/.test(run(["cat", "/proc/cpuinfo"]));
}

function inspectLinux(path: string, { name, machine }: Target, libc: "glibc" | "musl"): string {
  const elf = readElf(path);
  if (elf === null) throw new Error(`${path} is no ELF file`);
  const floor = glibcFloor(elf.versions);
  const loader = LOADERS[libc][machine];
  const linked = elf.needed.filter((one) => !loader.endsWith(one) && !LIBRARIES[libc].test(one));
  const wrong = [
    elf.machine === machine ? null : `it is for ${elf.machine}`,
    elf.interpreter === loader ? null : `its loader is ${elf.interpreter}`,
    linked.length === 0 ? null : `it is linked to ${linked.join(", ")}`,
    libc === "glibc" ? floorFault(floor) : floor === null ? null : "it needs glibc",
  ].filter((fault) => fault !== null);
  if (wrong.length > 0) throw new Error(`${name}: ${wrong.join("; ")}`);
  return `ELF ${machine}, ${libc === "glibc" ? `glibc ${floor!.join(".")} or newer` : `musl, ${elf.needed.join(" and ")}`}`;
}

function floorFault(floor: readonly [number, number] | null): string | null {
  if (floor === null) return "it names no version of glibc";
  const [major, minor] = floor;
  const newer = major > GLIBC_FLOOR[0] || (major === GLIBC_FLOOR[0] && minor > GLIBC_FLOOR[1]);
  return newer ? `it needs glibc ${floor.join(".")}, and ${GLIBC_FLOOR.join(".")} is the floor` : null;
}

function inspectMac(path: string, { name }: Target): string {
  const found = readMachO(path);
  if (found === null) throw new Error(`${path} is no Mach-O file`);
  if (found.machine !== "aarch64") throw new Error(`${name}: it is not for arm64`);
  if (found.signature !== "whole") throw new Error(`${name}: its signature: ${found.signature}`);
  return `Mach-O arm64, macOS ${found.macos} or newer, signature whole`;
}
