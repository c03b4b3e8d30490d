import { GateError } from "../lib/errors.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { ConfigReader, isObject, type Json } from "./config.ts";
import { generic, missingUsualKeys, unknownTowers } from "./families/generic.ts";
import { familyReader } from "./families/index.ts";
import type { FamilyReader } from "./family.ts";
import { saidOfHalf, saidOfHead } from "./halves.ts";
import type { ConfigInput, ParamGroup, Structure } from "./types.ts";

/** No model has more parameters; above it the sizes of a config are senseless. */
const MOST_PARAMS = 1e14;

/** A config that cannot be read: one sentence naming the key, and what to do. */
export interface ConfigProblem {
  readonly message: string;
  readonly hint: string | null;
}

export interface ReadOptions {
  /** The count a catalogue recorded, for a family that has no formula of its own. */
  readonly recorded?: { readonly params: number; readonly activeParams: number | null } | null;
}

/**
 * Parses a config.json. Python writes `NaN` and `Infinity` into some of them (Nemotron-H's `time_step_limit`),
 * which JSON has not: they are read as null.
 */
export function parseConfig(text: string): Result<unknown, ConfigProblem> {
  const plain = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  try {
    return ok(JSON.parse(plain));
  } catch {
    // Bare words outside strings: a string is matched first and kept as it is.
    const tame = plain.replace(/"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g, (found) =>
      found.startsWith('"') ? found : "null",
    );
    try {
      return ok(JSON.parse(tame));
    } catch {
      return fail({
        message: "the config is not valid JSON",
        hint: "Check that it is the model's own config.json and not a web page or a pointer to large storage.",
      });
    }
  }
}

function invalid(message: string): never {
  throw new GateError("config-invalid", message, "Check that it is the model's own config.json.");
}

/**
 * A model's structure from its parsed config.json. Any JSON is answered: what cannot be a model's config is one
 * sentence naming the key. Nothing is downloaded, no remote code is run, no file is touched.
 */
export function readStructure(raw: unknown, options: ReadOptions = {}): Result<Structure, ConfigProblem> {
  try {
    return ok(structureOf(raw, options));
  } catch (error) {
    if (error instanceof GateError) return fail({ message: error.message, hint: error.hint });
    throw error;
  }
}

function structureOf(raw: unknown, options: ReadOptions): Structure {
  if (!isObject(raw)) {
    const kind = Array.isArray(raw) ? "a list" : raw === null ? "null" : `a ${typeof raw}`;
    return invalid(`the config is ${kind}, not an object of keys`);
  }
  const config = new ConfigReader(raw);
  const type = modelType(raw);
  const reader = familyReader(type);
  const structure =
    reader === null ? unknownFamily(config, raw, type, options) : known(config, raw, type, reader);
  checkBelievable(structure);
  const inputs: ConfigInput[] = [];
  for (const [name, { value, from }] of config.used) inputs.push({ name, value, from });
  return { ...structure, inputs, notes: [...structure.notes, ...storageNotes(raw)] };
}

/** `model_type`, or what the first architecture's name says where it is absent. */
function modelType(raw: Json): string {
  const stated = raw.model_type;
  if (typeof stated === "string" && stated !== "") return stated;
  if (stated !== undefined && stated !== null) {
    invalid(`\`model_type\` is ${JSON.stringify(stated)?.slice(0, 40)}, not a name`);
  }
  return "";
}

function known(config: ConfigReader, raw: Json, type: string, reader: FamilyReader): Structure {
  const nested = isObject(raw.text_config) || isObject(raw.vision_config);
  if (!nested) {
    for (const keys of [WIDTHS, DEPTHS]) {
      if (!config.has(keys)) invalid(`the config has no \`${keyOf(keys, type)}\``);
    }
  }
  const structure = reader.read(config);
  const isDecoder = structure.decoder !== null && structure.stacks === undefined;
  const said = saidOfHalf(raw.architectures) ?? saidOfHead(raw.architectures, isDecoder);
  return said === null ? structure : { ...structure, assumed: [...structure.assumed, said] };
}

const WIDTHS = ["hidden_size", "n_embd", "d_model", "n_embed", "dim"];
const DEPTHS = [
  "num_hidden_layers",
  "n_layer",
  "num_layers",
  "n_layers",
  "encoder_layers",
  "layers_block_type",
  "layer_types",
  "hybrid_override_pattern",
];

/** The name under which a family writes a width or a depth, for a message. */
function keyOf(keys: readonly string[], type: string): string {
  const own: Record<string, readonly [string, string]> = {
    gpt2: ["n_embd", "n_layer"],
    gpt_bigcode: ["n_embd", "n_layer"],
    gptj: ["n_embd", "n_layer"],
    gpt_neo: ["hidden_size", "num_layers"],
    bloom: ["hidden_size", "n_layer"],
    t5: ["d_model", "num_layers"],
    mt5: ["d_model", "num_layers"],
    umt5: ["d_model", "num_layers"],
    bart: ["d_model", "encoder_layers"],
    mbart: ["d_model", "encoder_layers"],
    whisper: ["d_model", "encoder_layers"],
    distilbert: ["dim", "n_layers"],
  };
  const names = own[type] ?? ["hidden_size", "num_hidden_layers"];
  return keys === WIDTHS ? names[0] : names[1];
}

/** A family without a reader: the recorded count, else the usual decoder keys read as llama's. */
function unknownFamily(config: ConfigReader, raw: Json, type: string, options: ReadOptions): Structure {
  const section = isObject(raw.text_config)
    ? config.section("text_config").withValues({ model_type: type })
    : config;
  const missing = missingUsualKeys(section);
  const recorded = options.recorded ?? null;
  if (missing.length > 0 && recorded !== null) return recordedOnly(type, recorded);
  if (missing.length > 0) {
    const what =
      type === "" ? "has no `model_type`" : `is of the unknown family ${JSON.stringify(type.slice(0, 60))}`;
    return invalid(`the config ${what} and lacks \`${missing[0]}\``);
  }
  const structure = generic.read(section);
  const towers = unknownTowers(config);
  if (recorded === null) return towers === null ? structure : withTowers(structure, towers);
  return {
    ...structure,
    params: recorded.params,
    activeParams: recorded.activeParams ?? recorded.params,
    groups: [{ name: "all parameters, as recorded", count: recorded.params }],
    paramsOutside: structure.paramsOutside + recorded.params - structure.params,
    assumed: [
      "parameters as recorded in the catalogue; the family has no formula here",
      ...structure.assumed,
    ],
  };
}

/** An unknown family with its towers as weights; what happens in them is not walked. */
function withTowers(structure: Structure, towers: ParamGroup): Structure {
  const said =
    towers.count === 0
      ? "towers for images or sound are not counted"
      : "towers for images or sound are counted as plain layers, their activations are not";
  return {
    ...structure,
    params: structure.params + towers.count,
    activeParams: structure.activeParams + towers.count,
    groups: [...structure.groups, towers],
    paramsOutside: structure.paramsOutside + towers.count,
    assumed: [...structure.assumed, said],
  };
}

/** A model of which nothing is known but its recorded count: its activations cannot be sized. */
function recordedOnly(type: string, recorded: NonNullable<ReadOptions["recorded"]>): Structure {
  return {
    family: type,
    params: recorded.params,
    activeParams: recorded.activeParams ?? recorded.params,
    groups: [{ name: "all parameters, as recorded", count: recorded.params }],
    decoder: null,
    paramsOutside: recorded.params,
    contextTokens: null,
    assumed: ["parameters as recorded in the catalogue; the family has no formula here"],
    notes: [],
  };
}

function checkBelievable(structure: Structure): void {
  if (Number.isFinite(structure.params) && structure.params > 0 && structure.params <= MOST_PARAMS) return;
  const shape = structure.decoder;
  const sizes =
    shape === null
      ? ""
      : ` (\`hidden_size\` ${shape.hidden}, \`num_hidden_layers\` ${shape.layers}, \`vocab_size\` ${shape.vocab})`;
  invalid(
    `the config's sizes give ${structure.params.toExponential(1)} parameters, more than any model has${sizes}`,
  );
}

/** What the file says of storage and code, and that it is not used. */
function storageNotes(raw: Json): string[] {
  const notes: string[] = [];
  const quantization = raw.quantization_config;
  if (isObject(quantization)) {
    const method =
      typeof quantization.quant_method === "string" ? ` (${quantization.quant_method.slice(0, 40)})` : "";
    notes.push(
      `quantization_config${method} is how the weights are stored; training is sized on them dequantised`,
    );
  }
  if (isObject(raw.auto_map))
    notes.push("auto_map names remote code, which is never run; the config's sizes are used");
  notes.push(dtypeNote(raw));
  const conflict = conflictNote(raw);
  return conflict === null ? notes : [...notes, conflict];
}

/** `dtype` wins over the older `torch_dtype`; the text section's counts where the top level says nothing. */
function dtypeNote(raw: Json): string {
  const text = isObject(raw.text_config) ? raw.text_config : {};
  for (const layer of [raw, text]) {
    for (const key of ["dtype", "torch_dtype"]) {
      const value = layer[key];
      if (typeof value === "string" && value !== "" && value !== "auto") {
        return `weights stored as ${(value.startsWith("torch.") ? value.slice(6) : value).slice(0, 20)} (${key})`;
      }
    }
  }
  return "the config names no dtype; weights are taken as stored in bfloat16";
}

/** Keys that stand both at the top and in the text section with different values: the nested one is used. */
function conflictNote(raw: Json): string | null {
  if (!isObject(raw.text_config)) return null;
  const keys = Object.entries(raw.text_config)
    .filter(([key, value]) => typeof value === "number" && typeof raw[key] === "number" && raw[key] !== value)
    .map(([key]) => key);
  if (keys.length === 0) return null;
  return `text_config wins over the top level for ${keys.slice(0, 8).join(", ")}`;
}
