import { FACT_SPECS } from "../facts/keys.ts";
import { SITE_FILE } from "../gate/settings.ts";
import type { ManSection } from "../render/man.ts";

/** What the manual page says beside the commands; the first one stands before them. */
export const MAN_SECTIONS: readonly ManSection[] = [
  {
    title: "DESCRIPTION",
    text:
      "Sizes the training peak of a job from the model's structure, judges the request for GPUs, and speaks to " +
      "SkyPilot (admin policy) and Slurm (cli_filter). It needs no GPU, no Python and, for models of its own " +
      "catalogue, no network; nothing is trained.\n\n" +
      "A job tells its model and how it trains in the variables below, in #NEURARCH lines of a batch script, or in " +
      "flags. A job that names no model is not judged.",
  },
  {
    title: "EXIT STATUS",
    terms: [
      ["0", "done; of judge: allowed, warned or rewritten; of slurm: always"],
      ["1", "judge: refused"],
      ["2", "the command line is wrong"],
      ["3", "judge: not judged (0 with --fail-open)"],
      ["4", "an input or settings file cannot be used"],
      ["5", "a needed source or service cannot be reached"],
      ["10", "judge: a warning, with --fail-on warn"],
      ["70", "a bug of this program"],
    ],
  },
  {
    title: "ENVIRONMENT",
    terms: [
      ...FACT_SPECS.map(({ env, about, byDefaultText }) => [env, `${about} (${byDefaultText})`] as const),
      ["NEURARCH_POLICY_FILE", "the policy file, in place of the nearest .neurarch.yml"],
      ["NEURARCH_CLUSTER", "the cluster's name, where neither Slurm nor the site says"],
      ["HF_HOME, HF_HUB_CACHE", "where models of the Hugging Face hub are cached"],
      ["HF_ENDPOINT, HF_TOKEN", "the hub that is asked for a config, and the token it is asked with"],
      ["HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE", "1: no hub is asked"],
      ["XDG_CACHE_HOME", "where the own cache lies, in neurarch-gate (~/.cache)"],
      ["NO_COLOR", "no colour; there is none unless a terminal reads the output"],
    ],
  },
  {
    title: "FILES",
    terms: [
      [SITE_FILE, "a site's settings; schema gate has its keys"],
      [".neurarch.yml", "a repository's waivers, budget and severities, in its root or above the job's file"],
      ["~/.cache/neurarch-gate", "configs of the hub, sizes and failed look-ups; may be deleted at any time"],
    ],
  },
  { title: "SEE ALSO", text: "sbatch(1), sky(1)" },
];
