import { copyFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { packageVersion, type Release } from "./release.ts";
import { run } from "./shell.ts";
import { ZSH_COMPLETIONS } from "./tree.ts";

/** Packs the tree below `root` as an RPM package, and gives its path. */
export function packRpm(root: string, architecture: string, release: Release, folder: string): string {
  const work = mkdtempSync(join(tmpdir(), "neurarch-rpm-"));
  try {
    const defines = {
      _topdir: work,
      _dbpath: join(work, "db"),
      ver: packageVersion(release.version),
      tree: root,
      zsh: `/${ZSH_COMPLETIONS.rpm}`,
    };
    run(
      [
        "rpmbuild",
        "-bb",
        "--quiet",
        ...["--target", `${architecture}-linux`],
        ...Object.entries(defines).flatMap(([name, value]) => ["--define", `${name} ${value}`]),
        join(import.meta.dir, "rpm/neurarch-gate.spec"),
      ],
      { env: { SOURCE_DATE_EPOCH: String(release.epoch), HOME: work } },
    );
    const made = join(work, "RPMS", architecture);
    const [name] = readdirSync(made);
    const path = join(folder, basename(name!));
    copyFileSync(join(made, name!), path);
    return path;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
