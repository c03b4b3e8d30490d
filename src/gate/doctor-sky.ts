import { executablePath } from "../host/env.ts";
import { type Check, type DoctorHost, ok, warn } from "../slurm/doctor-types.ts";
import { checkClass } from "./doctor-sky-class.ts";
import { configured, type Endpoint, isHere, withoutPassword } from "./doctor-sky-config.ts";
import { checkRest } from "./doctor-sky-rest.ts";

/**
 * Checks what stands between `sky launch` and a verdict: SkyPilot's config, then the class policy or the REST policy
 * that it names. `shim` is the Python policy of this executable; `python` the Python to ask, null = that of `sky`.
 */
export async function examineSky(
  host: DoctorHost,
  shim: string,
  python: string | null,
): Promise<readonly Check[]> {
  const { checks, policy, from, endpoint } = configured(host);
  if (policy === null) return checks;
  const named = ok("policy", `admin_policy: ${withoutPassword(policy)} (${from})`);
  const rest = /^https?:/i.test(policy)
    ? await checkRest(policy, host.version)
    : await checkClass(policy, shim, python, host, executablePath());
  return [...checks, named, ...rest, ...sideOf(endpoint)];
}

/** Which half of SkyPilot this config speaks for. */
function sideOf(endpoint: Endpoint): Check[] {
  if (isHere(endpoint))
    return [ok("side", "this host's config is read by `sky` here and by an API server started here")];
  return [
    warn(
      "side",
      `the API server at ${withoutPassword(endpoint.url)} (${endpoint.from}) applies the policy of its own config, not this one`,
      "Run this on the API server's host too.",
    ),
  ];
}
