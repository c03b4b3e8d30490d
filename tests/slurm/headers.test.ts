import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readScript } from "../../src/slurm/script.ts";
import { Cluster, slurmIsHere, slurmVersion } from "./cluster.ts";
import { StandIn } from "./standin.ts";

/**
 * Headers of batch scripts as people write and mis-write them. What is read of them offline must be what a real sbatch
 * hands to its filter: the last column is `sbatch` where it is compared, `refused` where sbatch takes no such script.
 */
type Row = readonly [name: string, script: string, outcome: "sbatch" | "refused"];

const top = (...lines: string[]) => `#!/bin/bash\n${lines.join("\n")}\ntrue\n`;

// biome-ignore format: a table reads by rows
const ROWS: readonly Row[] = [
  ["plain", top("#SBATCH --gres=gpu:a10g:1"), "sbatch"],
  ["blank around =, none", top("#SBATCH --gres gpu:a10g:1"), "sbatch"],
  ["a tab", top("#SBATCH\t--gres=gpu:a10g:1"), "sbatch"],
  ["no blank", top("#SBATCH--gres=gpu:a10g:1"), "sbatch"],
  ["several blanks", top("#SBATCH     --gres=gpu:a10g:1    -N   2"), "sbatch"],
  ["several options on a line", top("#SBATCH --gres=gpu:a10g:1 -N2 --time=10 -n 4"), "sbatch"],
  ["short ones together", top("#SBATCH -Hn4 --gpus=a10g:2"), "sbatch"],
  ["a value on the next line", top("#SBATCH --gres", "#SBATCH gpu:a10g:1"), "sbatch"],
  ["a comment behind", top("#SBATCH --gres=gpu:a10g:1 # two would be better"), "sbatch"],
  ["a comment behind without a blank", top("#SBATCH --gres=gpu:a10g:1#x"), "sbatch"],
  ["double quotes", top('#SBATCH --gres="gpu:a10g:1"'), "sbatch"],
  ["single quotes", top("#SBATCH '--gres=gpu:a10g:1'"), "sbatch"],
  ["quotes inside a word", top('#SBATCH --g"re"s=gpu:a10g:1'), "sbatch"],
  ["a quoted blank", top('#SBATCH --comment="a b" --gres=gpu:a10g:1'), "sbatch"],
  ["a quoted comment sign", top('#SBATCH --comment="a # b" --gres=gpu:a10g:1'), "sbatch"],
  ["an escaped blank", top("#SBATCH --comment=a\\ b --gres=gpu:a10g:1"), slurmVersion() < "24.05" ? "refused" : "sbatch"],
  ["an escaped quote", top('#SBATCH --comment=a\\"b --gres=gpu:a10g:1'), "sbatch"],
  ["a backslash in single quotes", top("#SBATCH --comment='a\\b' --gres=gpu:a10g:1"), "sbatch"],
  ["a quote that stays open", top('#SBATCH --gres="gpu:a10g:1'), "refused"],
  ["given twice", top("#SBATCH --gres=gpu:a10g:1", "#SBATCH --gres=gpu:a100:2"), "sbatch"],
  ["taken back", top("#SBATCH --gres=gpu:a10g:1", "#SBATCH --gres=none"), "sbatch"],
  ["behind a blank line", top("", "   ", "#SBATCH --gres=gpu:a10g:1"), "sbatch"],
  ["behind a comment", top("# job", "  # indented", "#SBATCH --gres=gpu:a10g:1"), "sbatch"],
  ["behind a command", top("module load cuda", "#SBATCH --gres=gpu:a10g:1"), "sbatch"],
  ["behind a command in the line", top("#SBATCH -N2", "true #SBATCH --gres=gpu:a10g:1"), "sbatch"],
  ["indented", top("  #SBATCH --gres=gpu:a10g:1"), "sbatch"],
  ["commented out", top("##SBATCH --gres=gpu:a10g:1"), "sbatch"],
  ["a blank after the sign", top("# SBATCH --gres=gpu:a10g:1"), "sbatch"],
  ["small letters", top("#sbatch --gres=gpu:a10g:1"), "sbatch"],
  ["the old word", top("#SLURM --gres=gpu:a10g:1"), "sbatch"],
  ["a longer word", top("#SBATCHX --gres=gpu:a10g:1", "#SBATCH -N2"), "refused"],
  ["an abbreviation", top("#SBATCH --gpus-per-n=a10g:2"), "sbatch"],
  ["an ambiguous abbreviation", top("#SBATCH --gpu=2"), "refused"],
  ["an unknown option", top("#SBATCH --gress=gpu:a10g:1"), "refused"],
  ["a stray word", top("#SBATCH gpu --gres=gpu:a10g:1"), "refused"],
  ["a flag with a value", top("#SBATCH --hold=1 --gres=gpu:a10g:1"), "refused"],
  ["an option without its value", top("#SBATCH --gres"), "refused"],
  ["exclusive alone", top("#SBATCH --exclusive --gres=gpu:a10g:1"), "sbatch"],
  ["exclusive with a word behind", top("#SBATCH --exclusive=user --gres=gpu:a10g:1"), "sbatch"],
  ["a single dash", top("#SBATCH - --gres=gpu:a10g:1"), "refused"],
  ["two dashes alone", top("#SBATCH -- --gres=gpu:a10g:1"), "refused"],
  ["an empty directive", top("#SBATCH", "#SBATCH --gres=gpu:a10g:1"), "sbatch"],
  ["an empty word ends the line", top('#SBATCH "" --gres=gpu:a10g:1', "#SBATCH -N2"), "sbatch"],
  ["-G joined", top("#SBATCH -Ga10g:2"), "sbatch"],
  ["-G apart", top("#SBATCH -G a10g:2"), "sbatch"],
  ["-N range", top("#SBATCH -N 2-4 --gpus-per-node=h100:2"), "sbatch"],
  ["per task", top("#SBATCH -n 4", "#SBATCH --gpus-per-task=h100:2"), "sbatch"],
  ["no newline at the end", "#!/bin/bash\n#SBATCH --gres=gpu:a10g:1", "sbatch"],
  ["no command", "#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\n", "sbatch"],
  ["another shell", "#!/usr/bin/env python3\n#SBATCH --gres=gpu:a10g:1\nprint(1)\n", "sbatch"],
  ["no interpreter", "#SBATCH --gres=gpu:a10g:1\ntrue\n", "refused"],
  ["DOS line ends", "#!/bin/bash\r\n#SBATCH --gres=gpu:a10g:1\r\ntrue\r\n", "refused"],
  ["a byte order mark", "\uFEFF#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\ntrue\n", "refused"],
  ["a null character", "#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\ntrue \0\n", "refused"],
  ["letters beyond ASCII", top("# größe 字", "#SBATCH --comment=größe --gres=gpu:a10g:1"), "sbatch"],
  ["a long line", top(`#SBATCH --comment=${"c".repeat(900)} --gres=gpu:a10g:1`), "sbatch"],
  ["a long header", top(...Array.from({ length: 3000 }, (_, index) => `# line ${index}`), "#SBATCH --gres=gpu:a10g:1"), "sbatch"],
];

/** Options that are compared: those a request is made of. */
const COMPARED = ["gres", "gpus", "gpus-per-node", "gpus-per-task", "nodes", "ntasks", "exclusive"];

const CI = process.env.CI !== undefined;

// Under CI these run and fail where something is missing; elsewhere they are left out.
describe.skipIf(!CI && !slurmIsHere)("headers as a real sbatch reads them", () => {
  let slurm: Cluster;
  let gate: StandIn;
  beforeAll(() => {
    slurm = Cluster.start();
    gate = StandIn.answering(join(slurm.home, "gates"), ["decision=allow"]);
    slurm.install({ binary: gate.path });
  }, 60_000);
  afterAll(() => slurm?.stop(), 60_000);

  for (const [name, script, outcome] of ROWS) {
    test(name, () => {
      gate.forget();
      const path = join(slurm.home, "job.sh");
      writeFileSync(path, script);
      // With GPUs on the command line too, the filter asks the binary about every script.
      const { exit, err } = slurm.sbatch(
        ["--cpus-per-gpu=1", "--gpus-per-socket=1", "--sockets-per-node=1", path],
        { env: { NEURARCH_MODEL: "a/b" } },
      );
      const [call] = gate.calls;
      if (outcome === "refused") {
        expect({ name, exit: exit === 0 ? 0 : 1, err }).toMatchObject({ exit: 1 });
        return;
      }
      expect({ name, err, heard: call !== undefined }).toMatchObject({ heard: true });
      const heard: Record<string, string> = {};
      for (let at = 1; at < call!.length; at++) {
        const joint = /^--([a-z-]+)=(.*)$/.exec(call![at]!);
        if (joint !== null) heard[joint[1]!] = joint[2]!;
        else heard[call![at]!.slice(2)] = call![++at]!;
      }
      const read = readScript(script).components[0]!.options;
      const plain = (options: Readonly<Record<string, string>>) =>
        Object.fromEntries(
          COMPARED.filter((key) => options[key] !== undefined).map((key) => [
            key,
            options[key]!.replace(/^gres[:/]/, ""),
          ]),
        );
      expect({ name, ...plain(read) }).toEqual({ name, ...plain(heard) });
    });
  }
});
