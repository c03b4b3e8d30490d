import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { combineSkypilot, combineSlurm } from "../../src/facts/combine.ts";
import { directiveFacts } from "../../src/facts/directives.ts";
import { envFacts } from "../../src/facts/env.ts";
import { flagFacts } from "../../src/facts/flags.ts";
import { FACT_SPECS } from "../../src/facts/keys.ts";
import { labelFacts } from "../../src/facts/labels.ts";
import { readFacts } from "../../src/facts/read.ts";
import { recipeOf } from "../../src/facts/recipe.ts";
import type { FactsReading, JobFacts } from "../../src/facts/types.ts";
import { GateError } from "../../src/lib/errors.ts";

const directives = (...lines: string[]) =>
  directiveFacts(lines.map((text, index) => ({ text, line: index + 3 })));
const report = (reading: Parameters<typeof readFacts>[0], notes?: readonly string[]) =>
  readFacts(reading, { unknownKeys: "report", ...(notes === undefined ? {} : { notes }) });

function factsOf(reading: FactsReading): JobFacts {
  if (reading.kind !== "facts") throw new Error(`read as ${JSON.stringify(reading)}`);
  return reading.facts;
}

/** `key: value` of what was told, defaults left out. */
function told(reading: FactsReading): Record<string, unknown> {
  const entries = Object.entries(factsOf(reading)).filter(([, fact]) => fact.from.kind !== "default");
  return Object.fromEntries(entries.map(([key, fact]) => [key, fact.value]));
}

test("of thousands of unknown keys some are told", () => {
  const reading = report(
    directives("model=gpt2", ...Array.from({ length: 20_000 }, (_, at) => `key${at}=1`)),
  );
  expect(reading.notes.length).toBe(20);
  expect(factsOf(reading).model.value).toBe("gpt2");
});

describe("#NEURARCH lines", () => {
  const ROWS: [string, string[], Record<string, unknown>][] = [
    [
      "one line",
      ["model=Qwen/Qwen3-8B batch=8 seq-len=2048"],
      { model: "Qwen/Qwen3-8B", batch: 8, seqLen: 2048 },
    ],
    ["two lines", ["model=a/b", "lora-rank=16 hours=6"], { model: "a/b", loraRank: 16, hours: 6 }],
    ["double quotes", ['model="my models/x" batch=2'], { model: "my models/x", batch: 2 }],
    ["single quotes", ["model='my models/x'"], { model: "my models/x" }],
    ["quotes inside a word", ['mod"el"=a/b'], { model: "a/b" }],
    ["an escaped blank", ["model=my\\ models/x"], { model: "my models/x" }],
    ["a comment", ["model=a/b # batch=9"], { model: "a/b" }],
    ["a comment inside a word", ["model=a/b#1"], { model: "a/b" }],
    ["a quoted hash", ["model='a#b'"], { model: "a#b" }],
    ["tabs", ["\tmodel=a/b\tbatch=4\t"], { model: "a/b", batch: 4 }],
    ["an underscore and capitals", ["MODEL=a/b seq_len=512"], { model: "a/b", seqLen: 512 }],
    ["an equals sign in the value", ["model=a=b"], { model: "a=b" }],
    ["the last one holds", ["model=a/b batch=8", "batch=16"], { model: "a/b", batch: 16 }],
    [
      "all the other keys",
      [
        "model=m precision=bf16 optimizer=lion checkpointing=full quant=nf4 lora-targets=all-linear parallel=ddp offload=all grad-accum=2 loss=fused padding-mask=on",
      ],
      {
        model: "m",
        precision: "bf16",
        optimizer: "lion",
        checkpointing: "full",
        quant: "nf4",
        loraTargets: "all-linear",
        parallel: "ddp",
        offload: "all",
        gradAccum: 2,
        loss: "fused",
        paddingMask: true,
      },
    ],
  ];
  for (const [name, lines, expected] of ROWS)
    test(name, () => expect(told(report(directives(...lines)))).toEqual(expected));

  const PROBLEMS: [string, string[], string][] = [
    [
      "a word for a number",
      ["model=a/b", "batch=eight"],
      '#NEURARCH batch on line 4: "eight" is not a whole number from 1 to 1,000,000; write batch=8, say.',
    ],
    [
      "an empty value",
      ["model=a/b batch="],
      "#NEURARCH batch on line 3 is empty, not a whole number from 1 to 1,000,000; write batch=8, say.",
    ],
    ["an empty model", ["model="], "#NEURARCH model on line 3 is empty; write model=Qwen/Qwen3-8B, say."],
    [
      "no equals sign",
      ["model=a/b batch"],
      "#NEURARCH batch on line 3 has no value (key=value, without blanks around =); write batch=8, say.",
    ],
    [
      "blanks around =",
      ["model=a/b batch = 8"],
      "#NEURARCH batch on line 3 has no value (key=value, without blanks around =); write batch=8, say.",
    ],
    [
      "an open quote",
      ["batch=8 model='a b"],
      '#NEURARCH model on line 3: "a b" has no closing \'; write model=a b, say.',
    ],
    [
      "the last one is the bad one",
      ["model=a/b batch=8", "batch=x"],
      '#NEURARCH batch on line 4: "x" is not a whole number from 1 to 1,000,000; write batch=8, say.',
    ],
  ];
  for (const [name, lines, message] of PROBLEMS) {
    test(`unreadable: ${name}`, () => {
      const reading = report(directives(...lines));
      expect(reading).toMatchObject({ kind: "unreadable", problems: [{ message }] });
      expect("unresolved" in reading).toBe(false);
    });
  }

  test("an unknown key is told with the nearest name and changes nothing", () => {
    const reading = report(directives("model=a/b", "batchsize=64 nonsense"));
    expect(told(reading)).toEqual({ model: "a/b" });
    expect(reading.notes[0]).toBe("Unknown key `batchsize` on line 4, did you mean `batch`?");
    expect(reading.notes[1]).toStartWith("Unknown key `nonsense` on line 4, the keys are model, batch,");
  });

  test("a key given twice is told with both lines, once it differs", () => {
    expect(report(directives("model=a/b batch=8", "batch=16")).notes).toEqual([
      "batch is given twice (lines 3 and 4): the last one, 16, holds",
    ]);
    expect(report(directives("model=a/b batch=8 batch=16")).notes).toEqual([
      "batch is given twice on line 3: the last one, 16, holds",
    ]);
    expect(report(directives("model=a/b batch=8", "batch=8")).notes).toEqual([]);
  });

  test("reading never throws, and tells each problem in one clean line", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" })), (lines) => {
        const reading = report(directives("model=a/b", ...lines));
        const messages =
          reading.kind === "unreadable" ? reading.problems.map((problem) => problem.message) : [];
        return [...messages, ...reading.notes].every(
          (message) => !/\p{Cc}/u.test(message) && message.length < 700,
        );
      }),
    );
  });
});

test("a model that is still a variable is marked, unless something else cannot be read either", () => {
  const variable = "$" + "{BASE_MODEL}";
  const alone = readFacts(envFacts({ NEURARCH_MODEL: variable }), { unknownKeys: "ignore" });
  expect(alone).toMatchObject({
    kind: "unreadable",
    unresolved: true,
    problems: [{ key: "model", value: variable }],
  });
  const both = readFacts(envFacts({ NEURARCH_MODEL: variable, NEURARCH_BATCH: "x" }), {
    unknownKeys: "ignore",
  });
  expect(both.kind).toBe("unreadable");
  expect("unresolved" in both).toBe(false);
  const batch = readFacts(envFacts({ NEURARCH_MODEL: "a/b", NEURARCH_BATCH: "$B" }), {
    unknownKeys: "ignore",
  });
  expect("unresolved" in batch).toBe(false);
});

describe("the environment", () => {
  const read = (env: Record<string, string>) => readFacts(envFacts(env), { unknownKeys: "report" });
  test("every fact has its variable", () => {
    const env = Object.fromEntries(
      FACT_SPECS.map((spec) => [
        spec.env,
        spec.form.kind === "choice" ? spec.form.values.at(-1)! : spec.form.kind === "share" ? "0.1" : "1",
      ]),
    );
    expect(Object.keys(told(read(env))).sort()).toEqual(FACT_SPECS.map((spec) => spec.key).sort());
    expect(FACT_SPECS.map((spec) => spec.env)).toContain("NEURARCH_SEQ_LEN");
  });
  test("other NEURARCH_ variables are not seen", () => {
    const reading = read({
      NEURARCH_MODEL: "a/b",
      NEURARCH_MODE: "warn",
      NEURARCH_MUTATE: "0",
      NEURARCH_BATCHSIZE: "9",
    });
    expect(told(reading)).toEqual({ model: "a/b" });
    expect(reading.notes).toEqual([]);
  });
  test("an empty model is none; an empty number cannot be read", () => {
    expect(read({ NEURARCH_MODEL: "", NEURARCH_BATCH: "x" }).kind).toBe("none");
    expect(read({ NEURARCH_MODEL: "a/b", NEURARCH_BATCH: "" }).kind).toBe("unreadable");
  });
  test("no model is none, whatever else is wrong", () =>
    expect(read({ NEURARCH_BATCH: "eight" }).kind).toBe("none"));
  test("a value that YAML mangled comes with the quoting hint", () => {
    const reading = read({ NEURARCH_MODEL: "a/b", NEURARCH_BATCH: "True" });
    expect(reading).toMatchObject({
      problems: [
        {
          message:
            'NEURARCH_BATCH: "True" is not a whole number from 1 to 1,000,000; write NEURARCH_BATCH=8, say (in YAML NEURARCH_BATCH: "8", with the quotes).',
        },
      ],
    });
  });
  test("names inherited from Object are no variables", () =>
    expect(envFacts(Object.create({ NEURARCH_MODEL: "x" }))).toEqual([]));
});

describe("SkyPilot: envs per fact, then labels, flags over both", () => {
  const read = (
    envs: Record<string, string>,
    labels: Record<string, string>[] = [],
    flags: Record<string, string> = {},
  ) => {
    const combined = combineSkypilot({
      envs: envFacts(envs),
      labels: labelFacts(labels),
      flags: flagFacts(flags),
    });
    return readFacts(combined.raw, { unknownKeys: "ignore", notes: combined.notes });
  };
  const ROWS: [string, Parameters<typeof read>, Record<string, unknown>][] = [
    [
      "labels alone",
      [{}, [{ "neurarch-model": "a/b", "neurarch-seq-len": "512" }]],
      { model: "a/b", seqLen: 512 },
    ],
    [
      "fact by fact",
      [{ NEURARCH_BATCH: "4" }, [{ "neurarch-model": "a/b", "neurarch-batch": "8" }]],
      { model: "a/b", batch: 4 },
    ],
    ["an empty model falls back", [{ NEURARCH_MODEL: " " }, [{ "neurarch-model": "a/b" }]], { model: "a/b" }],
    [
      "labels of some candidates",
      [{}, [{ "neurarch-model": "a/b" }, {}, { "neurarch-batch": "8" }]],
      { model: "a/b", batch: 8 },
    ],
    ["equal labels", [{}, [{ "neurarch-model": "a/b" }, { "neurarch-model": "a/b " }]], { model: "a/b" }],
    [
      "differing labels that an env hides",
      [
        { NEURARCH_BATCH: "2" },
        [{ "neurarch-model": "a/b", "neurarch-batch": "8" }, { "neurarch-batch": "16" }],
      ],
      { model: "a/b", batch: 2 },
    ],
    [
      "a bad env that a flag hides",
      [{ NEURARCH_MODEL: "a/b", NEURARCH_BATCH: "x" }, [], { batch: "4" }],
      { model: "a/b", batch: 4 },
    ],
    ["a flag alone", [{}, [], { model: "a/b", "padding-mask": "on" }], { model: "a/b", paddingMask: true }],
  ];
  for (const [name, args, expected] of ROWS) test(name, () => expect(told(read(...args))).toEqual(expected));

  test("labels that differ between candidates cannot be read", () => {
    const reading = read({ NEURARCH_MODEL: "a/b" }, [{ "neurarch-batch": "8" }, { "neurarch-batch": "16" }]);
    expect(reading).toMatchObject({
      kind: "unreadable",
      problems: [
        {
          key: "batch",
          message:
            'label neurarch-batch: "8" differs between candidates (another has "16"); give every candidate the same.',
        },
      ],
    });
  });
  test("differing models cannot be read either", () =>
    expect(read({}, [{ "neurarch-model": "a" }, { "neurarch-model": "b" }]).kind).toBe("unreadable"));
});

describe("Slurm: directives when they name a model, else the environment as a whole", () => {
  const read = (lines: string[], env: Record<string, string> = {}, flags: Record<string, string> = {}) => {
    const combined = combineSlurm({
      directives: directives(...lines),
      env: envFacts(env),
      flags: flagFacts(flags),
    });
    return readFacts(combined.raw, { unknownKeys: "report", notes: combined.notes });
  };
  const ROWS: [string, Parameters<typeof read>, Record<string, unknown>][] = [
    ["never mixed", [["model=a/b"], { NEURARCH_MODEL: "x/y", NEURARCH_BATCH: "4" }], { model: "a/b" }],
    ["the environment", [[], { NEURARCH_MODEL: "x/y", NEURARCH_BATCH: "4" }], { model: "x/y", batch: 4 }],
    [
      "lines without a model do not count",
      [["batch=8 hours=2"], { NEURARCH_MODEL: "x/y" }],
      { model: "x/y" },
    ],
    ["flags over the lines", [["model=a/b batch=8"], {}, { batch: "2" }], { model: "a/b", batch: 2 }],
    [
      "flags over the environment",
      [[], { NEURARCH_MODEL: "x/y", NEURARCH_BATCH: "4" }, { batch: "2" }],
      { model: "x/y", batch: 2 },
    ],
    [
      "a flag's model completes the lines",
      [["batch=8"], { NEURARCH_MODEL: "x/y", NEURARCH_BATCH: "4" }, { model: "m" }],
      { model: "m", batch: 8 },
    ],
  ];
  for (const [name, args, expected] of ROWS) test(name, () => expect(told(read(...args))).toEqual(expected));

  test("lines that name no model are told", () => {
    expect(read(["batch=8"])).toEqual({
      kind: "none",
      notes: ["The #NEURARCH lines name no model (model=...), so the job is not judged"],
    });
    expect(read(["batch=8"], { NEURARCH_MODEL: "x/y" }).notes[0]).toContain(
      "environment is used in their place",
    );
  });
  test("a misspelled model is told", () =>
    expect(read(["modle=a/b"]).notes).toEqual(["Unknown key `modle` on line 3, did you mean `model`?"]));
  test("nothing at all is silent", () => expect(read([])).toEqual({ kind: "none", notes: [] }));
});

describe("a site's usual values", () => {
  const read = (siteDefaults: Record<string, string>) =>
    readFacts(directives("model=a/b optimizer=sgd"), { unknownKeys: "report", siteDefaults });
  test("hold where the job says nothing, and say where they come from", () => {
    const facts = factsOf(read({ precision: "bf16", grad_accum: "2", optimizer: "lion" }));
    expect(facts.precision).toEqual({ value: "bf16", from: { kind: "site", name: "precision" } });
    expect(facts.gradAccum.value).toBe(2);
    expect(facts.optimizer.value).toBe("sgd");
    expect(facts.batch).toEqual({ value: 32, from: { kind: "default", name: "batch" } });
  });
  const WRONG: [string, Record<string, string>, string][] = [
    ["a fact only a job can tell", { batch: "8" }, "`batch`"],
    ["an unknown key", { precison: "bf16" }, "`precison`"],
    ["a bad value", { precision: "fp8" }, "`precision`"],
  ];
  for (const [name, defaults, part] of WRONG) {
    test(`refused: ${name}`, () => {
      try {
        read(defaults);
        throw new Error("was accepted");
      } catch (error) {
        expect(error).toBeInstanceOf(GateError);
        expect((error as GateError).code).toBe("settings-invalid");
        expect((error as GateError).message).toContain(part);
      }
    });
  }
});

test("defaults and the recipe", () => {
  expect(recipeOf(factsOf(report(directives("model=a/b"))))).toEqual({
    precision: "amp-bf16",
    optimizer: "adamw",
    attention: "sdpa",
    checkpointing: "none",
    quant: "none",
    loraRank: null,
    loraTargets: "attention",
    parallel: "sharded",
    offload: "none",
    gradAccum: 1,
    loss: "full",
    paddingMask: false,
  });
});

test("a recipe names dropout only where there is some", () => {
  const recipe = (text: string) => recipeOf(factsOf(report(directives(text))));
  expect(recipe("model=a/b lora-dropout=0.05").loraDropout).toBe(0.05);
  expect(Object.keys(recipe("model=a/b lora-dropout=0"))).toEqual(Object.keys(recipe("model=a/b")));
});

test("what is written is what is read, for every key and value that a shell can quote", () => {
  fc.assert(
    fc.property(
      fc.stringMatching(/^[\x20-\x7e]{1,40}$/),
      fc.integer({ min: 1, max: 1000 }),
      (model, batch) => {
        fc.pre(model.trim() !== "" && !model.includes("$"));
        const quoted = `'${model.replaceAll("'", "'\\''")}'`;
        expect(told(report(directives(`model=${quoted} batch=${batch}`)))).toEqual({
          model: model.trim(),
          batch,
        });
      },
    ),
  );
});
