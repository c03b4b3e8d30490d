import type { SettingFlags } from "../gate/load.ts";

const VALUES = {
  MAX_COST_USD: "max-cost-usd",
  PRICES: "prices",
  SIZING: "sizing",
  CLI: "cli",
  PLAN_URL: "plan-url",
  TIMEOUT_S: "timeout",
  CONFIG: "config",
  FILE: "policy-file",
  LEDGER: "ledger",
};
const SWITCHES = { MUTATE: "mutate", FAIL_CLOSED: "fail-closed", CLIENT_SIZING: "client-sizing" };

/**
 * The settings of the environment that a policy server was started with, `NEURARCH_POLICY_<NAME>` as the Python policy
 * has them; flags lie over them, and they over the site file. An empty variable is one that is not set.
 */
export function withPolicyEnvironment(
  flags: SettingFlags,
  env: Readonly<Record<string, string | undefined>>,
): SettingFlags {
  const values: Record<string, string> = { ...flags.values };
  const switches: Record<string, boolean> = { ...flags.switches };
  for (const [name, flag] of Object.entries(VALUES)) {
    const value = env[`NEURARCH_POLICY_${name}`];
    if (value !== undefined && value !== "") values[flag] ??= value;
  }
  for (const [name, flag] of Object.entries(SWITCHES)) {
    const value = env[`NEURARCH_POLICY_${name}`];
    if (value !== undefined && value !== "") switches[flag] ??= /^\s*(?:1|true|yes|on)\s*$/i.test(value);
  }
  return { values, switches };
}
