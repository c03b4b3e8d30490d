import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { Campaign, GPU, MI300 } from "./campaign.ts";
import { missing, Rig, until } from "./rig.ts";

const PATIENCE_MS = 900_000;
const absent = missing();
if (absent !== null && process.env.CI !== "true")
  console.warn(`no rig of Slurm and SkyPilot here: ${absent}`);

describe.skipIf(absent !== null && process.env.CI !== "true")("a campaign on a real cluster", () => {
  let rig: Rig;
  let campaign: Campaign;
  let slurmJob = "";

  beforeAll(async () => {
    expect(absent).toBeNull();
    rig = await Rig.start();
    campaign = new Campaign(rig, GPU);
  }, PATIENCE_MS);
  afterAll(() => rig?.stop(), 60_000);

  test(
    "an uncommitted candidate is measured and its result comes back",
    async () => {
      await campaign.serve();
      const first = await campaign.benchmark();
      expect(first).toMatchObject({ exit: 0, out: "measuring first\nmeasured first\n" });
      slurmJob = campaign.starts[0] ?? "none";
      expect(first.result).toEqual({ candidate: "first", slurmJob });
      expect(campaign.result).toMatchObject({ class: "COMPLETED", exitCode: 0, attempt: 1 });
      expect(campaign.last.phase).toBe("ACKNOWLEDGED");
    },
    PATIENCE_MS,
  );

  test(
    "an edit is measured on the same allocation",
    async () => {
      const before = await rig.jobs("all");
      campaign.write("candidate.txt", "second");
      const second = await campaign.benchmark();
      expect(second).toMatchObject({ exit: 0, out: "measuring second\nmeasured second\n" });
      expect(second.result).toEqual({ candidate: "second", slurmJob });
      expect(await rig.jobs("all")).toEqual(before);
      expect(before).toContain(`${slurmJob} RUNNING`);
    },
    PATIENCE_MS,
  );

  // Where the shell around the program is killed as well, only SkyPilot's own words are left: a list of codes, or for 137
  // a traceback of its driver.
  const ends: readonly (readonly [name: string, last: string, exitCode: number])[] = [
    ["7", "exit 7", 7],
    ["137, as when memory runs out", "kill -KILL $$", 137],
    ["134 together with the shell around it", "sh kill-all.sh ABRT", 134],
    ["137 together with the shell around it", "sh kill-all.sh KILL", 137],
  ];
  const KILL_ALL = `all= pid=$$
while [ "$pid" -gt 1 ]; do
  tr '\\0' ' ' <"/proc/$pid/cmdline" | grep -q '[n]eurarch-evaluation' && all="$all $pid"
  pid=$(awk '{print $4}' "/proc/$pid/stat")
done
kill "-$1" $all $PPID
`;
  for (const [name, last, exitCode] of ends) {
    test(
      `a program that ends with ${name} is not tried again`,
      async () => {
        const before = campaign.starts.length;
        campaign.write("kill-all.sh", KILL_ALL);
        campaign.write("last.sh", last);
        const failed = await campaign.benchmark();
        campaign.remove("last.sh");
        expect(failed).toMatchObject({ exit: 1, result: null });
        // Its shell may say that it was killed, on its other stream: SkyPilot keeps no order between the two.
        expect(failed.out.replace(/^(?:Killed|Aborted)\n/m, "")).toBe("measuring second\nmeasured second\n");
        expect(campaign.result).toMatchObject({ class: "APPLICATION_FAILED", exitCode, attempt: 1 });
        expect(campaign.starts.length - before).toBe(1);
      },
      PATIENCE_MS,
    );
  }

  test(
    "a second profile has an allocation of its own",
    async () => {
      const other = new Campaign(rig, MI300);
      other.write("bench.sh", 'echo "$SLURM_JOB_ID.$SLURM_STEP_ID $ROCR_VISIBLE_DEVICES"\n');
      await other.serve();
      const { exit, out } = await other.evaluating("accuracy").ended;
      expect(exit).toBe(0);
      expect(out).toMatch(/^\d+\.\d+ 0,1,2,3\n$/);
      const id = out.split(".")[0] ?? "";
      expect(await rig.jobs()).toEqual([`${slurmJob} RUNNING`, `${id} RUNNING`]);
      const job = await rig.ask("scontrol", "show", "job", id);
      expect(job).toMatch(/Partition=mi300\b/);
      expect(job).toMatch(/TimeLimit=01:00:00/);
      expect(job).toMatch(/OverSubscribe=NO/);
      expect(job).toMatch(/NumCPUs=32\b/);
      expect((await other.end()).exit).toBe(0);
      // Slurm has ended the job some seconds after SkyPilot says that it is terminated.
      await until("the allocation is gone", async () => (await rig.jobs()).length === 1, 120);
      expect(await rig.jobs()).toEqual([`${slurmJob} RUNNING`]);
    },
    PATIENCE_MS,
  );

  test(
    "the end of the campaign leaves no Slurm job, no process and no socket",
    async () => {
      const { exit, err } = await campaign.end();
      expect(err).toContain("closed");
      expect(exit).toBe(0);
      await until("the allocation is gone", async () => (await rig.jobs()).length === 0, 120);
      const status = await rig.ask("sky", "status", "-o", "json");
      expect(JSON.parse(status.slice(status.lastIndexOf("[")))).toEqual([]);
      expect(existsSync(`${campaign.folder}/s/bridge.sock`)).toBe(false);
      expect(existsSync(`${campaign.folder}/state/operator/bridge.sock`)).toBe(false);
      const running = async () => (await rig.ask("ps", "-e", "-o", "user:20=,args=")).split("\n");
      // SkyPilot's own reapers go a moment behind the job that they watched.
      await until(
        "no process is left on the cluster",
        async () => !(await running()).some((line) => line.startsWith("pilot ") && !line.includes("sshd:")),
        60,
      );
      const processes = await running();
      expect(processes.filter((line) => line.includes("neurarch-gate bridge"))).toEqual([]);
      expect(campaign.unwhole()).toEqual([]);
    },
    PATIENCE_MS,
  );
});
