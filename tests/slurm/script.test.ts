import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readDirectives } from "../../src/slurm/comments.ts";
import { environmentOptions } from "../../src/slurm/sbatch-env.ts";
import { longOption, longOptionNames, shortOption } from "../../src/slurm/sbatch-options.ts";
import { readScript } from "../../src/slurm/script.ts";

const HEAD = "#!/bin/bash\n";

/** The options of a script of these header lines, without `#!`. */
function optionsOf(...lines: string[]): Readonly<Record<string, string>> {
  return readScript(`${HEAD}${lines.join("\n")}\n`).components[0]!.options;
}

const codes = (text: string) => readScript(text).notes.map((note) => `${note.code} ${note.line ?? "-"}`);

describe("options, as sbatch 22.05 and 24.11 read them", () => {
  const ROWS: [string, string[], Record<string, string>][] = [
    ["long with =", ["#SBATCH --gres=gpu:a10g:1"], { gres: "gpu:a10g:1" }],
    ["long with a blank", ["#SBATCH --gres gpu:a10g:1"], { gres: "gpu:a10g:1" }],
    ["short, attached", ["#SBATCH -N2 -n4"], { nodes: "2", ntasks: "4" }],
    ["short with a blank", ["#SBATCH -N 2 -G h100:8"], { nodes: "2", gpus: "h100:8" }],
    ["short with = keeps it", ["#SBATCH -N=2"], { nodes: "=2" }],
    [
      "every short one of a request",
      ["#SBATCH -p gpu -t 1:00 -a 0-9 -J x -C h100 -w n1 -c 4 -B 2:8"],
      {
        partition: "gpu",
        time: "1:00",
        array: "0-9",
        "job-name": "x",
        constraint: "h100",
        nodelist: "n1",
        "cpus-per-task": "4",
        "extra-node-info": "2:8",
      },
    ],
    ["flags together", ["#SBATCH -Hv -N2"], { hold: "set", verbose: "set", nodes: "2" }],
    ["flags before a value", ["#SBATCH -vN2"], { verbose: "set", nodes: "2" }],
    ["no blank after the word", ["#SBATCH--gres=gpu:2"], { gres: "gpu:2" }],
    ["tabs", ["#SBATCH\t-N\t2\t"], { nodes: "2" }],
    ["the value on the next line", ["#SBATCH --gres", "#SBATCH gpu:2"], { gres: "gpu:2" }],
    [
      "a beginning of a name",
      ["#SBATCH --part=debug --gpus-per-n=1"],
      { partition: "debug", "gpus-per-node": "1" },
    ],
    [
      "a full name that others begin with",
      ["#SBATCH --gres=gpu:1 --time=5 --gpus=2 --nodes=1"],
      { gres: "gpu:1", time: "5", gpus: "2", nodes: "1" },
    ],
    [
      "other spellings",
      ["#SBATCH --tasks-per-node=4 --cluster=c"],
      { "ntasks-per-node": "4", clusters: "c" },
    ],
    ["optional values", ["#SBATCH --exclusive --nice"], { exclusive: "exclusive", nice: "set" }],
    ["an optional value needs =", ["#SBATCH --exclusive=user"], { exclusive: "user" }],
    ["the last one holds", ["#SBATCH --gres=gpu:1", "#SBATCH --gres=gpu:2"], { gres: "gpu:2" }],
    ["quotes", ["#SBATCH --comment=\"a b\" --job-name='c d'"], { comment: "a b", "job-name": "c d" }],
    ["quotes inside a word", ["#SBATCH --comment=a'b c'd"], { comment: "ab cd" }],
    ["an escaped quote", ['#SBATCH --comment="a\\"b"'], { comment: 'a"b' }],
    ["an escaped blank", ["#SBATCH --comment=a\\ b -N2"], { comment: "a b", nodes: "2" }],
    ["a comment", ["#SBATCH -N2 # -N4"], { nodes: "2" }],
    ["a comment inside a word", ["#SBATCH --job-name=x#y -N3"], { "job-name": "x" }],
    ["a quoted hash", ["#SBATCH --job-name='x#y' -N3"], { "job-name": "x#y", nodes: "3" }],
    ["an empty word ends its line", ['#SBATCH --gres=gpu:1 "" -N2'], { gres: "gpu:1" }],
    ["an empty word is no value", ['#SBATCH --comment "" --gres=gpu:1', "#SBATCH -N2"], { comment: "-N2" }],
    ["hetjob inside a line ends it", ["#SBATCH --gres=gpu:1 hetjob -N2"], { gres: "gpu:1" }],
    ["a lone --", ["#SBATCH -N2", "#SBATCH --"], { nodes: "2" }],
    ["the old word", ["#SLURM -N2"], { nodes: "2" }],
    ["blank lines and comments between", ["", "# text", "   ", "#", "#SBATCH -N2"], { nodes: "2" }],
    ["a blank before a comment", ["  # text", "#SBATCH -N2"], { nodes: "2" }],
    ["names of Object are no options", ["#SBATCH --constructor=1 --toString"], {}],
  ];
  for (const [name, lines, expected] of ROWS) test(name, () => expect(optionsOf(...lines)).toEqual(expected));
});

describe("what is no directive", () => {
  const ROWS: [string, string[], number | null][] = [
    ["after the first command", ["module load cuda", "#SBATCH --gres=gpu:8"], 3],
    ["after a command with blanks before it", ["  cd x", "#SBATCH --gres=gpu:8"], 3],
    ["blanks before the word", ["  #SBATCH --gres=gpu:8"], 2],
    ["two hashes", ["##SBATCH --gres=gpu:8"], 2],
    ["a blank inside", ["# SBATCH --gres=gpu:8"], 2],
    ["small letters", ["#sbatch --gres=gpu:8"], 2],
    ["our word after a command", ["date", "#NEURARCH model=a/b"], 3],
    ["our word with blanks before it", [" #NEURARCH model=a/b"], 2],
    ["our word with two hashes", ["##NEURARCH model=a/b"], 2],
    ["our word without a blank after it", ["#NEURARCHmodel=a/b"], 2],
    ["our word in small letters", ["#neurarch model=a/b"], 2],
    ["a sentence about it", ["# SBATCH lines follow", "# NEURARCH sizes this job"], null],
    ["our word as a variable", ["#NEURARCH_MODEL=a/b"], 2],
    ["a here-document", ["cat <<EOF > job.sh", "#SBATCH --gres=gpu:8", "EOF"], null],
    ["a quoted here-document", ["cat <<-'END' | sbatch", "\t#SBATCH --gres=gpu:8", "\tEND"], null],
    ["after a here-document", ["cat << EOF", "x", "EOF", "#SBATCH -N2"], 5],
    ["a here-string is none", ["cat <<< x", "#SBATCH -N2"], 3],
  ];
  for (const [name, lines, line] of ROWS) {
    test(name, () => {
      const script = readScript(`${HEAD}${lines.join("\n")}\n`);
      expect([script.components[0]!.options, script.neurarch]).toEqual([{}, []]);
      expect(script.notes.map((note) => [note.code, note.line])).toEqual(
        line === null ? [] : [["directive-ignored", line]],
      );
    });
  }
});

describe("#NEURARCH lines", () => {
  test("text and line, whatever stands between", () => {
    const script = readScript(
      `${HEAD}#SBATCH -N1\n#NEURARCH model=a/b batch=8\n\n#NEURARCH\tlora-rank=16\n#NEURARCH\ndate\n`,
    );
    expect(script.neurarch).toEqual([
      { text: "model=a/b batch=8", line: 3 },
      { text: "lora-rank=16", line: 5 },
      { text: "", line: 6 },
    ]);
  });
  test("the last line needs no line end", () => {
    expect(readScript("#!/bin/sh\n#NEURARCH model=a/b").neurarch).toEqual([{ text: "model=a/b", line: 2 }]);
  });
});

describe("scripts that sbatch refuses are read, and the note says so", () => {
  test("DOS line ends: every value without its \\r", () => {
    const script = readScript(
      "#!/bin/bash\r\n#SBATCH --gres=gpu:a100:2\r\n\r\n#NEURARCH model=a/b batch=8\r\nsrun x\r\n",
    );
    expect(script.components[0]).toEqual({
      options: { gres: "gpu:a100:2" },
      lines: { gres: 2 },
      columns: { gres: 9 },
    });
    expect(script.neurarch).toEqual([{ text: "model=a/b batch=8", line: 4 }]);
    expect(script.notes.map((note) => note.code)).toEqual(["dos-line-endings"]);
  });
  test("a byte order mark", () => {
    const script = readScript(`\uFEFF${HEAD}#SBATCH -N2\n`);
    expect(script.components[0]!.options).toEqual({ nodes: "2" });
    expect(script.notes.map((note) => note.code)).toEqual(["byte-order-mark"]);
  });
  const NOTES: [string, string, string[]][] = [
    ["no #!", "#SBATCH -N2\ndate\n", ["no-interpreter 1"]],
    ["empty", "", ["no-interpreter 1"]],
    ["a null character", `${HEAD}#SBATCH -N2\0 -n3\n`, ["null-character -"]],
    ["an open quote", `${HEAD}#SBATCH --comment="a b\n`, ["quote-open 2"]],
    ["an unknown option", `${HEAD}#SBATCH --partitoin=x\n`, ["option-unknown 2"]],
    ["an ambiguous beginning", `${HEAD}#SBATCH --ntasks-per=2\n`, ["option-unknown 2"]],
    ["an unknown letter", `${HEAD}#SBATCH -Z2\n`, ["option-unknown 2"]],
    ["a stray word", `${HEAD}#SBATCH -N2 gpu:4\n`, ["word-stray 2"]],
    ["words after --", `${HEAD}#SBATCH -- x\n`, ["word-stray 2"]],
    ["a missing value", `${HEAD}#SBATCH -N\n`, ["option-value 2"]],
    ["a value too many", `${HEAD}#SBATCH --hold=1\n`, ["option-value 2"]],
    ["a repeated option", `${HEAD}#SBATCH --gres=gpu:1\n#SBATCH --gres=gpu:2\n`, ["option-repeated 3"]],
    ["the same again is no news", `${HEAD}#SBATCH -N2\n#SBATCH -N2\n`, []],
    ["another scheduler's lines", `${HEAD}#PBS -l nodes=1:gpus=2\n`, ["foreign-directives 2"]],
  ];
  for (const [name, text, expected] of NOTES) test(name, () => expect(codes(text)).toEqual(expected));

  test("an unknown option comes with the nearest one", () => {
    expect(readScript(`${HEAD}#SBATCH --partitoin=x\n`).notes[0]!.message).toBe(
      "sbatch has no option --partitoin (line 2); did you mean --partition?",
    );
  });
  test("a repeated option says which one holds", () => {
    expect(readScript(`${HEAD}#SBATCH --gres=gpu:1\n#SBATCH --gres=gpu:2\n`).notes[0]!.message).toBe(
      "--gres is given twice (lines 2 and 3): the last one, gpu:2, holds",
    );
  });
});

describe("heterogeneous jobs", () => {
  test("components by their separator; time stays, gres and nodes do not", () => {
    const script = readScript(
      `${HEAD}#SBATCH --gres=gpu:1 --comment=a --time=5 -N1\n#SBATCH hetjob --gres=gpu:9\n#SBATCH -n 3\n#SBATCH packjob\n#SBATCH --gres=gpu:4 -t 9\n`,
    );
    expect(script.components.map((component) => component.options)).toEqual([
      { gres: "gpu:1", comment: "a", time: "5", nodes: "1" },
      { comment: "a", time: "5", ntasks: "3" },
      { comment: "a", time: "9", gres: "gpu:4" },
    ]);
    expect(script.components[1]!.lines).toEqual({ comment: 2, time: 2, ntasks: 4 });
  });
  test("the separator without case, and only as a word", () => {
    expect(readScript(`${HEAD}#SBATCH HetJob\n`).components.length).toBe(2);
    expect(codes(`${HEAD}#SBATCH hetjobs\n`)).toEqual(["word-stray 2"]);
  });
});

describe("SBATCH_* variables", () => {
  const ROWS: [string, Record<string, string>, Record<string, string>][] = [
    [
      "a request",
      { SBATCH_GPUS_PER_NODE: "8", SBATCH_PARTITION: "gpu" },
      { "gpus-per-node": "8", partition: "gpu" },
    ],
    ["time and array", { SBATCH_TIMELIMIT: "1:00", SBATCH_ARRAY_INX: "0-3" }, { time: "1:00", array: "0-3" }],
    ["an empty one sets nothing", { SBATCH_GRES: "", SBATCH_GPUS: " " }, {}],
    ["exclusive needs no value", { SBATCH_EXCLUSIVE: "" }, { exclusive: "exclusive" }],
    ["there is none for nodes and tasks", { SBATCH_NODES: "2", SBATCH_NTASKS: "2", SLURM_NNODES: "2" }, {}],
  ];
  for (const [name, env, expected] of ROWS)
    test(name, () => expect(environmentOptions(env)).toEqual(expected));
});

describe("the option table", () => {
  test("finds every name as it is, and never by an empty one", () => {
    for (const name of longOptionNames()) expect(longOption(name)).not.toBe(null);
    expect(longOption("")).toBe(null);
    expect(shortOption("")).toBe(null);
  });
  test("knows what a component inherits", () => {
    const inherited = ["time", "comment", "job-name", "account", "array"].map(
      (name) => longOption(name)?.inherited,
    );
    const own = ["gres", "gpus", "nodes", "ntasks", "partition", "exclusive"].map(
      (name) => longOption(name)?.inherited,
    );
    expect([new Set(inherited), new Set(own)]).toEqual([new Set([true]), new Set([false])]);
  });
});

describe("properties", () => {
  const line = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string().map((text) => `#SBATCH ${text}`),
    fc.string().map((text) => `#NEURARCH ${text}`),
  );
  test("reading never throws, values hold no \\r, notes are one clean line", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), fc.constantFrom("\n", "\r\n"), (lines, end) => {
        const script = readScript(lines.join(end));
        const values = script.components.flatMap((component) => Object.values(component.options));
        expect(values.filter((value) => value.includes("\r"))).toEqual([]);
        expect(script.neurarch.filter(({ text }) => text.endsWith("\r"))).toEqual([]);
        expect(script.notes.filter(({ message }) => /\p{Cc}/u.test(message))).toEqual([]);
      }),
    );
  });
  test("what is quoted is what is read", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[\x20-\x7e]{1,40}$/), (value) => {
        const quoted = value.replace(/["\\]/g, "\\$&");
        expect(optionsOf(`#SBATCH --comment="${quoted}" -N2`)).toEqual({ comment: value, nodes: "2" });
      }),
    );
  });
  test("lines of other kinds between the directives change nothing", () => {
    const comment = fc.stringMatching(/^[ \t]{0,3}(?:#[a-z !]{0,10})?$/);
    fc.assert(
      fc.property(
        fc.array(comment, { maxLength: 5 }),
        fc.array(comment, { maxLength: 5 }),
        (before, between) => {
          const lines = [...before, "#SBATCH --gres=gpu:2", ...between, "#SBATCH -N2"];
          expect(optionsOf(...lines)).toEqual({ gres: "gpu:2", nodes: "2" });
        },
      ),
    );
  });
  const LARGE: [string, () => string][] = [
    [
      "a payload behind the header",
      () => `${HEAD}#SBATCH -N2\ndate\n${"x".repeat(99)}\n`.padEnd(50_000_000, "payload "),
    ],
    ["comments", () => `${HEAD}${"# a comment of a script\n".repeat(2_000_000)}`],
    ["one endless comment", () => `${HEAD}#${" ".repeat(50_000_000)}`],
    ["one endless directive", () => `${HEAD}#SBATCH --comment=${"x".repeat(50_000_000)}`],
    ["blanks", () => `${HEAD}${" ".repeat(50_000_000)}date\n`],
    ["ignored directives", () => `${HEAD}date\n${"#SBATCH -N2\n".repeat(4_000_000)}`],
  ];
  for (const [name, make] of LARGE) {
    // A reading that is not linear in the text would run into the test runner's own limit.
    test(`50 MB of ${name}`, () => {
      const text = make();
      const script = readScript(text);
      expect(script.notes.length).toBeLessThan(50);
    });
  }
});

test("a job's components are read up to as many as it can have", () => {
  const script = readScript(`${HEAD}${"#SBATCH --gres=gpu:1 --nope\n#SBATCH hetjob\n".repeat(30_000)}`);
  expect(script.components.length).toBe(128);
  expect(script.notes.filter(({ code }) => code === "too-many-components").length).toBe(1);
  expect(script.notes.filter(({ code }) => code === "option-unknown").length).toBe(20);
});

test("the directives alone are those of the whole reading", () => {
  const line = fc.constantFrom(
    "#!/bin/bash",
    "",
    "  ",
    "#NEURARCH model=a/b",
    "#NEURARCH",
    "#NEURARCHX y",
    " #NEURARCH batch=1",
    "#NEURARCH\tbatch=2",
    "#SBATCH --gres=gpu:1",
    "#SBATCH hetjob",
    "# note",
    "#",
    "echo hi",
    "#NEURARCH a=b\0c=d",
    "#NEURARCH z=1\r",
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), fc.boolean(), (lines, mark) => {
      const text = `${mark ? "\uFEFF" : ""}${lines.join("\n")}`;
      expect(readDirectives(text)).toEqual([...readScript(text).neurarch]);
    }),
  );
});
