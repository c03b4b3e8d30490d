import type { FamilyReader } from "../family.ts";
import { encoderLayer, layerNorm, linear } from "../parts.ts";
import type { ParamGroup } from "../types.ts";
import { labels, partsStructure } from "./base.ts";
import { ENCODER, encoderShape } from "./encoder-shape.ts";

/** ELECTRA: embeddings of their own width, projected; the discriminator has a head of one output. */
export const electra: FamilyReader = {
  types: ["electra"],
  read(config) {
    const hidden = config.size("hidden_size");
    const layers = config.size("num_hidden_layers");
    const width = config.size("embedding_size", 128);
    const heads = config.size("num_attention_heads", 4);
    const ffn = config.size("intermediate_size", 1024);
    const vocab = config.size("vocab_size", 30522);
    const positions = config.size("max_position_embeddings", 512);
    const name = config.architecture();
    const tied = config.flag("tie_word_embeddings", true);
    const dense = linear(hidden, hidden, true);
    let top: ParamGroup = { name: "head", count: 0 };
    if (name.endsWith("ForSequenceClassification"))
      top = { name: "classifier", count: dense + linear(hidden, labels(config), true) };
    else if (name.endsWith("ForTokenClassification"))
      top = { name: "classifier", count: linear(hidden, labels(config), true) };
    else if (name.endsWith("ForQuestionAnswering"))
      top = { name: "classifier", count: linear(hidden, labels(config), true) };
    else if (name.endsWith("ForMaskedLM") || name.endsWith("ForCausalLM"))
      top = {
        name: "masked-language head",
        count: linear(hidden, width, true) + layerNorm(width) + vocab + (tied ? 0 : vocab * width),
      };
    else if (name.endsWith("ForMultipleChoice"))
      top = { name: "classifier", count: dense + linear(hidden, 1, true) };
    else if (!name.endsWith("Model"))
      top = { name: "discriminator head", count: dense + linear(hidden, 1, true) };
    const types = config.sizeOrZero("type_vocab_size", 2);
    return partsStructure(
      "electra",
      [
        { name: "embeddings", count: (vocab + positions + types) * width + layerNorm(width) },
        { name: "embedding projection", count: width === hidden ? 0 : linear(width, hidden, true) },
        { name: "encoder layers", count: layers * encoderLayer(hidden, ffn) },
        top,
      ],
      encoderShape({ layers, hidden, heads, ffn, vocab }, { positionRows: positions, embedWidth: width }),
      { contextTokens: positions, assumed: ENCODER },
    );
  },
};

/** ALBERT: one set of layer weights for all layers of a group, factorised embeddings. */
export const albert: FamilyReader = {
  types: ["albert"],
  read(config) {
    const hidden = config.size("hidden_size");
    const layers = config.size("num_hidden_layers");
    const width = config.size("embedding_size", 128);
    const heads = config.size("num_attention_heads", 64);
    const ffn = config.size("intermediate_size", 16384);
    const vocab = config.size("vocab_size", 30000);
    const positions = config.size("max_position_embeddings", 512);
    const types = config.sizeOrZero("type_vocab_size", 2);
    const shared = config.size("num_hidden_groups", 1) * config.size("inner_group_num", 1);
    const name = config.architecture();
    const tied = config.flag("tie_word_embeddings", true);
    const pooler =
      (name.endsWith("Model") && !name.endsWith("LMHeadModel")) ||
      /For(SequenceClassification|PreTraining|MultipleChoice)$/.test(name);
    const lm = linear(hidden, width, true) + layerNorm(width) + vocab + (tied ? 0 : vocab * (width + 1));
    let top = lm;
    if (/For(SequenceClassification|TokenClassification|QuestionAnswering)$/.test(name))
      top = linear(hidden, labels(config), true);
    else if (name.endsWith("ForMultipleChoice")) top = linear(hidden, 1, true);
    else if (name.endsWith("ForPreTraining")) top = lm + linear(hidden, labels(config), true);
    else if (pooler) top = 0;
    return partsStructure(
      "albert",
      [
        { name: "embeddings", count: (vocab + positions + types) * width + layerNorm(width) },
        { name: "embedding projection", count: linear(width, hidden, true) },
        { name: "shared encoder layers", count: shared * encoderLayer(hidden, ffn) },
        { name: "pooler", count: pooler ? linear(hidden, hidden, true) : 0 },
        { name: "head", count: top },
      ],
      encoderShape({ layers, hidden, heads, ffn, vocab }, { positionRows: positions, embedWidth: width }),
      { contextTokens: positions, assumed: [...ENCODER, "layers share their weights"] },
    );
  },
};

/** Encoders whose embeddings have a width of their own. */
export const FACTORISED: readonly FamilyReader[] = [electra, albert];
