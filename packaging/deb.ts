import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { ABOUT } from "../src/cli/about.ts";
import { packageVersion, type Release } from "./release.ts";
import { run } from "./shell.ts";
import { filesOf, SITE_FILE } from "./tree.ts";

const SCRIPTS = ["postinst", "prerm", "postrm"];

/**
 * Packs the tree below `root` as a Debian package (deb(5), Debian Policy 3 and 6), and gives its path. Nothing is
 * stripped: a compiled Bun program is data behind the runtime, and `strip` would leave the bare runtime.
 */
export function packDeb(root: string, architecture: string, release: Release, folder: string): string {
  const control = join(root, "DEBIAN");
  mkdirSync(control);
  const files = filesOf(root);
  const bytes = files.reduce((sum, path) => sum + statSync(join(root, path)).size, 0);
  writeFileSync(join(control, "control"), controlText(architecture, packageVersion(release.version), bytes));
  writeFileSync(join(control, "conffiles"), `/${SITE_FILE}\n`);
  const digests = files
    .filter((path) => path !== `/${SITE_FILE}`)
    .map((path) => `${md5Of(root + path)}  ${path.slice(1)}\n`);
  writeFileSync(join(control, "md5sums"), digests.join(""));
  for (const name of ["control", "conffiles", "md5sums"]) chmodSync(join(control, name), 0o644);
  for (const name of SCRIPTS) {
    copyFileSync(join(import.meta.dir, "deb", name), join(control, name));
    chmodSync(join(control, name), 0o755);
  }
  for (const name of ["control", "conffiles", "md5sums", ...SCRIPTS])
    utimesSync(join(control, name), release.epoch, release.epoch);
  chmodSync(control, 0o755);
  const path = join(folder, `neurarch-gate_${packageVersion(release.version)}_${architecture}.deb`);
  // One thread, as xz writes other bytes with several; its lowest level is a sixth larger and fifteen times faster.
  run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z0", "--build", root, path], {
    env: { SOURCE_DATE_EPOCH: String(release.epoch), DPKG_DEB_THREADS_MAX: "1" },
  });
  return path;
}

function controlText(architecture: string, version: string, bytes: number): string {
  return `Package: neurarch-gate
Version: ${version}
Architecture: ${architecture}
Maintainer: The neurarch-gate authors <root@localhost>
Installed-Size: ${Math.ceil(bytes / 1024)}
Depends: libc6 (>= 2.17)
Suggests: slurm-client
Section: admin
Priority: optional
Description: judges the GPU request of a training job when it is submitted
 ${ABOUT}
 It sizes the training peak from the model's structure, judges the request and
 speaks to SkyPilot (admin policy) and Slurm (cli_filter).
`;
}

function md5Of(path: string): string {
  return createHash("md5").update(readFileSync(path)).digest("hex");
}
