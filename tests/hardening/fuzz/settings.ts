import { loadSettings } from "../../../src/gate/load.ts";
import { memoSizer } from "../../../src/gate/memo-sizer.ts";
import { makePolicy } from "../../../src/gate/policy.ts";
import { makeSizer } from "../../../src/gate/size.ts";

/** Nothing is asked of a hub, nothing is kept, and no home is there. */
export const ENV: Readonly<Record<string, string>> = { HF_HUB_OFFLINE: "1" };

const MAP = { a10g: "A10G", a100: "A100-80", h100: "H100" };
const site = (values: Record<string, string>, switches: Record<string, boolean> = {}) =>
  loadSettings({ values, switches }, {});

/** Sites with other settings, so that other ways are gone. */
export const SITES = await Promise.all([
  site({}),
  site(
    { mode: "reject", "max-cost-usd": "100", "default-gpu-type": "h100" },
    { annotate: true, "hours-from-time": true },
  ),
  site({ "gpu-map": JSON.stringify(MAP), "partition-map": '{"debug":"a10g"}' }, { mutate: true }),
  site({ mode: "reject" }, { "fail-closed": true, mutate: true }),
]);

export const size = memoSizer(
  makeSizer(SITES[0]!, { cwd: "/", env: ENV, deadlineMs: 20_000 }),
  // Few models are named, and nearly every other name is another.
  5000,
);

export const policyOf = makePolicy(SITES[0]!, { cwd: "/proc", env: ENV, file: null, siteOnly: true });
