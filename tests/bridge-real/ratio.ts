/**
 * How long an evaluation on an allocation that is there takes, against `sky exec` and `sky logs` by hand on the same
 * one, in turns: bun tests/bridge-real/ratio.ts [TIMES]. A figure to look at, no test.
 */
import { Campaign, GPU } from "./campaign.ts";
import { missing, Rig } from "./rig.ts";

const absent = missing();
if (absent !== null) throw new Error(absent);
const times = Number(process.argv[2] ?? 5);
const rig = await Rig.start();
try {
  const campaign = new Campaign(rig, GPU);
  await campaign.serve();
  await campaign.benchmark();
  const task = {
    resources: { infra: "slurm/lab/gpu", accelerators: "A10G:4", cpus: 4, memory: 4 },
    workdir: "/mnt/gpu/workspace",
    run: "sh bench.sh --output-json /tmp/by-hand.json",
  };
  await Bun.write(`${rig.folder}/task.json`, JSON.stringify(task));
  const name = campaign.last.allocation!.clusterName;
  const byHand = async () => {
    const started = performance.now();
    const said = await rig.ask("sky", "exec", "-d", name, "/mnt/task.json");
    const id = /Job submitted, ID: (\d+)/.exec(said)?.[1] ?? "";
    await rig.ask("sky", "logs", name, id, "--tail", "0");
    return performance.now() - started;
  };
  const hand: number[] = [];
  const ours: number[] = [];
  for (let turn = 0; turn < times; turn++) {
    hand.push(await byHand());
    ours.push((await campaign.benchmark()).ms);
  }
  const median = (all: readonly number[]) => [...all].sort((a, b) => a - b)[all.length >> 1]! / 1000;
  const shown = (all: readonly number[]) => all.map((ms) => (ms / 1000).toFixed(1)).join(", ");
  console.log(`by hand ${median(hand).toFixed(1)} s (${shown(hand)})`);
  console.log(`evaluate ${median(ours).toFixed(1)} s (${shown(ours)})`);
  console.log(`ratio of the medians ${(median(ours) / median(hand)).toFixed(2)}`);
  await campaign.end();
} finally {
  await rig.stop();
}
