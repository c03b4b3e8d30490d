import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import { encoderLayer, layerNorm, linear } from "../parts.ts";
import type { Stack, TextInput } from "../stacks.ts";
import type { ParamGroup } from "../types.ts";
import { labels, partsStructure } from "./base.ts";
import { type BertSizes, bertStacks, type StacksRead } from "./bert-stacks.ts";
import { encoderShape } from "./encoder-shape.ts";
import { NO_LIMITS } from "./stack-parts.ts";

/** `pos_att_type` is a list, or the same joined by `|` in older files. */
function positionTerms(config: ConfigReader): string[] {
  const found = config.raw_("pos_att_type")?.value;
  if (Array.isArray(found)) return found.map(String);
  return typeof found === "string" ? found.split("|").map((part) => part.trim().toLowerCase()) : [];
}

/**
 * DeBERTa-v2 and v3 (`modeling_deberta_v2.py`): one table of relative positions for all layers, no absolute
 * ones in v3; projections of their own for it unless `share_att_key`.
 */
export const debertaV2: FamilyReader = {
  types: ["deberta-v2"],
  read(config) {
    const hidden = config.size("hidden_size");
    const layers = config.size("num_hidden_layers");
    const heads = config.size("num_attention_heads", 24);
    const ffn = config.size("intermediate_size", 6144);
    const vocab = config.size("vocab_size", 128100);
    const positions = config.size("max_position_embeddings", 512);
    const types = config.has("type_vocab_size") ? config.sizeOrZero("type_vocab_size", 1) : 0;
    const width = config.sizeOrNull("embedding_size") ?? hidden;
    const relative = config.flag("relative_attention", false);
    const buckets =
      config.sizeOrNull("position_buckets") ?? config.sizeOrNull("max_relative_positions") ?? positions;
    const terms = relative && !config.flag("share_att_key", false) ? positionTerms(config) : [];
    const own = terms.filter((term) => term === "c2p" || term === "p2c").length;
    const tableNorm = config.text("norm_rel_ebd", "none").includes("layer_norm");
    const kernel = config.sizeOrNull("conv_kernel_size");
    const groupsOfConv = config.size("conv_groups", 1);
    const name = config.architecture();
    const tied = config.flag("tie_word_embeddings", true);
    const pooler = name.endsWith("ForSequenceClassification") || name.endsWith("ForMultipleChoice");
    const poolWidth = config.size("pooler_hidden_size", hidden);
    let head: ParamGroup;
    if (/For(SequenceClassification|TokenClassification|QuestionAnswering)$/.test(name))
      head = { name: "classifier", count: linear(hidden, labels(config), true) };
    else if (name.endsWith("ForMultipleChoice"))
      head = { name: "classifier", count: linear(hidden, 1, true) };
    else if (name.endsWith("Model")) head = { name: "head", count: 0 };
    else
      head = {
        name: "masked-language head",
        count: linear(hidden, width, true) + layerNorm(width) + vocab + (tied ? 0 : vocab * (width + 1)),
      };
    const absolute = config.flag("position_biased_input", true) ? positions : 0;
    const sizes = { layers, hidden, heads, ffn, vocab, positions: absolute, width };
    const step = debertaStacks(config, sizes, types, {
      rows: relative ? 2 * buckets : 0,
      normed: tableNorm,
      terms: relative ? positionTerms(config) : [],
      ownProjections: !config.flag("share_att_key", false),
    });
    return partsStructure(
      "deberta-v2",
      [
        { name: "embeddings", count: (vocab + absolute + types) * width + layerNorm(hidden) },
        { name: "embedding projection", count: width === hidden ? 0 : linear(width, hidden, false) },
        { name: "encoder layers", count: layers * encoderLayer(hidden, ffn) },
        { name: "relative positions", count: relative ? 2 * buckets * hidden : 0 },
        { name: "relative position norm", count: tableNorm ? layerNorm(hidden) : 0 },
        { name: "relative position projections", count: layers * own * linear(hidden, hidden, true) },
        {
          name: "convolution",
          count:
            kernel === null
              ? 0
              : hidden * Math.floor(hidden / groupsOfConv) * kernel + hidden + layerNorm(hidden),
        },
        { name: "pooler", count: pooler ? linear(poolWidth, poolWidth, true) : 0 },
        head,
      ],
      encoderShape({ layers, hidden, heads, ffn, vocab }),
      {
        contextTokens: positions,
        stacks: step.stacks,
        assumed:
          kernel === null ? step.assumed : [...step.assumed, "the convolution's activations are not counted"],
        notes: step.notes,
      },
    );
  },
};

interface Relative {
  readonly rows: number;
  readonly normed: boolean;
  readonly terms: readonly string[];
  readonly ownProjections: boolean;
}

/** DeBERTa's step: BERT's, with scores of its own and no kernel for them. */
function debertaStacks(
  config: ConfigReader,
  sizes: BertSizes,
  tokenTypes: number,
  relative: Relative,
): StacksRead {
  const { hidden, width } = sizes;
  const read = bertStacks(config, sizes, {
    pooler: false,
    denseClassifier: false,
    biasTied: true,
    reservedPositions: 0,
    tokenTypes,
    dropout: {
      attention: "attention_probs_dropout_prob",
      attended: "hidden_dropout_prob",
      hidden: "hidden_dropout_prob",
    },
    activation: "hidden_act",
    headActivation: true,
    outputAdapted: false,
    keepsInner: true,
    scorerAdapted: false,
  });
  const [encoder] = read.stacks.stacks as readonly [Stack];
  const input = encoder.input as TextInput;
  const stack: Stack = {
    ...encoder,
    input: {
      ...input,
      positions: sizes.positions === 0 ? null : input.positions,
      masked: true,
      projection: width === hidden ? null : { bias: false, beforeNorm: true },
    },
    block: {
      ...encoder.block,
      attention: {
        ...encoder.block.attention,
        disentangled: {
          rows: relative.rows,
          normed: relative.normed,
          contentToPosition: relative.terms.includes("c2p"),
          positionToContent: relative.terms.includes("p2c"),
          ownProjections: relative.ownProjections,
          dropout: encoder.block.dropout.fed,
        },
      },
    },
  };
  return {
    ...read,
    stacks: {
      ...read.stacks,
      stacks: [stack],
      limits: { ...NO_LIMITS, eagerOnly: true },
    },
  };
}

export const DEBERTAS: readonly FamilyReader[] = [debertaV2];
