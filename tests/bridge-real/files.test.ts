/** Declared files on a real cluster: a nested step, an environment, and large files by way of the persistent folder. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../bridge/bridge-kit.ts";
import { Campaign, type CampaignOptions, MI300 } from "./campaign.ts";
import { missing, Rig, until } from "./rig.ts";

const absent = missing();

/** The operator is root here and `pilot` there: the folder is the cluster's user's. */
const PROFILE: CampaignOptions = {
  ...MI300,
  name: "files",
  profile: `${MI300.profile}\nremote_artifact_root = "/tmp/persistent/$USER/vibesys"`,
};

describe.skipIf(absent !== null && process.env.CI !== "true")("declared files on a real cluster", () => {
  let rig: Rig;
  let campaign: Campaign;
  const back = () => join(campaign.folder, "returned");
  const evaluate = (...globs: string[]) =>
    rig.run(
      [
        "/mnt/project/dist/neurarch-gate",
        "evaluate",
        "accuracy",
        "--socket",
        `${campaign.inside}/s/bridge.sock`,
        ...globs.flatMap((glob) => ["--artifact", glob]),
        "--artifact-dir",
        `${campaign.inside}/returned`,
      ],
      campaign.sandbox,
    );

  beforeAll(async () => {
    expect(absent).toBeNull();
    rig = await Rig.start();
    campaign = new Campaign(rig, PROFILE);
  }, 600_000);
  afterAll(() => rig?.stop(), 60_000);

  test("small ones come with the log, large ones by way of the folder that is made", async () => {
    campaign.write(
      "bench.sh",
      `mkdir -p out\nhead -c 9000000 /dev/urandom >out/big.bin\necho "$SLURM_JOB_ID.$SLURM_STEP_ID" >out/small.txt\necho "$VIBESYS_REMOTE_ARTIFACT_ROOT" >>out/small.txt\nln -s /etc/passwd out/link\nsha256sum out/big.bin\n`,
    );
    await campaign.serve();
    const ran = await evaluate("out/*");
    expect(ran.exit).toBe(0);
    expect(readdirSync(join(back(), "out")).sort()).toEqual(["big.bin", "small.txt"]);
    expect(`${sha256(readFileSync(join(back(), "out/big.bin")))}  out/big.bin\n`).toBe(ran.out);
    expect(readFileSync(join(back(), "out/small.txt"), "utf8")).toMatch(
      /^\d+\.\d+\n\/tmp\/persistent\/pilot\/vibesys\n$/,
    );
    expect(ran.err).toContain("out/link is left out: it is a link");
    const kept = join(rig.folder, "cluster-tmp/persistent/pilot/vibesys/neurarch-artifacts");
    expect(readdirSync(kept)).toHaveLength(1);
    expect(existsSync(join(rig.folder, "cluster-tmp/persistent/root"))).toBe(false);
  }, 600_000);

  test("the evaluation after it gets its own files on the same allocation", async () => {
    const before = await rig.jobs("all");
    rmSync(back(), { recursive: true });
    campaign.write("bench.sh", "echo again >out/again.txt\n");
    const ran = await evaluate("out/*");
    expect(ran.exit).toBe(0);
    expect(readdirSync(join(back(), "out"))).toEqual(["again.txt"]);
    expect(await rig.jobs("all")).toEqual(before);
  }, 600_000);

  test("nothing is left at the end but what the folder keeps for its days", async () => {
    expect((await campaign.end()).exit).toBe(0);
    await until("the allocation is gone", async () => (await rig.jobs()).length === 0, 30);
    expect(campaign.unwhole()).toEqual([]);
    // The last submission's record stays until the next one; nothing of a fetch does.
    expect(readdirSync(join(campaign.folder, "state/calls"))).toEqual([campaign.last.jobName]);
  }, 120_000);
});
