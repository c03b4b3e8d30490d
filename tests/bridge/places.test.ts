import { expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "../..");

/** Machines, partitions, centres and accounts that a bridge could have been made for, and their file systems. */
const PLACES = [
  ..."cscs beverin bristen clariden daint eiger santis todi capstor iopsstor".split(" "),
  ..."perlmutter nersc olcf ornl alcf lrz juelich jureca juwels jupiter-booster leonardo cineca marenostrum".split(
    " ",
  ),
  ..."snellius archer2 isambard tacc stampede vista-gh nautilus mi300-prod uw-syfi hyak klone".split(" "),
];
const NAMES = new RegExp(`(?<![a-z0-9])(?:${PLACES.join("|")})(?![a-z0-9])`, "i");
/** Options that pin a place: an account, a partition or a host that is written out in a program. */
const PINNED = /(?:--account|--partition|\bssh )[= ](?!\$|`)["']?[a-z][a-z0-9_-]*\d/i;

function filesUnder(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesUnder(path) : [path];
  });
}

test("the search finds a place where there is one", () => {
  expect('infra = "slurm/beverin/mi300"').toMatch(NAMES);
  expect("/capstor/scratch").toMatch(NAMES);
  expect("--partition=gpu2").toMatch(PINNED);
  expect("slurm/CLUSTER/PARTITION").not.toMatch(NAMES);
});

test.each(["src/bridge", "src/daemon", "src/cli/commands/bridge", "examples/model-serving-rocm", "schemas"])(
  "nothing in %s names a site, a cluster, an account or a partition",
  (folder) => {
    const named = filesUnder(join(ROOT, folder)).flatMap((path) => {
      const text = readFileSync(path, "utf8");
      const found = NAMES.exec(text) ?? PINNED.exec(text);
      return found === null ? [] : [`${relative(ROOT, path)}: ${found[0]}`];
    });
    expect(named).toEqual([]);
  },
);

test("nothing in src/ names one", () => {
  const named = filesUnder(join(ROOT, "src")).filter((path) => NAMES.test(readFileSync(path, "utf8")));
  expect(named.map((path) => relative(ROOT, path))).toEqual([]);
});
