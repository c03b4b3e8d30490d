/**
 * A daemon for tests: the real one with other limits, which kills itself (SIGKILL) where it is told to.
 * `DAEMON_ENTRY` is JSON: {flags, limits, crashAt: {phase, nth}}.
 */
import { loadCampaign } from "../../src/daemon/campaign-files.ts";
import { serveCampaign } from "../../src/daemon/command.ts";
import type { Limits } from "../../src/daemon/limits.ts";

interface Entry {
  readonly values: Record<string, string>;
  readonly campaign: string;
  readonly limits: Partial<Limits>;
  readonly crashAt: string | null;
}

const entry = JSON.parse(process.env.DAEMON_ENTRY ?? "{}") as Entry;
const place = { cwd: process.cwd(), environment: process.env, program: "test" };
const loaded = loadCampaign({ values: entry.values, lists: {}, switches: {} }, entry.campaign, place);
await serveCampaign({
  campaign: loaded.campaign,
  record: loaded.record,
  version: "test",
  env: process.env,
  cwd: process.cwd(),
  log: (line) => process.stderr.write(`${line}\n`),
  limits: entry.limits,
  onTransition: ({ phase }) => {
    if (entry.crashAt === phase) process.kill(process.pid, "SIGKILL");
  },
});
process.exit(0);
