import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { readGraph } from "../../src/model/graph.ts";
import type { Structure } from "../../src/model/types.ts";

type Component = Record<string, unknown>;

const FOLDER = join(import.meta.dir, "../fixtures/graphs");

function input(...shape: number[]): Component {
  return { id: "input", type: "input", params: { shape } };
}

function part(id: string, type: string, params: Component = {}, more: Component = {}): Component {
  return { id, type, params, ...more };
}

/** Components one after another. */
function chain(...components: Component[]) {
  const connections = components.slice(1).map(({ id }, index) => ({ from: components[index]!.id, to: id }));
  return { components, connections };
}

function read(graph: unknown): Structure {
  const result = readGraph(graph);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

function refusal(graph: unknown): string {
  const result = readGraph(graph);
  return result.ok ? "read" : `${result.error.reason}: ${result.error.message}`;
}

describe("parameters of one component", () => {
  const rows: readonly (readonly [string, string, Component, number[], number])[] = [
    ["a matrix and its bias", "linear", { inFeatures: 10, outFeatures: 5 }, [10], 55],
    ["a matrix alone", "linear", { inFeatures: 10, outFeatures: 5, bias: false }, [10], 50],
    ["an output layer", "lmHead", { hiddenDim: 8, vocabSize: 100 }, [4, 8], 800],
    ["a convolution", "conv2d", { inChannels: 3, outChannels: 8, kernelSize: 3, padding: 1 }, [3, 9, 9], 224],
    ["one of groups", "conv2d", { inChannels: 8, outChannels: 8, kernelSize: 3, groups: 8 }, [8, 9, 9], 80],
    [
      "one of two sides",
      "conv2d",
      { inChannels: 1, outChannels: 2, kernelSize: [3, 5], bias: false },
      [1, 9, 9],
      30,
    ],
    ["one of a line", "conv1d", { inChannels: 4, outChannels: 6, kernelSize: 3 }, [4, 9], 78],
    ["one of a volume", "conv3d", { inChannels: 1, outChannels: 2, kernelSize: 2 }, [1, 4, 4, 4], 18],
    [
      "a transposed one",
      "transposeConv2d",
      { inChannels: 4, outChannels: 3, kernelSize: 2, stride: 2 },
      [4, 5, 5],
      51,
    ],
    ["patches", "patchEmbed", { patchSize: 4, embedDim: 16, inChans: 3 }, [3, 8, 8], 784],
    ["a table", "embedding", { vocabSize: 100, embeddingDim: 8 }, [16], 800],
    [
      "lstm",
      "lstm",
      { inputSize: 3, hiddenSize: 5, numLayers: 2 },
      [7, 3],
      4 * 5 * (3 + 5 + 2) + 4 * 5 * (5 + 5 + 2),
    ],
    [
      "gru both ways",
      "gru",
      { inputSize: 3, hiddenSize: 5, bidirectional: true },
      [7, 3],
      2 * 3 * 5 * (3 + 5 + 2),
    ],
    ["rnn", "rnn", { inputSize: 3, hiddenSize: 5 }, [7, 3], 5 * (3 + 5 + 2)],
    ["batch norm", "batchNorm", { numFeatures: 6 }, [6, 2, 2], 12],
    ["layer norm", "layerNorm", { normalizedShape: [4, 6] }, [4, 6], 48],
    ["RMS norm", "rmsNorm", { normalizedShape: 6 }, [4, 6], 6],
    ["group norm", "groupNorm", { numGroups: 2, numChannels: 6 }, [6, 4], 12],
    ["attention", "multiHeadAttention", { hiddenDim: 8, numHeads: 2 }, [4, 8], 4 * 8 * 9],
    [
      "shared keys",
      "groupedQueryAttention",
      { embedDim: 8, numHeads: 4, numKVHeads: 2 },
      [4, 8],
      8 * 16 + 64,
    ],
    [
      "a block",
      "transformerBlock",
      { embedDim: 8, numHeads: 2, ffDim: 32 },
      [4, 8],
      4 * 72 + 8 * 32 + 32 + 32 * 8 + 8 - 0,
    ],
    ["a feed-forward", "feedForward", { hiddenDim: 8, ffDim: 32 }, [4, 8], 2 * 256 + 40],
    ["a gated one", "swiglu", { hiddenDim: 8, ffDim: 24 }, [4, 8], 3 * 192],
    ["a learned slope", "prelu", { numParameters: 3 }, [3, 2], 3],
    ["what is not known", "wavelet", { paramCount: 77 }, [3], 77],
    ["a module of one's own", "customModule", { className: "Mixer", paramCount: 12 }, [4], 12],
    ["transformers' Conv1D", "customModule", { className: "Conv1D", paramCount: 27 }, [8], 27],
  ];
  test.each(rows)("%s", (_, type, params, shape, count) => {
    const extra = type === "transformerBlock" ? 2 * (8 + 8) : 0;
    const from = type === "customModule" && params.className === "Conv1D" ? { outputShape: [3] } : {};
    const graph = chain(
      input(...shape),
      part("x", type, params, from),
      part("head", "linear", { inFeatures: 1, outFeatures: 1 }),
    );
    const own = type === "lmHead" || type === "linear" ? "x" : "x";
    const { groups } = read(graph);
    const found = groups.find(({ name }) => name === type || name === params.className)!.count;
    // A matrix of the same type stands behind it.
    expect([own, found - (type === "linear" ? 2 : 0)]).toEqual([own, count + extra]);
  });
});

describe("what a file may look like", () => {
  const plain = chain(input(10), part("a", "linear", { inFeatures: 10, outFeatures: 5 }));
  const rows: readonly (readonly [string, unknown, number])[] = [
    ["plain", plain, 55],
    ["in model", { model: plain }, 55],
    ["in graph", { graph: plain, model: "a name" }, 55],
    [
      "inputs instead of connections",
      {
        components: [
          input(10),
          { ...part("a", "linear", { inFeatures: 10, outFeatures: 5 }), inputs: ["input"] },
        ],
      },
      55,
    ],
    ["in another order", { components: [...plain.components].reverse(), connections: plain.connections }, 55],
    [
      "ids that are numbers",
      chain({ ...input(10), id: 1 }, { ...part("", "linear", { inFeatures: 10, outFeatures: 5 }), id: 2 }),
      55,
    ],
    [
      "nothing that feeds it",
      { components: [part("a", "linear", { inFeatures: 10, outFeatures: 5 })], connections: [] },
      55,
    ],
    [
      "no connections",
      {
        components: [
          input(10),
          part("a", "linear", { inFeatures: 10, outFeatures: 5 }),
          part("b", "linear", { inFeatures: 5, outFeatures: 1 }),
        ],
      },
      61,
    ],
    [
      "a count that agrees",
      chain(input(10), part("a", "linear", { inFeatures: 10, outFeatures: 5, paramCount: 55 })),
      55,
    ],
    [
      "a count that does not",
      chain(input(10), part("a", "linear", { inFeatures: 10, outFeatures: 5, paramCount: 60 })),
      60,
    ],
    [
      "a module that is called again",
      chain(
        input(5),
        part("a", "linear", { inFeatures: 5, outFeatures: 5 }, { name: "fc" }),
        part("b", "linear", { inFeatures: 5, outFeatures: 5 }, { name: "fc#2" }),
      ),
      30,
    ],
    [
      "a drawn transformer without shapes",
      chain(
        part("ids", "input"),
        part("e", "embedding", { vocabSize: 100, embeddingDim: 8 }),
        part("p", "positionalEncoding", { maxLen: 64, learned: true }),
        part("a", "selfAttention", { embedDim: 8, numHeads: 2 }),
        part("f", "feedForward", { hiddenDim: 8, ffDim: 32 }),
        part("h", "lmHead", { vocabSize: 100 }),
      ),
      800 + 512 + 288 + 552 + 800,
    ],
  ];
  test.each(rows)("%s", (_, graph, count) => expect(read(graph).params).toBe(count));
  test("a recorded total that differs is told", () => {
    expect(read({ ...plain, totalParams: 56 }).notes.join(" ")).toContain("records 56 parameters");
    expect(read({ ...plain, totalParams: 55 }).notes.join(" ")).not.toContain("records");
  });
  test("experts that a token does not meet are idle", () => {
    const { params, activeParams } = read(
      chain(input(4, 8), part("m", "moeLayer", { numExperts: 8, topK: 2, ffDim: 16 })),
    );
    expect([params, activeParams]).toEqual([8 * 8 + 8 * 3 * 128, 8 * 8 + 2 * 3 * 128]);
  });
});

describe("the batch in shapes", () => {
  const conv = (shape: number[], out: number[]) =>
    chain(
      part("input", "input", { shape }, { outputShape: shape }),
      part(
        "c",
        "conv2d",
        { inChannels: 3, outChannels: 8, kernelSize: 3, padding: 1 },
        { inputShape: shape, outputShape: out },
      ),
    );
  const shapeOf = (graph: unknown) => read(graph).graph!.layers[1]!.outShape;
  test("is found by what a convolution takes", () => {
    expect(shapeOf(conv([2, 3, 8, 8], [2, 8, 8, 8]))).toEqual([8, 8, 8]);
    expect(shapeOf(conv([3, 8, 8], [8, 8, 8]))).toEqual([8, 8, 8]);
  });
  const matrix = (shape: number[], out: number[], description?: string) => ({
    ...chain(
      part("input", "input", { shape }, { outputShape: shape }),
      part("l", "linear", { inFeatures: 10, outFeatures: 5 }, { inputShape: shape, outputShape: out }),
    ),
    description,
  });
  test("does not change what is read of any traced graph", () => {
    for (const name of readdirSync(FOLDER).filter((file) => file.endsWith(".neurarch.json"))) {
      const graph = JSON.parse(readFileSync(join(FOLDER, name), "utf8"));
      const batched = (batch: unknown) => {
        const copy = structuredClone(graph);
        for (const component of copy.components)
          for (const of of [component, component.params])
            for (const key of ["shape", "inputShape", "outputShape"])
              if (Array.isArray(of[key])) of[key] = [batch, ...of[key]];
        return copy;
      };
      // Of rows of numbers alone a batch of 2 looks like two tokens.
      const plain = /^(mlp|odd-mlp)\./.test(name);
      for (const batch of plain ? [1, null, -1, "batch"] : [1, 2, null, -1])
        expect([name, batch, read(batched(batch)).graph]).toEqual([name, batch, read(graph).graph]);
    }
  });
  test("or by what the file says it was traced with", () => {
    expect(shapeOf(matrix([1, 10], [1, 5]))).toEqual([5]);
    expect(
      shapeOf(matrix([4, 10], [4, 5], "Traced by neurarch-trace 0.1.3 from m.py:M with input 4,10")),
    ).toEqual([5]);
    expect(
      shapeOf(matrix([4, 10], [4, 5], "Traced by neurarch-trace 0.1.3 from m.py:M with input 2,4,10")),
    ).toEqual([4, 5]);
    expect(shapeOf(matrix([10], [5]))).toEqual([5]);
  });
});

describe("what is refused", () => {
  const linear = part("a", "linear", { inFeatures: 10, outFeatures: 5 });
  const bad = (params: Component, type = "linear") => chain(input(10), part("a", type, params));
  const rows: readonly (readonly [string, unknown, RegExp])[] = [
    ["no object", [1], /config-invalid: it is not a graph/],
    ["no components", {}, /no list of `components`/],
    ["an empty list", { components: [] }, /has no components/],
    ["a component that is none", { components: [null] }, /component 1 .* not an object/],
    [
      "a circle",
      {
        components: [input(10), linear, part("b", "relu")],
        connections: [
          { from: "a", to: "b" },
          { from: "b", to: "a" },
        ],
      },
      /circle, which component "a"/,
    ],
    [
      "a component that feeds itself",
      { components: [linear], connections: [{ from: "a", to: "a" }] },
      /circle/,
    ],
    ["an id twice", { components: [linear, linear], connections: [] }, /two components have the id "a"/],
    ["no id", { components: [{ type: "linear" }] }, /component 1 of 1 has no id/],
    [
      "a connection to nothing",
      { components: [linear], connections: [{ from: "a", to: "zz" }] },
      /connection 1 goes to "zz", which is no component/,
    ],
    [
      "a connection from nothing",
      { components: [linear], connections: [{ to: "a" }] },
      /connection 1 comes from undefined/,
    ],
    [
      "an unknown type",
      chain(input(10), linear, part("w", "wavelet")),
      /family-not-sized: component "w" \(wavelet\) is of a type/,
    ],
    ["no type", { components: [{ id: "a" }] }, /has no type/],
    ["a size below zero", bad({ inFeatures: -3, outFeatures: 5 }), /inFeatures = -3, not a whole number/],
    ["a fraction", bad({ inFeatures: 1.5, outFeatures: 5 }), /inFeatures = 1.5/],
    ["no number", bad({ inFeatures: "many", outFeatures: 5 }), /inFeatures = "many"/],
    ["not a number", bad({ inFeatures: Number.NaN, outFeatures: 5 }), /inFeatures = /],
    ["more than fits", bad({ inFeatures: 1e308 * 10, outFeatures: 5 }), /inFeatures = /],
    ["a damaged size", bad({ inFeatures: 1e12, outFeatures: 5 }), /inFeatures = 1000000000000/],
    [
      "10^9 layers",
      bad({ inputSize: 8, hiddenSize: 8, numLayers: 1e9 }, "lstm"),
      /1000000000 layers, not 1 to 10000/,
    ],
    [
      "a product beyond all devices",
      chain(input(10), part("a", "linear", { inFeatures: 1e9, outFeatures: 1e9 })),
      /add up to 1/,
    ],
    [
      "a shape beyond all devices",
      chain(input(10), part("a", "linear", { inFeatures: 10, outFeatures: 5 }, { outputShape: [1e9, 1e9] })),
      /more than a device can hold/,
    ],
    ["a missing size", bad({ inChannels: 3 }, "conv2d"), /names no outChannels/],
    ["groups that do not divide", bad({ inChannels: 3, outChannels: 8, groups: 2 }, "conv2d"), /2 groups/],
    [
      "heads that do not divide",
      chain(input(4, 8), part("a", "multiHeadAttention", { hiddenDim: 8, numHeads: 3 })),
      /8, which 3 heads cannot share/,
    ],
    [
      "a window wider than its input",
      chain(input(3, 4, 4), part("a", "conv2d", { inChannels: 3, outChannels: 8, kernelSize: 7 })),
      /wider than the 4/,
    ],
    ["nothing to train", chain(input(10), part("r", "relu")), /nothing to train/],
    [
      "a convolution that is fed nothing",
      { components: [part("c", "conv2d", { inChannels: 3, outChannels: 8, kernelSize: 3 })] },
      /is fed by nothing and has no shape/,
    ],
  ];
  test.each(rows)("%s", (_, graph, words) => {
    const said = refusal(graph);
    expect(said).toMatch(words);
    expect(said).not.toMatch(/\n|\.$/);
    expect(said.length).toBeLessThan(400);
  });
  test("within a second, whatever is wrong in a large file", () => {
    const many = Array.from({ length: 20_000 }, (_, index) =>
      part(`l${index}`, "linear", { inFeatures: 8, outFeatures: 8 }),
    );
    const long = chain(input(8), ...many.slice(1));
    const circle = { ...long, connections: [...long.connections, { from: "l19999", to: "l1" }] };
    const star = {
      components: long.components,
      connections: many.slice(2).map(({ id }) => ({ from: "l1", to: id })),
    };
    for (const graph of [long, circle, star, { components: [...many, ...many] }]) {
      const start = performance.now();
      readGraph(graph);
      expect(performance.now() - start).toBeLessThan(1000);
    }
  });
  test("and never by an exception", () => {
    const word = fc.constantFrom(
      "linear",
      "conv2d",
      "lstm",
      "embedding",
      "add",
      "concatenate",
      "upsample",
      "softmax",
      "customModule",
      "swiglu",
      "moeLayer",
      "patchEmbed",
      "avgpool2d",
      "layerNorm",
      "flatten",
      "transformerBlock",
      "x",
    );
    const key = fc.constantFrom(
      "inFeatures",
      "outFeatures",
      "inChannels",
      "outChannels",
      "kernelSize",
      "stride",
      "numHeads",
      "hiddenDim",
      "embedDim",
      "vocabSize",
      "embeddingDim",
      "paramCount",
      "normalizedShape",
      "numLayers",
      "hiddenSize",
      "inputSize",
      "scaleFactor",
      "numExperts",
      "className",
      "groups",
    );
    const value = fc.oneof(
      fc.constantFrom(0, 1, 2, 3, 8, 64, 1e9, -1, 1.5, null, true, "x", Number.POSITIVE_INFINITY),
      fc.array(fc.integer({ min: -1, max: 9 }), { maxLength: 4 }),
    );
    const shape = fc.option(fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 4 }), { nil: undefined });
    const component = fc.record({
      id: fc.constantFrom("a", "b", "c", "d", 5),
      type: word,
      params: fc.dictionary(key, value, { maxKeys: 6 }),
      inputShape: shape,
      outputShape: shape,
    });
    const connection = fc.record({
      from: fc.constantFrom("a", "b", "c", 5),
      to: fc.constantFrom("b", "c", "d", "zz"),
    });
    fc.assert(
      fc.property(
        fc.uniqueArray(component, { maxLength: 5, selector: ({ id }) => id }),
        fc.array(connection, { maxLength: 5 }),
        (components, connections) => {
          const result = readGraph({ components, connections });
          if (result.ok) expect(result.value.params).toBeGreaterThanOrEqual(0);
          else expect(result.error.message).not.toBe("");
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe("traced graphs", () => {
  const names = readdirSync(FOLDER).filter((name) => name.endsWith(".neurarch.json"));
  test("are all read, and each says whether it has a free length", () => {
    expect(names.length).toBeGreaterThan(30);
    for (const name of names) {
      const { graph, family } = read(JSON.parse(readFileSync(join(FOLDER, name), "utf8")));
      const text = /lstm|gru|rnn|gpt|llama|qwen|bert|written|text/.test(name);
      expect([name, family, graph!.tokens !== null]).toEqual([name, "graph", text]);
    }
  });
  test("tell learned positions and shared tables where names do", () => {
    const of = (name: string) =>
      read(JSON.parse(readFileSync(join(FOLDER, `${name}.neurarch.json`), "utf8")));
    expect([of("hf-gpt2").contextTokens, of("gpt").contextTokens, of("hf-llama").contextTokens]).toEqual([
      512,
      1024,
      null,
    ]);
    expect([of("hf-gpt2").graph!.tied !== null, of("gpt").graph!.tied !== null]).toEqual([true, false]);
    expect(of("gpt").assumed.join(" ")).toContain("a matrix of its own");
  });
});
