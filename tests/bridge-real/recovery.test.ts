import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Campaign, counted, GPU, ticks } from "./campaign.ts";
import { missing, Rig, type Running, until } from "./rig.ts";

const absent = missing();
/** An upper bound: on two free cores each takes less than a minute. */
const PATIENCE_MS = 900_000;
/** Those behind the first three have not been seen to pass three times in a row yet, so CI leaves them to `make bridge-real`. */
const EVERY = process.env.NEURARCH_TEST_EVERY !== undefined;
const AGAIN = /retrying on a new allocation \(attempt 2 of 2\)\. Output starts again\./;

/** Every test leaves the daemon serving, an allocation up, and no job held. */
describe.skipIf(absent !== null && process.env.CI !== "true")("recovery on a real cluster", () => {
  let rig: Rig;
  let campaign: Campaign;

  beforeAll(async () => {
    expect(absent).toBeNull();
    rig = await Rig.start();
    campaign = new Campaign(rig, GPU);
    await campaign.serve();
  }, PATIENCE_MS);
  afterAll(async () => {
    try {
      if (campaign?.daemon != null) {
        expect((await campaign.end()).exit).toBe(0);
        expect(campaign.unwhole()).toEqual([]);
        await until("the allocation is gone", async () => (await rig.jobs()).length === 0, 60);
      }
    } finally {
      if (process.env.NEURARCH_TEST_KEEP !== undefined) console.error(campaign?.log);
      await rig?.stop();
    }
  }, PATIENCE_MS);

  /** An evaluation whose first job goes on until it is taken away; later ones end at once. */
  const taken = async (take: (job: string) => Promise<unknown>) => {
    campaign.hold();
    const client = campaign.evaluating("accuracy");
    const job = await campaign.ticking(client);
    campaign.letGo(job);
    await take(job);
    return { job, ...(await client.ended) };
  };
  /** Its output: the lines of the lost attempt without a gap, then those of the next one. */
  const startedAgain = (out: string) => {
    const at = out.lastIndexOf("measuring first\n");
    expect(out.slice(at)).toBe("measuring first\nmeasured first\n");
    expect(ticks(out.slice(0, at))).toEqual(counted(ticks(out).length));
  };

  test(
    "the allocation's time is over in mid-run",
    async () => {
      const before = campaign.starts.length;
      const { exit, out, err } = await taken((job) =>
        rig.ask("scontrol", "update", `JobId=${job}`, "TimeLimit=1"),
      );
      expect(err).toMatch(AGAIN);
      expect(exit).toBe(0);
      startedAgain(out);
      expect(campaign.last.failures).toMatchObject([
        { attempt: 1, class: "ALLOCATION_EXPIRED", seen: "The allocation reached its time limit." },
      ]);
      expect(campaign.result).toMatchObject({ class: "COMPLETED", attempt: 2 });
      expect(new Set(campaign.starts.slice(before)).size).toBe(2);
    },
    PATIENCE_MS,
  );

  test(
    "an administrator cancels the Slurm job in mid-run",
    async () => {
      const { exit, out, err } = await taken((job) => rig.ask("scancel", job));
      expect(err).toMatch(AGAIN);
      expect(exit).toBe(0);
      startedAgain(out);
      expect(campaign.last.failures).toMatchObject([{ attempt: 1, class: "ALLOCATION_EXPIRED" }]);
      expect(campaign.result).toMatchObject({ class: "COMPLETED", attempt: 2 });
    },
    PATIENCE_MS,
  );

  test(
    "the daemon is killed in mid-stream, and the job goes on",
    async () => {
      const before = campaign.starts.length;
      campaign.hold();
      const first = campaign.evaluating("accuracy");
      await campaign.ticking(first);
      expect((await campaign.end("KILL")).exit).toBe(137);
      const cut = await first.ended;
      expect(cut.exit).toBe(2);
      await campaign.serve();
      const second = campaign.evaluating("accuracy");
      await until("its output goes on", () => ticks(second.out()).length > 5);
      campaign.letGo();
      const { exit, out } = await second.ended;
      expect(exit).toBe(0);
      // Between the two, each line once: what the first took is not handed out again.
      expect(ticks(cut.out + out)).toEqual(counted(ticks(cut.out + out).length));
      expect((cut.out + out).startsWith("measuring first\ntick 1\n")).toBe(true);
      expect(out.endsWith("measured first\n")).toBe(true);
      expect(campaign.starts.length - before).toBe(1);
      expect(campaign.result).toMatchObject({ class: "COMPLETED", attempt: 1 });
    },
    PATIENCE_MS,
  );

  if (!EVERY) return;

  test(
    "the daemon is killed in every phase of one evaluation",
    async () => {
      const before = campaign.starts.length;
      await campaign.end("KILL");
      const phases = ["PREPARED", "SUBMITTING", "SUBMITTED", "RUNNING", "COMPLETED"] as const;
      let told = "";
      for (const phase of phases) {
        const daemon = campaign.serveUntil(phase);
        let over = false;
        void daemon.ended.then(() => {
          over = true;
        });
        while (!over) {
          await until("it listens", () => over || daemon.err().includes("serving run"), 400);
          // What it knows of as submitted it takes up by itself; a client may come all the same.
          const { exit, out } = await campaign.evaluating("accuracy").ended;
          expect(exit).not.toBe(0);
          told += out;
        }
        expect((await daemon.ended).exit).toBe(137);
        expect(campaign.last.phase).toBe(phase);
      }
      await campaign.serve();
      const { exit, out } = await campaign.evaluating("accuracy").ended;
      expect(exit).toBe(0);
      expect(told + out).toBe("measuring first\nmeasured first\n");
      expect(campaign.starts.length - before).toBe(1);
      expect(campaign.result).toMatchObject({ class: "COMPLETED", attempt: 1 });
      expect(campaign.last.phase).toBe("ACKNOWLEDGED");
    },
    PATIENCE_MS,
  );

  /** A connection that is lost and comes back: no attempt is lost, and every line comes once. */
  const interrupted = async (interrupt: (client: Running) => Promise<unknown>) => {
    const before = campaign.starts.length;
    campaign.hold();
    const client = campaign.evaluating("accuracy");
    await campaign.ticking(client);
    await interrupt(client);
    const seen = ticks(client.out()).length;
    await until("its output goes on", () => ticks(client.out()).length > seen + 5, 400);
    campaign.letGo();
    const { exit, out, err } = await client.ended;
    expect(exit).toBe(0);
    expect(ticks(out)).toEqual(counted(ticks(out).length));
    expect(campaign.starts.length - before).toBe(1);
    expect(campaign.last.failures).toEqual([]);
    expect(campaign.result).toMatchObject({ class: "COMPLETED", attempt: 1 });
    return err;
  };

  test(
    "the SkyPilot API server is killed and started again in mid-stream",
    async () => {
      await interrupted(async () => {
        await rig.act("stop_api");
        await rig.act("start_api");
      });
    },
    PATIENCE_MS,
  );

  test(
    "sshd is stopped and started in mid-stream",
    async () => {
      const err = await interrupted(async (client) => {
        await rig.act("stop_sshd");
        await until("it is noticed", () => client.err().includes("TRANSPORT_LOST"));
        await rig.act("start_sshd");
      });
      expect(err).toContain("TRANSPORT_LOST");
    },
    PATIENCE_MS,
  );

  test(
    "the Slurm controller is killed and started again in mid-stream",
    async () => {
      await interrupted(async () => {
        await rig.act("stop_slurmctld");
        await Bun.sleep(3000);
        await rig.act("start_slurmctld");
      });
    },
    PATIENCE_MS,
  );

  test(
    "cancelled by the operator, and by somebody else",
    async () => {
      campaign.hold();
      const ours = campaign.evaluating("accuracy");
      await campaign.ticking(ours);
      const asked = await campaign.bridge("cancel", "--campaign", `${campaign.inside}/campaign.toml`);
      expect(asked).toMatchObject({ exit: 0 });
      expect((await ours.ended).exit).toBe(130);
      expect(campaign.result).toMatchObject({ class: "CANCELLED", attempt: 1 });
      const theirs = campaign.evaluating("accuracy");
      await campaign.ticking(theirs);
      const { allocation, remoteJobId } = campaign.last;
      await rig.ask("sky", "cancel", allocation!.clusterName, String(remoteJobId), "-y");
      expect((await theirs.ended).exit).toBe(130);
      expect(campaign.result).toMatchObject({ class: "CANCELLED", attempt: 1 });
      expect(campaign.last.cancelRequested).toBe(false);
      campaign.letGo();
    },
    PATIENCE_MS,
  );

  test(
    "preempted, then on a node that fails: the bound holds, and the next call begins anew",
    async () => {
      campaign.hold();
      const client = campaign.evaluating("accuracy");
      const first = await campaign.ticking(client);
      // SkyPilot's jobs are never put back into the queue, so that is refused.
      const requeued = await rig.run(["scontrol", "requeue", first]);
      expect(requeued.exit).not.toBe(0);
      const node = (await rig.ask("squeue", "-h", "-j", first, "-o", "%N")).trim();
      const urgent = [
        "--parsable",
        "-p",
        "urgent",
        `--nodelist=${node}`,
        "--gres=gpu:a10g:4",
        "--wrap=sleep 1000",
      ];
      const other = (await rig.ask("sbatch", "-o", "/dev/null", ...urgent)).trim();
      const second = await until(
        "it runs on another allocation",
        () => {
          const last = campaign.starts.at(-1);
          return last !== first && /Output starts again/.test(client.err()) ? last : null;
        },
        600,
      );
      await rig.ask("scancel", other);
      const failing = (await rig.ask("squeue", "-h", "-j", second, "-o", "%N")).trim();
      expect(failing).not.toBe(node);
      await until(
        "it prints",
        () => ticks(client.out().slice(client.out().lastIndexOf("measuring"))).length > 5,
      );
      campaign.letGo(second);
      await rig.ask("scontrol", "update", `NodeName=${failing}`, "State=DOWN", "Reason=test");
      const { exit, err } = await client.ended;
      expect(err).toContain("(NODE_FAILED); all 2 attempts of this call were lost to infrastructure");
      expect(exit).toBe(2);
      expect(campaign.last.failures).toMatchObject([
        { attempt: 1, class: "PREEMPTED" },
        { attempt: 2, class: "NODE_FAILED" },
      ]);
      expect(campaign.last.phase).toBe("PREPARED");
      // Slurm may have taken it back by itself, and then refuses this.
      await rig.run(["scontrol", "update", `NodeName=${failing}`, "State=RESUME"]);
      await rig.act("until_ok", "60", "node_up", failing);
      const anew = await campaign.evaluating("accuracy").ended;
      expect(anew).toMatchObject({ exit: 0, out: "measuring first\nmeasured first\n" });
      expect(campaign.result).toMatchObject({ class: "COMPLETED", attempt: 3 });
    },
    PATIENCE_MS,
  );

  test(
    "slurmd dies: looked for again until Slurm gives the node up",
    async () => {
      let node = "";
      const { exit, err } = await taken(async (job) => {
        node = (await rig.ask("squeue", "-h", "-j", job, "-o", "%N")).trim();
        await rig.act("stop_slurmd", node);
      });
      expect(exit).toBe(0);
      expect(err).toMatch(AGAIN);
      expect(campaign.last.failures).toMatchObject([{ attempt: 1, class: "NODE_FAILED" }]);
      expect(campaign.result).toMatchObject({ class: "COMPLETED", attempt: 2 });
      campaign.letGo();
      await rig.act("start_slurmd", node);
      await rig.act("until_ok", "60", "node_up", node);
    },
    PATIENCE_MS,
  );

  test(
    "while the daemon is dead its allocation is cancelled and made anew by hand",
    async () => {
      campaign.hold();
      const client = campaign.evaluating("accuracy");
      const job = await campaign.ticking(client);
      const before = campaign.starts.length;
      campaign.letGo(job);
      await campaign.end("KILL");
      await rig.ask("scancel", job);
      const name = campaign.last.allocation!.clusterName;
      await rig.ask(
        "sky",
        "launch",
        "-c",
        name,
        "-y",
        "-d",
        "--infra",
        "slurm/lab/gpu",
        "--gpus",
        "A10G:4",
        "true",
      );
      await campaign.serve();
      // The new allocation calls the old job FAILED, which is no word of the program's.
      const { exit, err } = await campaign.evaluating("accuracy").ended;
      expect(err).toMatch(AGAIN);
      expect(exit).toBe(0);
      expect(campaign.last.failures).toMatchObject([{ attempt: 1, class: "ALLOCATION_EXPIRED" }]);
      expect(campaign.result).toMatchObject({ class: "COMPLETED", attempt: 2 });
      expect(campaign.starts.length - before).toBe(1);
    },
    PATIENCE_MS,
  );

  test(
    "another job holds the cards of the allocation: its turn is waited for",
    async () => {
      // Where it is run alone there is none yet.
      if (campaign.records().length === 0) await campaign.evaluating("accuracy").ended;
      const name = campaign.last.allocation?.clusterName ?? "";
      const resources = ["--infra", "slurm/lab/gpu", "--gpus", "A10G:4"];
      const said = await rig.ask("sky", "exec", "-d", name, ...resources, "sleep 1000");
      const other = /Job submitted, ID: (\d+)/.exec(said)?.[1] ?? "";
      const before = campaign.starts.length;
      const client = campaign.evaluating("accuracy");
      await until("it is submitted", () => campaign.last.phase === "RUNNING");
      expect(await rig.ask("sky", "queue", name, "-o", "json")).toContain('"PENDING"');
      expect(campaign.starts.length).toBe(before);
      await rig.ask("sky", "cancel", name, other, "-y");
      expect(await client.ended).toMatchObject({ exit: 0, out: "measuring first\nmeasured first\n" });
      expect(campaign.result).toMatchObject({ class: "COMPLETED", attempt: 1 });
    },
    PATIENCE_MS,
  );

  test(
    "the controller dies before the job's step is begun: it is no failure of the program",
    async () => {
      const before = campaign.starts.length;
      const client = campaign.evaluating("accuracy");
      await until(
        "it is submitted",
        () => campaign.last.phase === "SUBMITTED" || campaign.last.phase === "RUNNING",
      );
      await rig.act("stop_slurmctld");
      await Bun.sleep(15_000);
      await rig.act("start_slurmctld");
      const { exit, err } = await client.ended;
      expect(exit).toBe(0);
      expect(err).toMatch(AGAIN);
      expect(campaign.last.failures).toMatchObject([{ attempt: 1, class: "NODE_FAILED" }]);
      expect(campaign.starts.length - before).toBe(1);
    },
    PATIENCE_MS,
  );
});
