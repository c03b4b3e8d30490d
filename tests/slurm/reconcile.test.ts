import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BINARY, run } from "../acceptance/run.ts";
import { Cluster, slurmIsHere } from "./cluster.ts";

const CI = process.env.CI === "true";

/** Touches 300 MB, of which 64 MB were asked for; Slurm's watch over memory ends it within some seconds. */
const GREEDY = `python3 -c "x = bytearray(300_000_000); x[::4096] = b'1' * len(x[::4096]); import time; time.sleep(30)"`;

describe.skipIf(!CI && !slurmIsHere)("the ledger and a real Slurm with accounting", () => {
  let slurm: Cluster;
  let ledger = "";
  const submit = (name: string, words: readonly string[], ...lines: string[]) => {
    const script = join(slurm.home, `${name}.sbatch`);
    writeFileSync(script, `#!/bin/bash\n#SBATCH --output=/dev/null\n${lines.join("\n")}\n`);
    const { exit, out, err } = slurm.run(["sbatch", "--parsable", ...words, script]);
    expect([exit, err.includes("error")]).toEqual([0, false]);
    return out.trim();
  };
  beforeAll(() => {
    slurm = Cluster.start({ memory: true });
    ledger = join(slurm.home, "ledger");
    slurm.install({ binary: BINARY, ledger, annotate: true });
  }, 120_000);
  afterAll(() => slurm?.stop(), 60_000);

  test("what was submitted through the filter is found again, with its fate", async () => {
    const big = "#NEURARCH model=Qwen/Qwen3-8B batch=8";
    const small = "#NEURARCH model=Qwen/Qwen3-0.6B batch=1 lora-rank=8";
    const ids = {
      memory: submit("memory", ["--gres=gpu:a10g:1", "--mem=64M"], big, GREEDY),
      killed: submit("killed", ["--gres=gpu:a10g:1"], big, "exit 137"),
      failed: submit("failed", ["--gres=gpu:h100:1"], big, "exit 1"),
      done: submit("done", ["--gres=gpu:h100:8"], small, "exit 0"),
      array: submit("array", ["--gres=gpu:a10g:1", "--array=0-2"], big, '[ "$SLURM_ARRAY_TASK_ID" != 1 ]'),
    };
    const het = slurm.run([
      "sbatch",
      "--parsable",
      "--gres=gpu:a10g:1",
      "--output=/dev/null",
      ":",
      "--gres=gpu:h100:2",
      join(slurm.home, "killed.sbatch"),
    ]);
    expect(het.exit).toBe(0);
    expect(readdirSync(ledger).length).toBe(1);
    slurm.settle(60_000);
    const env = { SLURM_CONF: join(slurm.folder, "etc/slurm.conf"), PATH: process.env.PATH! };
    const reconciled = async (...words: string[]) => run(["ledger", "reconcile", ledger, ...words], { env });
    // The accounting lags behind the jobs' ends.
    type Row = {
      jobId: string | null;
      fate: string;
      verdict: string;
      match: string;
      tasks: number;
      overRequest: string;
    };
    let rows: Row[] = [];
    let document: {
      totals: { matched: number; notFound: number; byVerdict: { refused: { memory: number } } };
    };
    for (let tries = 0; ; tries += 1) {
      const { out, err, exit } = await reconciled("--json");
      expect([exit, err]).toEqual([0, ""]);
      document = JSON.parse(out);
      rows = JSON.parse(out).verdicts;
      if (tries > 60 || rows.every(({ fate, match }) => match === "job" && fate !== "open")) break;
      await Bun.sleep(500);
    }
    const of = (id: string) => rows.find(({ jobId }) => jobId === id);
    expect(of(ids.memory)).toMatchObject({ fate: "memory", verdict: "refused" });
    expect(of(ids.killed)).toMatchObject({ fate: "killed", verdict: "refused" });
    expect(of(ids.failed)).toMatchObject({ fate: "failed", verdict: "refused" });
    expect(of(ids.done)).toMatchObject({ fate: "done", verdict: "over-requested", overRequest: "not-said" });
    expect(of(ids.array)).toMatchObject({ fate: "failed", tasks: 3 });
    const leader = het.out.trim();
    // The script is the first component's; the second has none and ends with it.
    expect(of(`${leader}+0`)).toMatchObject({ match: "job", fate: "killed" });
    expect(of(`${leader}+1`)?.match).toBe("job");
    expect(document.totals).toMatchObject({ matched: 7, notFound: 0 });
    expect(document.totals.byVerdict.refused.memory).toBe(1);

    const human = await reconciled("--sacct");
    expect(human.out).toMatch(/7 matched to a job, 0 stopped before one, 0 without a job/);
    expect(human.out).toContain("A CUDA out-of-memory error cannot be seen");
    expect(human.out).toContain("1 not said");
    const csv = await reconciled("--csv");
    expect(csv.out.trim().split("\r\n").length).toBe(8);

    // The same from what sacct printed into a file, in another zone.
    const printed = slurm.run(
      [
        "sacct",
        "-a",
        "-D",
        "-P",
        "--format=JobID,Cluster,User,Submit,State,ExitCode,Comment,TRESUsageInTot,ReqTRES",
      ],
      { env: { TZ: "XYZ-2" } },
    );
    writeFileSync(join(slurm.home, "jobs.txt"), printed.out);
    const again = await reconciled(
      "--from",
      join(slurm.home, "jobs.txt"),
      "--utc-offset",
      "+02:00",
      "--json",
    );
    expect(JSON.parse(again.out).verdicts).toEqual(rows);
    const without = await reconciled("--from", join(slurm.home, "jobs.txt"), "--json");
    expect(JSON.parse(without.out).totals).toMatchObject({ matched: 0, notFound: 7 });
  }, 120_000);
});

test("without sacct, and with what is no accounting", async () => {
  const folder = join(import.meta.dir, "../fixtures/ledger");
  const gone = await run(["ledger", "reconcile", folder], { env: { PATH: "/nowhere" } });
  expect([gone.exit, gone.err.includes("sacct is not on PATH")]).toEqual([5, true]);
  const none = await run(["ledger", "reconcile", folder, "--from", "-"], { stdin: "hello\n" });
  expect([none.exit, none.err.includes("neither output of sacct")]).toEqual([4, true]);
  expect((await run(["ledger", "reconcile", folder, "--sky", "--sacct"])).exit).toBe(2);
  expect((await run(["ledger", "reconcile", folder, "--within", "x"])).exit).toBe(2);
});
