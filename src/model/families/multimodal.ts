import { ConfigReader } from "../config.ts";
import { countParams, type FamilyReader } from "../family.ts";
import type { DecoderShape, ParamGroup, Structure } from "../types.ts";
import type { TowerReader } from "./image-towers.ts";

/** Finds the reader of a text section's `model_type`. */
export type Lookup = (type: string) => FamilyReader | null;

/** A section that is not there: all of its keys have class defaults. */
export const NONE = new ConfigReader({});
/** What is assumed of every model with a tower. */
export const TOWER = "images: the tower's and the projector's activations are not counted";

/** How a text model is joined with a tower for images. */
export interface Multimodal {
  readonly types: readonly string[];
  /** `model_type` of the text section where it does not say. */
  readonly text: string;
  readonly tied: boolean;
  /** Tied where either level says so: older files of these families wrote it in the text section alone. */
  readonly tiedByEither?: boolean;
  /** The tower as it is walked; without one its activations are not counted, and that is said. */
  readonly tower?: TowerReader;
  /** In what the decoder differs where it stands beside a tower. */
  readonly decoder?: Partial<DecoderShape>;
  /** What stands beside the text model. */
  readonly beside: (parts: {
    readonly config: ConfigReader;
    readonly text: ConfigReader;
    readonly vision: ConfigReader;
    readonly structure: Structure;
  }) => ParamGroup[];
}

/**
 * The text side with the top level's architecture and tying: a nested section may say otherwise, but the model
 * that is trained is the whole one.
 */
export function textSection(
  config: ConfigReader,
  family: Pick<Multimodal, "tied" | "tiedByEither">,
): ConfigReader {
  const section = config.section("text_config");
  const inText = section.flag("tie_word_embeddings", family.tied);
  const tied = config.flag("tie_word_embeddings", inText) || (family.tiedByEither === true && inText);
  const architectures = config.list("architectures") ?? [];
  return section.withValues({ tie_word_embeddings: tied, architectures });
}

function textType(config: ConfigReader, fallback: string): string {
  const own = config.only("text_config");
  return own === null ? fallback : own.text("model_type", fallback);
}

/** A text model with a vision tower and what joins them. */
export function multimodal(family: Multimodal, lookup: Lookup): FamilyReader {
  return {
    types: family.types,
    read(config) {
      const type = textType(config, family.text);
      const reader = lookup(type) ?? lookup("llama");
      const text = textSection(config, family);
      const structure = (reader as FamilyReader).read(text.withValues({ model_type: type }));
      const vision = config.only("vision_config") ?? NONE;
      const beside = family.beside({ config, text, vision, structure });
      const count = countParams(beside);
      const { decoder } = structure;
      const tower =
        decoder === null
          ? null
          : (family.tower?.({ config, vision, text, textWidth: decoder.hidden }) ?? null);
      return {
        ...structure,
        ...(tower === null ? {} : { tower }),
        decoder: decoder === null ? null : { ...decoder, ...family.decoder },
        family: config.text("model_type", family.types[0] ?? ""),
        params: structure.params + count,
        activeParams: structure.activeParams + count,
        groups: [...structure.groups, ...beside.filter((group) => group.count > 0)],
        paramsOutside: structure.paramsOutside + count,
        assumed: tower === null ? [...structure.assumed, TOWER] : structure.assumed,
        notes:
          reader?.types.includes(type) === true
            ? structure.notes
            : [...structure.notes, `the text model's type ${JSON.stringify(type)} is read as llama`],
      };
    },
  };
}
