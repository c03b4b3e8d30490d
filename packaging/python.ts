import { cpSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setPythonVersion } from "./python-version.ts";
import type { Release } from "./release.ts";
import { ROOT, run } from "./shell.ts";

/** What the wheel and the sdist are built with: other versions write other bytes. */
const BUILDERS = ["setuptools==80.9.0", "build==1.3.0"];

/** Builds the Python policy as a wheel and an sdist of the release's version, and gives their paths. */
export function packPython(release: Release, folder: string): readonly string[] {
  const python = builders();
  const work = join(folder, ".python");
  const source = join(work, "source");
  const out = join(work, "out");
  mkdirSync(work, { recursive: true });
  cpSync(join(ROOT, "python-shim"), source, {
    recursive: true,
    filter: (path) => !/\/(?:__pycache__|build|dist|[^/]+\.egg-info)$/.test(path),
  });
  run(["cp", join(ROOT, "LICENSE"), source]);
  setPythonVersion(source, release.version);
  run(["chmod", "-R", "u=rwX,go=rX", source]);
  const env = { SOURCE_DATE_EPOCH: String(release.epoch) };
  const build = [python, "-m", "build", "--no-isolation", "--outdir", out, source];
  // Modes of what the builders write themselves are in the archives.
  run(["sh", "-c", 'umask 022 && exec "$@"', "sh", ...build], { env });
  const paths = readdirSync(out)
    .sort()
    .map((name) => {
      if (name.endsWith(".tar.gz")) repack(join(out, name), work, release.epoch);
      renameSync(join(out, name), join(folder, name));
      return join(folder, name);
    });
  rmSync(work, { recursive: true });
  return paths;
}

/** Packs an sdist anew with one time, one owner and one order: setuptools writes those of the machine. */
function repack(archive: string, work: string, epoch: number): void {
  const folder = join(work, "sdist");
  mkdirSync(folder);
  run(["tar", "-xzf", archive, "-C", folder]);
  const [name] = readdirSync(folder);
  const plain = [
    "--sort=name",
    `--mtime=@${epoch}`,
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    "--format=ustar",
  ];
  const tar = archive.replace(/\.gz$/, "");
  run(["tar", ...plain, "-cf", tar, "-C", folder, name!]);
  run(["gzip", "-9nf", tar]);
}

/** A Python with the builders, in an environment that is made once. */
function builders(): string {
  const folder = join(process.env.DIST_CACHE ?? join(ROOT, ".cache", "dist"), "python");
  const words = [folder, "build", ...BUILDERS].map((word) => `'${word}'`).join(" ");
  run(["sh", "-c", `. .ci/lib.sh && venv_need ${words}`]);
  return join(folder, "bin/python");
}
