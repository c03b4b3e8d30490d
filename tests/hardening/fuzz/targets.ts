import { BRIDGE_TARGETS } from "./bridge-targets.ts";
import { FILE_TARGETS } from "./file-targets.ts";
import { SKY_TARGETS } from "./sky-targets.ts";
import { SLURM_TARGETS } from "./slurm-targets.ts";
import type { Target } from "./target.ts";

export const TARGETS: readonly Target[] = [
  ...SLURM_TARGETS,
  ...SKY_TARGETS,
  ...FILE_TARGETS,
  ...BRIDGE_TARGETS,
];
