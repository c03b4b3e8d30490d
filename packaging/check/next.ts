import { appendFileSync, mkdirSync, rmSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { packDeb } from "../deb.ts";
import { releaseOfTree } from "../release.ts";
import { packRpm } from "../rpm.ts";
import { ROOT } from "../shell.ts";
import { layOut, SITE_FILE } from "../tree.ts";

/** Packs an executable as version 99.0.0 with another default in its site file: `next.ts FOLDER EXECUTABLE`. */
const [folder, executable] = process.argv.slice(2) as [string, string];
const release = { ...releaseOfTree(), version: "99.0.0" };
mkdirSync(folder, { recursive: true });
const from = { executable, printer: executable, licences: join(ROOT, "LICENSE") };
const root = join(folder, ".root");
for (const kind of ["deb", "rpm"] as const) {
  layOut(root, kind, from, release);
  appendFileSync(join(root, SITE_FILE), "# a new key\n");
  utimesSync(join(root, SITE_FILE), release.epoch, release.epoch);
  if (kind === "deb") packDeb(root, "amd64", release, folder);
  else packRpm(root, "x86_64", release, folder);
}
rmSync(root, { recursive: true });
