import type { FamilyReader } from "../family.ts";
import { linear } from "../parts.ts";
import { gemma3Tower, idefics3Tower, llama4Tower, llavaTower, paligemmaTower } from "./image-towers.ts";
import { mllama } from "./mllama.ts";
import { type Lookup, type Multimodal, multimodal, NONE } from "./multimodal.ts";
import { featureLayers, llavaBeside, perceiver, qwenBeside, towerOf, width } from "./projectors.ts";
import { qwenTower } from "./qwen-towers.ts";
import {
  gemma4Vision,
  ideficsVision,
  llama4Vision,
  qwen2Vision,
  qwen3Vision,
  qwen25Vision,
  siglipVision,
} from "./towers.ts";

/** Positions on three axes are made for each sample. */
const PER_SAMPLE = { rotaryPerSample: true } as const;

const FAMILIES: readonly Multimodal[] = [
  {
    types: ["llava"],
    text: "llama",
    tied: false,
    tiedByEither: true,
    tower: llavaTower(false),
    beside: llavaBeside(false),
  },
  { types: ["llava_next"], text: "llama", tied: false, tower: llavaTower(true), beside: llavaBeside(true) },
  { types: ["llava_next_video"], text: "llama", tied: false, beside: llavaBeside(true) },
  {
    types: ["llava_onevision"],
    text: "qwen2",
    tied: false,
    tiedByEither: true,
    beside: llavaBeside(true),
  },
  {
    types: ["gemma3"],
    text: "gemma3_text",
    tied: true,
    tower: gemma3Tower,
    beside: ({ vision, structure }) => {
      const hidden = vision.size("hidden_size", 768);
      return [
        { name: "vision tower", count: siglipVision(vision) },
        { name: "projector", count: hidden * width(structure) + hidden },
      ];
    },
  },
  {
    types: ["paligemma"],
    text: "gemma",
    tied: true,
    tower: paligemmaTower,
    beside: ({ config, vision }) => {
      const hidden = vision.size("hidden_size", 768);
      return [
        { name: "vision tower", count: siglipVision(vision) },
        { name: "projector", count: linear(hidden, config.size("projection_dim", 2048), true) },
      ];
    },
  },
  {
    types: ["qwen2_vl"],
    text: "qwen2_vl_text",
    tied: false,
    tiedByEither: true,
    tower: qwenTower("qwen2"),
    decoder: PER_SAMPLE,
    beside: qwenBeside(qwen2Vision),
  },
  {
    types: ["qwen2_5_vl"],
    text: "qwen2_5_vl_text",
    tied: false,
    tiedByEither: true,
    tower: qwenTower("qwen2_5"),
    decoder: PER_SAMPLE,
    beside: qwenBeside(qwen25Vision),
  },
  {
    types: ["qwen3_vl"],
    text: "qwen3_vl_text",
    tied: false,
    tower: qwenTower("qwen3"),
    decoder: PER_SAMPLE,
    beside: qwenBeside((vision) => qwen3Vision(vision, 3)),
  },
  {
    types: ["qwen3_vl_moe"],
    text: "qwen3_vl_moe_text",
    tied: false,
    tower: qwenTower("qwen3"),
    decoder: PER_SAMPLE,
    beside: qwenBeside((vision) => qwen3Vision(vision, 3)),
  },
  {
    types: ["qwen3_5"],
    text: "qwen3_5_text",
    tied: false,
    tower: qwenTower("qwen3_5"),
    decoder: PER_SAMPLE,
    beside: qwenBeside((vision) => qwen3Vision(vision, 0)),
  },
  {
    types: ["qwen3_5_moe"],
    text: "qwen3_5_moe_text",
    tied: false,
    tower: qwenTower("qwen3_5"),
    decoder: PER_SAMPLE,
    beside: qwenBeside((vision) => qwen3Vision(vision, 0)),
  },
  {
    types: ["idefics3", "smolvlm"],
    text: "llama",
    tied: false,
    tower: idefics3Tower,
    beside: ({ config, vision, structure }) => {
      const joined = vision.size("hidden_size", 1152) * config.size("scale_factor", 2) ** 2;
      return [
        { name: "vision tower", count: ideficsVision(vision, 1152) },
        { name: "projector", count: linear(joined, width(structure), false) },
      ];
    },
  },
  {
    types: ["idefics2"],
    text: "mistral",
    tied: false,
    beside: ({ config, vision, structure }) => {
      const hidden = vision.size("hidden_size", 768);
      const ffn = structure.decoder?.ffn ?? 0;
      const projector = 2 * hidden * ffn + ffn * width(structure);
      return [
        { name: "vision tower", count: ideficsVision(vision, 768) },
        { name: "projector", count: projector },
        { name: "perceiver", count: perceiver(config, width(structure)) },
      ];
    },
  },
  {
    types: ["mistral3"],
    text: "mistral",
    // The class default of transformers 5 ties it, the published checkpoints have a head of their own.
    tied: false,
    beside: ({ config, vision, structure }) => {
      const tower = towerOf(vision, "pixtral");
      const text = width(structure);
      const bias = config.flag("multimodal_projector_bias", false);
      const merge = tower.hidden * tower.hidden * config.size("spatial_merge_size", 2) ** 2;
      return [
        { name: "vision tower", count: tower.count },
        {
          name: "projector",
          count:
            tower.hidden +
            merge +
            linear(tower.hidden * featureLayers(config), text, bias) +
            linear(text, text, bias),
        },
      ];
    },
  },
  {
    types: ["llama4"],
    text: "llama4_text",
    tied: false,
    tower: llama4Tower,
    beside: ({ vision, structure }) => [
      { name: "vision tower and adapter", count: llama4Vision(vision) },
      { name: "projector", count: vision.size("vision_output_dim", 7680) * width(structure) },
    ],
  },
  {
    types: ["gemma4"],
    text: "gemma4_text",
    tied: true,
    beside: ({ vision, structure }) =>
      vision === NONE
        ? []
        : [
            { name: "vision tower", count: gemma4Vision(vision) },
            { name: "projector", count: vision.size("hidden_size", 768) * width(structure) },
          ],
  },
];

/** All models with a tower; `lookup` finds the reader of their text side. */
export function multimodalFamilies(lookup: Lookup): FamilyReader[] {
  return [...FAMILIES.map((family) => multimodal(family, lookup)), mllama(lookup)];
}
