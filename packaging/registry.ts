import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { ROOT, run } from "./shell.ts";
import { BUN_VERSION, type Target } from "./targets.ts";

/** Where fetched packages are kept: nothing is fetched twice. */
const KEPT = process.env.DIST_CACHE ?? join(ROOT, ".cache", "dist");

/**
 * Unpacks one file of an npm package, fetched with npm's own client, and gives its path. The archive must have the
 * integrity that is asked for (Subresource Integrity, as in package-lock.json); throws where it has another one.
 */
export function packagedFile(name: string, version: string, integrity: string, file: string): string {
  const folder = join(KEPT, `${name.replace("@", "").replace("/", "-")}-${version}`);
  const path = join(folder, "package", file);
  if (existsSync(path)) return path;
  mkdirSync(KEPT, { recursive: true });
  // Unpacked aside and put in place by one rename, so that a fetch that was cut off leaves nothing to be found.
  const work = mkdtempSync(join(KEPT, "fetch-"));
  try {
    run(["npm", "pack", "--silent", "--pack-destination", work, `${name}@${version}`], { cwd: work });
    const archive = join(work, readdirSync(work).find((entry) => entry.endsWith(".tgz"))!);
    const [kind, wanted] = integrity.split(/-(.*)/s) as [string, string];
    const found = createHash(kind).update(readFileSync(archive)).digest("base64");
    if (found !== wanted) throw new Error(`${name}@${version} has ${kind}-${found}, not ${integrity}`);
    const unpacked = join(work, "unpacked");
    mkdirSync(unpacked);
    run(["tar", "-xzf", archive, "-C", unpacked, "--no-same-owner"]);
    rmSync(folder, { recursive: true, force: true });
    renameSync(unpacked, folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return path;
}

/** The runtime of a target, as its package of the registry has it. */
export function runtimeOf({ runtime }: Target): string {
  const installed = JSON.parse(readFileSync(join(ROOT, "node_modules/bun/package.json"), "utf8")).version;
  if (installed !== BUN_VERSION)
    throw new Error(
      `Bun ${installed} is installed, and packaging/targets.ts has the runtimes of ${BUN_VERSION}`,
    );
  const path = packagedFile(runtime.package, BUN_VERSION, runtime.integrity, "bin/bun");
  chmodSync(path, 0o755);
  return path;
}
