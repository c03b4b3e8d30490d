import { TRIAL_MODEL } from "./doctor-binary.ts";
import { type Check, type DoctorHost, failed, ok, skipped, warn } from "./doctor-types.ts";

/**
 * Submits without submitting (`sbatch --test-only`): a job without a GPU, which must pass, and one that asks one GPU for
 * a model that no card holds, of which the filter must speak. Nothing is queued.
 */
export async function checkSubmit(hasFilter: boolean, host: DoctorHost): Promise<readonly Check[]> {
  if (host.find("sbatch", host.env.PATH ?? "") === null) {
    const check = failed(
      "submit",
      "sbatch is not on PATH, so nothing was tried",
      "Run this on a host that people submit from.",
    );
    return [{ ...check, unreachable: true }, skipped("submit-gpu", "not tried without sbatch")];
  }
  const plain = await host.run(["sbatch", "--test-only", "--wrap", "true"]);
  const seen = firstLine(plain.err);
  if (plain.timedOut) {
    const check = failed(
      "submit",
      `sbatch --test-only did not come back in time${seen === "" ? "" : `; it said: ${seen}`}`,
      "Every submit waits so: try it without the CliFilterPlugins line, to tell whether a filter or slurmctld is slow.",
    );
    return [check, skipped("submit-gpu", "not tried: a submit does not come back")];
  }
  if (BROKEN.test(plain.err)) {
    const check = failed(
      "submit",
      `sbatch --test-only is refused by the filter: ${seen}`,
      "Every submit on this host is refused now: correct the filter, or take the line out of slurm.conf.",
    );
    return [check, skipped("submit-gpu", "not tried: no job passes the filter")];
  }
  if (AWAY.test(plain.err)) {
    const check = warn(
      "submit",
      `slurmctld does not answer, so nothing was tried: ${seen}`,
      "Try again when it runs.",
    );
    return [{ ...check, unreachable: true }, skipped("submit-gpu", "not tried without slurmctld")];
  }
  const passed =
    plain.exit === 0
      ? ok("submit", "a job without a GPU passes (sbatch --test-only)")
      : warn(
          "submit",
          `the filter lets a job without a GPU pass, and Slurm says: ${seen}`,
          "Give this user an account and a partition to try with, if it matters.",
        );
  if (!hasFilter) return [passed, skipped("submit-gpu", "not tried: the filter in force is not ours")];
  return [passed, await checkGpu(host)];
}

async function checkGpu(host: DoctorHost): Promise<Check> {
  const sinfo = await host.run(["sinfo", "-h", "-o", "%G"]);
  const type = /(?:^|[,\s])gpu:([A-Za-z][^:,(\s]*):\d+/m.exec(sinfo.out)?.[1];
  const gres = type === undefined ? "gpu:1" : `gpu:${type}:1`;
  if (!/\bgpu\b/.test(sinfo.out))
    return skipped("submit-gpu", "not tried: sinfo shows no GPU in this cluster");
  const { err, timedOut } = await host.run(["sbatch", "--test-only", `--gres=${gres}`, "--wrap", "true"], {
    NEURARCH_MODEL: TRIAL_MODEL,
    HF_HUB_OFFLINE: "1",
  });
  if (timedOut)
    return failed(
      "submit-gpu",
      `sbatch --test-only --gres=${gres} did not come back in time, and without a GPU it does`,
      "Lower timeout_s in the filter, and set debug = true to see what it waits for.",
    );
  const told = /Neurarch: .*/.exec(err)?.[0];
  if (told === undefined)
    return failed(
      "submit-gpu",
      `the filter said nothing of ${TRIAL_MODEL} on ${gres}, which no card holds${err.trim() === "" ? "" : `: ${firstLine(err)}`}`,
      "Set debug = true in the filter and submit again to see why.",
    );
  if (/this job was not judged|could not be judged/.test(told))
    return failed("submit-gpu", told, "Correct what it names; users see the same line.");
  if (/not judged/.test(told))
    return warn(
      "submit-gpu",
      `${gres}: ${told}`,
      "Name the cluster's types in a gpu_map, or set default_gpu_type or a partition_map.",
    );
  return ok("submit-gpu", `${gres} is judged: ${told.length > 160 ? `${told.slice(0, 160)}...` : told}`);
}

/** What sbatch prints when the plugin does not load, or a filter that gives no reason refuses. */
const BROKEN =
  /cli_filter plugin terminated|failed to initialize cli_filter|cannot (?:find|create) cli_filter/i;
const AWAY =
  /Unable to contact slurm controller|Connection refused|Socket timed out|Zero Bytes|configuration source/i;

function firstLine(text: string): string {
  return text.trim().split("\n")[0]?.slice(0, 300) ?? "";
}
