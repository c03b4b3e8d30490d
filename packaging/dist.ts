import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { compile } from "./compile.ts";
import { packDeb } from "./deb.ts";
import { inspect } from "./inspect.ts";
import { licencesText } from "./licences.ts";
import { bundledLibraries, installedVersions, runtimeParts } from "./parts.ts";
import { packPython } from "./python.ts";
import { releaseOfTree } from "./release.ts";
import { packRpm } from "./rpm.ts";
import { sbomText } from "./sbom.ts";
import { ROOT, run, sha256Of } from "./shell.ts";
import { TARGETS, targetsOf } from "./targets.ts";
import { layOut } from "./tree.ts";

/**
 * Builds a release: `bun packaging/dist.ts [--targets NAME,...] [--packages deb,rpm,python] [--out FOLDER]`; without
 * words all of it, into dist/release. Every file is looked at, and those of this machine are run, before they are listed.
 */
const { values } = parseArgs({
  options: { targets: { type: "string" }, packages: { type: "string" }, out: { type: "string" } },
});
const targets = values.targets === undefined ? TARGETS : targetsOf(values.targets.split(","));
const packages = (values.packages ?? "deb,rpm,python").split(",");
const folder = resolve(values.out ?? join(ROOT, "dist/release"));
const release = releaseOfTree();
const say = (line: string) => process.stderr.write(`== ${line}\n`);

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
run(["make", "-s", "build"], { env: { SOURCE_DATE_EPOCH: String(release.epoch) } });
if (statSync(join(ROOT, "dist/submit.order")).size === 0)
  throw new Error("the order of a submit could not be taken: a release built without it has another hash");

const built = targets.map((target) => {
  const path = compile(target, release, folder);
  say(`${basename(path)}: ${inspect(path, target, release)}`);
  return { target, path };
});
const libraries = bundledLibraries();
const parts = runtimeParts(installedVersions());
const licences = join(folder, `neurarch-gate-${release.version}-licences.txt`);
writeFileSync(licences, licencesText(libraries, parts));
writeFileSync(
  join(folder, `neurarch-gate-${release.version}.cdx.json`),
  sbomText(release, built, libraries, parts),
);

for (const { target, path } of built) {
  if (target.packages === null) continue;
  const root = join(folder, ".root");
  const from = { executable: path, printer: join(ROOT, "dist/neurarch-gate"), licences };
  for (const kind of ["deb", "rpm"] as const) {
    if (!packages.includes(kind)) continue;
    layOut(root, kind, from, release);
    const pack = kind === "deb" ? packDeb : packRpm;
    say(basename(pack(root, target.packages[kind], release, folder)));
  }
  rmSync(root, { recursive: true, force: true });
}
if (packages.includes("python")) for (const path of packPython(release, folder)) say(basename(path));

const names = readdirSync(folder).sort();
const sums = names.map((name) => `${sha256Of(join(folder, name))}  ${name}\n`).join("");
writeFileSync(join(folder, "SHA256SUMS"), sums);
process.stdout.write(sums);
