import { environment } from "../host/env.ts";
import { listDirectory, pathInfo, readBytes, realPath } from "../host/fs.ts";
import { runChild } from "../host/process.ts";
import { findProgram } from "../host/which.ts";
import { GateError } from "../lib/errors.ts";
import type { DoctorHost } from "../slurm/doctor-types.ts";
import type { LedgerState } from "./ledger-doctor.ts";
import { loadSettings } from "./load.ts";

/** Largest file that is looked into: a plugin is some 100 kB. */
const MAX_BYTES = 8_000_000;
/** Milliseconds for each program that is tried. */
const PATIENCE_MS = 15_000;

/** The state of the ledger that flags and site file name; null without one, or where they cannot be read. */
export async function siteLedger(
  values: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string | undefined>>,
  version: string,
): Promise<readonly LedgerState[] | null> {
  try {
    const settings = await loadSettings({ values, switches: {} });
    if (settings.ledger === null || settings.ledger === "") return null;
    const { ledgerState } = await import("./ledger-doctor.ts");
    return await ledgerState(
      { ledger: settings.ledger, tokenFile: settings.ledgerUpkeep?.tokenFile ?? null, env, version },
      true,
    );
  } catch (error) {
    if (error instanceof GateError) return null;
    throw error;
  }
}

/** This host as a doctor sees it. `version` is this program's own. */
export function doctorHost(version: string): DoctorHost {
  const env = environment();
  // Slurm takes an empty one for the name of a file.
  const bare = env.SLURM_CONF === "" ? { ...env, SLURM_CONF: undefined } : env;
  return {
    env,
    version,
    read: (path) => {
      const bytes = readBytes(path, MAX_BYTES);
      return bytes.ok ? new TextDecoder("latin1").decode(bytes.value) : null;
    },
    info: pathInfo,
    real: realPath,
    list: listDirectory,
    find: (program, path) => findProgram(program, { PATH: path }),
    run: async (argv, more = {}) => {
      const program = findProgram(argv[0]!, env);
      if (program === null) return { exit: null, out: "", err: `${argv[0]} is not on PATH`, timedOut: false };
      const ran = await runChild([program, ...argv.slice(1)], {
        timeoutMs: PATIENCE_MS,
        env: { ...bare, ...more },
      });
      return {
        exit: ran.exitCode,
        out: ran.stdout,
        err: ran.startError ?? ran.stderr,
        timedOut: ran.timedOut,
      };
    },
    ledger: (values) => siteLedger(values, env, version),
    settingsProblem: async (values) => {
      try {
        await loadSettings({ values, switches: {} });
        return null;
      } catch (error) {
        if (error instanceof GateError) return { message: error.message, hint: error.hint };
        throw error;
      }
    },
  };
}
