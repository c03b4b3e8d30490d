import type { Card, Vendor } from "./types.ts";

/** Where the built-in prices come from, and their date. */
export const PRICE_SOURCE = "Modal's on-demand list, 2026-08-19";

function card(
  id: string,
  gb: number,
  capacity: string,
  names: readonly string[] = [id],
  more: { readonly usd?: number; readonly vendor?: Vendor } = {},
): Card {
  const priced = more.usd !== undefined;
  return {
    id,
    gb,
    usdPerHour: more.usd ?? null,
    names,
    vendor: more.vendor ?? "cuda",
    candidate: priced,
    slice: false,
    source: { capacity, price: priced ? PRICE_SOURCE : null },
  };
}

const rocm = { vendor: "rocm" } as const;
const hpu = { vendor: "hpu" } as const;

/**
 * The cards known by capacity, in the unit a scheduler hands out: one die of an MI250X, one of the four GPUs of an
 * A16 or two of a K80. Capacities are the vendors' nominal ones, names those of SkyPilot's catalog first.
 *
 * The priced eight are compared, suggested and rewritten to; the others are judged when they are asked for. Cards
 * that one name does not tell apart (RTX 3080 with 10 or 12 GB, RTX 4060 with 8 or 16) are left out on purpose.
 */
export const BUILT_IN_CARDS: readonly Card[] = [
  card("T4", 16, "NVIDIA T4 data sheet", ["T4"], { usd: 0.59 }),
  card("L4", 24, "NVIDIA L4 data sheet", ["L4"], { usd: 0.8 }),
  card("A10G", 24, "NVIDIA A10 data sheet; AWS EC2 G5 (A10G)", ["A10G", "A10"], { usd: 1.1 }),
  card("A100-40", 40, "NVIDIA A100 data sheet", ["A100", "A100-40GB"], { usd: 2.1 }),
  card("L40S", 48, "NVIDIA L40S data sheet", ["L40S"], { usd: 1.95 }),
  card("A100-80", 80, "NVIDIA A100 data sheet", ["A100-80GB", "A100-80GB-SXM"], { usd: 2.5 }),
  card("H100", 80, "NVIDIA H100 data sheet", ["H100", "H100-80GB", "H100-SXM", "H100-MEGA", "H100-NVLINK"], {
    usd: 3.95,
  }),
  card("H200", 141, "NVIDIA H200 data sheet", ["H200", "H200-SXM", "NVIDIA-H200-NVL"], { usd: 4.54 }),

  card("T4g", 16, "AWS EC2 G5g (T4G)"),
  card("V100-16", 16, "NVIDIA V100 data sheet", ["V100", "V100-16GB"]),
  card("V100-32", 32, "NVIDIA V100 data sheet", ["V100-32GB", "V100S"]),
  card("A30", 24, "NVIDIA A30 data sheet"),
  card("A40", 48, "NVIDIA A40 data sheet"),
  card("A16", 16, "NVIDIA A16 data sheet: 64 GB a board, four GPUs of 16 GB"),
  card("A2", 16, "NVIDIA A2 data sheet"),
  card("A800", 80, "NVIDIA A800 data sheet", ["A800", "A800-80GB"]),
  card("A6000", 48, "NVIDIA RTX A6000 data sheet", ["A6000", "RTXA6000"]),
  card("A5000", 24, "NVIDIA RTX A5000 data sheet", ["A5000", "RTXA5000"]),
  card("A4500", 20, "NVIDIA RTX A4500 data sheet", ["A4500", "RTXA4500"]),
  card("A4000", 16, "NVIDIA RTX A4000 data sheet", ["A4000", "RTXA4000"]),
  card("RTX6000-Ada", 48, "NVIDIA RTX 6000 Ada Generation data sheet", ["RTX6000-Ada", "RTX6000Ada"]),
  card("RTX5880-Ada", 48, "NVIDIA RTX 5880 Ada Generation data sheet", ["RTX5880-Ada"]),
  card("RTX5000-Ada", 32, "NVIDIA RTX 5000 Ada Generation data sheet", ["RTX5000-Ada"]),
  card("RTX4500-Ada", 24, "NVIDIA RTX 4500 Ada Generation data sheet", ["RTX4500-Ada"]),
  card("RTX4000-Ada", 20, "NVIDIA RTX 4000 Ada Generation data sheet", ["RTX4000-Ada"]),
  card("RTX2000-Ada", 16, "NVIDIA RTX 2000 Ada Generation data sheet", ["RTX2000-Ada"]),
  card("RTXPRO6000", 96, "NVIDIA RTX PRO 6000 Blackwell data sheet", [
    "RTXPRO6000",
    "RTXPRO6000-WK",
    "RTXPRO6000WS",
    "RTXPRO6000S",
  ]),
  card("Quadro-RTX6000", 24, "NVIDIA Quadro RTX 6000 data sheet", ["RTX6000", "Quadro-RTX6000"]),
  card("Quadro-RTX8000", 48, "NVIDIA Quadro RTX 8000 data sheet", ["RTX8000", "Quadro-RTX8000"]),
  card("L40", 48, "NVIDIA L40 data sheet"),
  card("L20", 48, "NVIDIA L20 data sheet"),
  card("RTX3090", 24, "NVIDIA GeForce RTX 3090 specifications", ["RTX3090", "RTX3090Ti"]),
  card("RTX4090", 24, "NVIDIA GeForce RTX 4090 specifications"),
  card("RTX5090", 32, "NVIDIA GeForce RTX 5090 specifications"),
  card("RTX2080Ti", 11, "NVIDIA GeForce RTX 2080 Ti specifications"),
  card("TITAN-RTX", 24, "NVIDIA TITAN RTX specifications"),
  card("H100-NVL", 94, "NVIDIA H100 NVL data sheet"),
  card("H20", 96, "NVIDIA H20 data sheet"),
  card("H800", 80, "NVIDIA H800 data sheet"),
  card("GH200", 96, "NVIDIA GH200 Grace Hopper data sheet, HBM3 version", ["GH200", "GH200-96GB"]),
  card("GH200-144", 144, "NVIDIA GH200 Grace Hopper data sheet, HBM3e version", ["GH200-144GB"]),
  card("B200", 180, "NVIDIA DGX B200 data sheet: 1,440 GB in eight GPUs", ["B200", "B200-SXM"]),
  card("GB200", 186, "NVIDIA GB200 NVL72 data sheet: 13.4 TB in 72 GPUs"),
  card("B300", 270, "NVIDIA HGX B300 data sheet", ["B300", "B300-SXM"]),
  card("P100", 16, "NVIDIA P100 data sheet"),
  card("P40", 24, "NVIDIA P40 data sheet"),
  card("P4", 8, "NVIDIA P4 data sheet"),
  card("K80", 12, "NVIDIA K80 board specification: 24 GB a board, two GPUs of 12 GB"),
  card("M60", 8, "NVIDIA M60 data sheet: 16 GB a board, two GPUs of 8 GB"),

  card("MI100", 32, "AMD Instinct MI100 data sheet", ["MI100"], rocm),
  card("MI210", 64, "AMD Instinct MI210 data sheet", ["MI210"], rocm),
  card("MI250", 64, "AMD Instinct MI250 data sheet: 128 GB a module, two dies of 64 GB", ["MI250"], rocm),
  card("MI250X", 64, "AMD Instinct MI250X data sheet: 128 GB a module, two dies of 64 GB", ["MI250X"], rocm),
  card("MI300A", 128, "AMD Instinct MI300A data sheet", ["MI300A"], rocm),
  card("MI300X", 192, "AMD Instinct MI300X data sheet", ["MI300X"], rocm),
  card("MI325X", 256, "AMD Instinct MI325X data sheet", ["MI325X"], rocm),
  card("MI350X", 288, "AMD Instinct MI350X data sheet", ["MI350X"], rocm),
  card("MI355X", 288, "AMD Instinct MI355X data sheet", ["MI355X"], rocm),

  card("Gaudi", 32, "Intel Gaudi HL-205 data sheet", ["Gaudi HL-205", "Gaudi"], hpu),
  card("Gaudi2", 96, "Intel Gaudi 2 data sheet", ["Gaudi2", "Gaudi HL-225"], hpu),
  card("Gaudi3", 128, "Intel Gaudi 3 data sheet", ["Gaudi3", "Gaudi HL-325"], hpu),
];
