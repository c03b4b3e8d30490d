import { checkBinary } from "./doctor-binary.ts";
import { checkConf } from "./doctor-conf.ts";
import { checkFilter } from "./doctor-filter.ts";
import { checkSubmit } from "./doctor-submit.ts";
import { type Check, type DoctorHost, skipped } from "./doctor-types.ts";

/**
 * Checks what stands between a submit and its verdict, in the order in which Slurm meets it. Later checks go on after
 * a failure as far as they can: an administrator wants all of it at once.
 */
export async function examineSlurm(host: DoctorHost, slurmConf: string | null): Promise<readonly Check[]> {
  const conf = await checkConf(host, slurmConf);
  // The commands below must look at the file that was examined.
  const there: DoctorHost = conf.path === null ? host : withConf(host, conf.path);
  const filter =
    conf.filter === null
      ? {
          checks: ["filter-file", "filter-lua"].map((check) =>
            skipped(check, "not looked at without slurm.conf"),
          ),
          settings: null,
        }
      : await checkFilter(conf.filter, conf.pluginDirs, there);
  return [
    ...conf.checks,
    ...filter.checks,
    ...(await checkBinary(filter.settings, there)),
    ...(conf.path === null
      ? ["submit", "submit-gpu"].map((check) => skipped(check, "not tried without slurm.conf"))
      : await checkSubmit(filter.settings !== null, there)),
  ];
}

function withConf(host: DoctorHost, path: string): DoctorHost {
  return { ...host, run: (argv, env) => host.run(argv, { SLURM_CONF: path, ...env }) };
}
