import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { buildCardTable } from "../../src/request/cards.ts";
import { readGres } from "../../src/request/gres.ts";
import { type SlurmSite, slurmRequest } from "../../src/request/slurm.ts";
import { countGpus } from "../../src/request/slurm-counts.ts";
import { type GpuRequest, isJudged } from "../../src/request/types.ts";

const table = buildCardTable();

/** `label = card` of a judged request, `label ! reason` of one that is not, `none` where no GPU is asked for. */
function told(request: GpuRequest): string {
  const [candidate] = request.candidates;
  if (candidate === undefined) return "none";
  return `${candidate.label} ${isJudged(candidate) ? `= ${candidate.card.id}` : `! ${candidate.reason}`}`;
}

/** `--gres=gpu:2 -N 2` as options: `gres=gpu:2 nodes=2`. */
function options(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(" ").map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]),
  );
}

const UNTYPED: [string, string][] = [
  // The grammar of one list.
  ["gres=gpu", "gpu:1"],
  ["gres=gpu:8", "gpu:8"],
  ["gres=gpu=8", "gpu:8"],
  ["gres=gres:gpu:2", "gpu:2"],
  ["gres=gres/gpu:2", "gpu:2"],
  ["gres=gres/gres:gpu:2", "gpu:2"],
  ["gres=gres/gpu=2", "gpu:2"],
  ["gres=gpu:8(S:0-3)", "gpu:8"],
  ["gres=gpu(S:0)", "gpu:1"],
  ["gres=gpu:2(IDX:0-1)", "gpu:2"],
  ["gres=gpu:2(IDX:0,1),lscratch:50G", "gpu:2"],
  ["gres=gpu:1K", "gpu:1024"],
  ["gres=GPU:2", "gpu:2"],
  ["gres=gpu:1,gpu:3", "gpu:3"],
  ["gpus=1", "gpu:1"],
  ["gpus=8", "gpu:8"],
  ["tres-per-task=cpu=2,gres/gpu=1 ntasks=4", "gpu:4"],
  ["tres-per-task=cpu:2,gres:gpu:1,license/x=3 ntasks=4", "gpu:4"],
  ["tres-per-node=gres/gpu=4 nodes=2", "gpu:4 x 2 nodes"],
  // Scales.
  ["gpus=8 nodes=2", "gpu:4 x 2 nodes"],
  ["gpus=5 nodes=2", "gpu:5 over 2 nodes"],
  ["gpus=8 nodes=2-4", "gpu:4 x 2 nodes"],
  ["gpus-per-node=4", "gpu:4"],
  ["gpus-per-node=4 nodes=2-6", "gpu:4 x 2 nodes"],
  ["gpus-per-node=4 nodes=2-", "gpu:4 x 2 nodes"],
  ["gpus-per-node=4 nodes=2,4,8", "gpu:4 x 2 nodes"],
  ["gpus-per-node=1 nodes=1k", "gpu:1 x 1024 nodes"],
  ["gpus-per-node=4 nodes=0", "gpu:4"],
  ["gpus-per-task=2 ntasks=8", "gpu:16"],
  ["gpus-per-task=2 ntasks=8 nodes=2", "gpu:8 x 2 nodes"],
  ["gpus-per-task=2 ntasks=3 nodes=2", "gpu:3 x 2 nodes"],
  ["gpus-per-task=1 ntasks=3 nodes=2", "gpu:3 over 2 nodes"],
  ["gpus-per-task=2 nodes=2", "gpu:2 x 2 nodes"],
  ["gpus-per-task=1 ntasks-per-node=4", "gpu:4"],
  ["gpus-per-task=1 ntasks-per-node=4 nodes=2", "gpu:4 x 2 nodes"],
  ["gpus-per-task=4 gpus=8", "gpu:8"],
  ["gpus-per-task=2 gres=gpu:4 ntasks=4", "gpu:4 x 2 nodes"],
  ["gpus-per-task=1 nodelist=h[1-2] sockets-per-node=2", "gpu:2 x 2 nodes"],
  ["gpus-per-socket=2 sockets-per-node=2", "gpu:4"],
  ["gpus-per-socket=2 sockets-per-node=2 nodes=2", "gpu:4 x 2 nodes"],
  ["gpus-per-socket=2 extra-node-info=2:8:1", "gpu:4"],
  ["gpus-per-socket=1 ntasks=8 ntasks-per-socket=4", "gpu:2"],
  ["gpus=8 gpus-per-node=4", "gpu:4 x 2 nodes"],
  ["gpus=8 gres=gpu:2", "gpu:2 x 4 nodes"],
  ["gres=gpu:4 gpus-per-node=8", "gpu:4"],
  ["gres=gpu:4 ntasks=8 ntasks-per-node=4", "gpu:4 x 2 nodes"],
  ["gres=gpu:4 ntasks=8", "gpu:4"],
  ["gres=gpu:4 nodes=4 ntasks=2", "gpu:4 x 2 nodes"],
  ["gres=gpu:4 nodes=2 ntasks=1", "gpu:4"],
  ["gres=gpu:+2", "gpu:2"],
  ["gres=gpu:4 nodelist=n1,n[3-5,7]", "gpu:4 x 5 nodes"],
  ["gres=gpu:4 nodelist=n1,n2 nodes=3", "gpu:4 x 3 nodes"],
  ["ntasks-per-gpu=2 ntasks=4", "gpu:2"],
  ["ntasks-per-gpu=2 nodes=2", "gpu:1 x 2 nodes"],
  ["ntasks-per-gpu=2 gpus=4", "gpu:4"],
  ["ntasks-per-gpu=2 gres=gpu:4", "gpu:4"],
  ["ntasks-per-tres=2 ntasks=4", "gpu:2"],
];

describe("untyped requests are counted and, without a type of the site, not judged", () => {
  for (const [text, label] of UNTYPED) {
    test(text, () => expect(told(slurmRequest(options(text), table))).toBe(`${label} ! untyped-gpu`));
  }
});

const TYPED: [string, string][] = [
  ["gres=gpu:a10g:1", "a10g:1 = A10G"],
  ["gres=gpu:A10G:1", "A10G:1 = A10G"],
  ["gres=gpu:a100", "a100:1 = A100-40"],
  ["gres=gpu:a100=2", "a100:2 = A100-40"],
  ["gpus=a100", "a100:1 = A100-40"],
  ["gpus=h100:8", "h100:8 = H100"],
  ["gpus=h100=8", "h100:8 = H100"],
  ["gpus-per-node=h100:4 nodes=2", "h100:4 x 2 nodes = H100"],
  ["gres=gpu:H100:8", "H100:8 = H100"],
  ["gres=gpu:h100:8", "h100:8 = H100"],
  ["gres=gpu:a100:4(S:0,2)", "a100:4 = A100-40"],
  ["gres=gpu:v100:4", "v100:4 = V100-16"],
  ["gres=tmpfs:100G,gpu:a100:2,lscratch:50G", "a100:2 = A100-40"],
  ["gres=gres:gpu:a100_3g.20gb:1,gres:shard:0", "a100_3g.20gb:1 = A100-40-3g.20gb"],
  ["gres=gres/gpu:a100=1,gres/gpu=1", "a100:1 = A100-40"],
  ["gres=gpu:2,gpu:a100:2", "a100:2 = A100-40"],
  ["gres=gpu:h100:1,gpu:h100:2", "h100:2 = H100"],
  ["gres=gpu:h100:1,gpu:H100-80GB:1", "h100:2 = H100"],
  ["gres=gpu:h100:0,gpu:a100:2", "a100:2 = A100-40"],
  ["gres=gpu:nvidia_h100_80gb_hbm3_4g.40gb:2", "nvidia_h100_80gb_hbm3_4g.40gb:2 = H100-4g.40gb"],
  ["gres=gpu:nvidia_a100_1g.5gb:1", "nvidia_a100_1g.5gb:1 = A100-40-1g.5gb"],
  ["gres=gpu:1g.10gb+me", "1g.10gb+me:1 = MIG-1g.10gb"],
  ["gpus=h100:8 gres=gpu:h100:4", "h100:4 x 2 nodes = H100"],
  ["gpus=8 gpus-per-node=h100:4", "h100:4 x 2 nodes = H100"],
  ["gres=gpu:h100:4 gpus-per-node=h100:8", "h100:4 = H100"],
  ["tres-per-task=gres/gpu:h100:1 ntasks=4", "h100:4 = H100"],
  ["tres-per-task=gres/gpu:h100=2 gpus-per-task=h100:1 ntasks=4", "h100:8 = H100"],
  ["gpus-per-task=h100:2 ntasks=8", "h100:16 = H100"],
  ["gpus-per-socket=a10g:1 sockets-per-node=2", "a10g:2 = A10G"],
  ["gpus=h100:5 nodes=2", "h100:5 over 2 nodes = H100"],
  ["gres=none gpus=l4:1", "l4:1 = L4"],
  ["gres=gpu:mi250x:8", "mi250x:8 = MI250X"],
  ["gres=gpu:a100:2,shard:2", "a100:2 = A100-40"],
];

describe("typed requests", () => {
  for (const [text, expected] of TYPED) {
    test(text, () => expect(told(slurmRequest(options(text), table))).toBe(expected));
  }
});

const UNJUDGED: [string, string][] = [
  ["gres=shard:1", "shard:1 ! shared-gpu"],
  ["gres=gres:shard:a10g:4", "shard:a10g:4 ! shared-gpu"],
  ["gres=mps:50", "mps:50 ! shared-gpu"],
  ["gres=gpu:0,shard:2", "shard:2 ! shared-gpu"],
  ["gpus-per-task=volta:3,kepler:1 ntasks=4", "volta:12 + kepler:4 ! mixed-cards"],
  ["gpus-per-task=volta:3,kepler:1", "volta:3 + kepler:1 per task ! task-count-unknown"],
  ["gres=gpu:h100:1,gpu:a100:2", "h100:1 + a100:2 ! mixed-cards"],
  ["gres=gpu:a100_3g.20gb:1,gpu:a100_1g.5gb:2", "a100_3g.20gb:1 + a100_1g.5gb:2 ! mixed-cards"],
  ["gpus-per-task=2", "gpu:2 per task ! task-count-unknown"],
  ["gpus-per-task=2 nodes=1-2", "gpu:2 per task ! task-count-unknown"],
  ["gpus-per-task=2 nodes=2 cpus-per-task=4", "gpu:2 per task ! task-count-unknown"],
  ["ntasks-per-gpu=2", "gpu ! task-count-unknown"],
  ["ntasks-per-gpu=2 ntasks=5", "gpu ! unreadable-request"],
  ["gpus-per-socket=2", "gpu:2 per socket ! unreadable-request"],
  ["gres=gpu:rtx_6000:4(S:0-1)", "rtx_6000:4 ! card-unknown"],
  ["gres=gpu:k2000:2", "k2000:2 ! card-unknown"],
  ["gpus=gpu:2", "gpu:2 ! card-unknown"],
  ["gres=gpu:$TYPE:2", "$TYPE:2 ! unresolved-variable"],
  ["gres=gpu:0.5", "--gres=gpu:0.5 ! fractional"],
  ["gpus=a10g:0.5", "--gpus=a10g:0.5 ! fractional"],
  ["gres=gpu:", "--gres=gpu: ! unreadable-request"],
  ["gres=gpu:a100:", "--gres=gpu:a100: ! unreadable-request"],
  ["gres=gpu:a100:eight", "--gres=gpu:a100:eight ! unreadable-request"],
  ["gres=gpu:a100:1:2", "--gres=gpu:a100:1:2 ! unreadable-request"],
  ["gres=gpu:2:a100", "--gres=gpu:2:a100 ! unreadable-request"],
  ["gres=gpu=a100", "--gres=gpu=a100 ! unreadable-request"],
  ["gres=gpu:-1", "--gres=gpu:-1 ! unreadable-request"],
  ["gres=gpu:99999999999999999999", "--gres=gpu:99999999999999999999 ! unreadable-request"],
  ["gres=gpu:a100:9G", "--gres=gpu:a100:9G ! unreadable-request"],
  ["gres=gpu:2 nodes=two", "--nodes=two ! unreadable-request"],
  ["gres=gpu:2 nodes=4-2", "--nodes=4-2 ! unreadable-request"],
  ["gpus-per-task=1 ntasks=many", "--ntasks=many ! unreadable-request"],
];

describe("requests that are there and cannot be judged", () => {
  for (const [text, expected] of UNJUDGED) {
    test(text, () => expect(told(slurmRequest(options(text), table))).toBe(expected));
  }
});

const NO_GPU: string[] = [
  "nodes=2 ntasks=8",
  "constraint=h100 exclusive=exclusive",
  "gres=none",
  "gres=tmpfs:100G,nic:1",
  "gres=gpu:0",
  "gpus=0",
  "gpus-per-node=a100:0",
  "gres=gpumem:4G",
  "tres-per-task=cpu=4",
  "nodes=nonsense",
  "gres= gpus= gpus-per-node=",
  "gres=unset gpus=invalid-context ntasks-per-gpu=-2 nodes=1-0 sockets-per-node=-2",
  "ntasks-per-gpu=4294967294 ntasks=1",
];

describe("no GPU is asked for", () => {
  for (const text of NO_GPU)
    test(text, () => expect(slurmRequest(options(text), table).candidates).toEqual([]));
});

describe("the marks of options that were not given", () => {
  const ROWS: [string, string][] = [
    [
      "gres=gres:gpu:a10g:1 nodes=1-0 ntasks=1 ntasks-per-node=-2 ntasks-per-gpu=-2 cpus-per-task=0 exclusive=unset",
      "a10g:1 = A10G",
    ],
    ["gpus=invalid-context gres=gres/gpu:h100:2 gpus-per-task=unset tres-per-task=(null)", "h100:2 = H100"],
    ["gpus-per-task=h100:2 nodes=2 ntasks-per-node=-2", "h100:2 x 2 nodes = H100"],
  ];
  for (const [text, expected] of ROWS)
    test(text, () => expect(told(slurmRequest(options(text), table))).toBe(expected));
});

describe("what the site says of untyped requests", () => {
  const site: SlurmSite = {
    defaultGpuType: "L4",
    partitionMap: { mi300: "MI300A", big: "h100", huge: "h100" },
  };
  const ROWS: [string, SlurmSite, string][] = [
    ["gres=gpu:4 partition=mi300", { partitionMap: { mi300: "MI300A" } }, "MI300A:4 = MI300A"],
    ["gres=gpu:4 partition=other", { partitionMap: { mi300: "MI300A" } }, "gpu:4 ! untyped-gpu"],
    ["gres=gpu:4", site, "L4:4 = L4"],
    ["gres=gpu:4 partition=other", site, "L4:4 = L4"],
    ["gres=gpu:4 partition=big", site, "h100:4 = H100"],
    ["gres=gpu:4 partition=big,huge", site, "h100:4 = H100"],
    ["gres=gpu:4 partition=big,mi300", { ...site, defaultGpuType: null }, "gpu:4 ! untyped-gpu"],
    ["gres=gpu:a100:4 partition=mi300", site, "a100:4 = A100-40"],
    ["gpus=8 nodes=2 partition=big", site, "h100:4 x 2 nodes = H100"],
    ["gres=gpu:1", { defaultGpuType: "k2000" }, "k2000:1 ! card-unknown"],
    ["gres=gpu:1 partition=toString", { partitionMap: {} }, "gpu:1 ! untyped-gpu"],
  ];
  for (const [text, where, expected] of ROWS) {
    test(`${text} ${JSON.stringify(where)}`, () =>
      expect(told(slurmRequest(options(text), table, where))).toBe(expected));
  }
});

describe("with a GPU map", () => {
  const mapped = buildCardTable({ gpuMap: { a100: "A100-80", Pascal: "P100" } });
  const ROWS: [string, string][] = [
    ["gres=gpu:a100:2", "a100:2 = A100-80"],
    ["gres=gpu:A100:2", "A100:2 = A100-80"],
    ["gres=gpu:pascal:2", "pascal:2 = P100"],
    ["gres=gpu:h100:2", "h100:2 ! card-unknown"],
    ["gres=gpu:a100_3g.20gb:1", "a100_3g.20gb:1 ! card-unknown"],
  ];
  for (const [text, expected] of ROWS)
    test(text, () => expect(told(slurmRequest(options(text), mapped))).toBe(expected));
  test("a default type may name the card itself", () =>
    expect(told(slurmRequest(options("gres=gpu:2"), mapped, { defaultGpuType: "A100-80" }))).toBe(
      "A100-80:2 = A100-80",
    ));
});

describe("notes", () => {
  test("--exclusive keeps the request and says that the node may come whole", () => {
    const request = slurmRequest(options("gres=gpu:a100:1 exclusive=exclusive"), table);
    expect(told(request)).toBe("a100:1 = A100-40");
    expect(request.wholeNode).toBe(true);
    expect(request.notes).toEqual(["--exclusive may grant the whole node; the request is judged on a100:1."]);
  });
  const WHOLE: [string, true | undefined][] = [
    ["", true],
    ["exclusive", true],
    ["allocation", true],
    ["set", true],
    ["user", undefined],
    ["mcs", undefined],
    ["topo", undefined],
    ["unset", undefined],
    ["invalid-context", undefined],
  ];
  for (const [value, whole] of WHOLE) {
    test(`--exclusive=${value}`, () =>
      expect(slurmRequest({ gres: "gpu:a100:1", exclusive: value }, table).wholeNode).toBe(whole as true));
  }
  test("fewer tasks than nodes lower the nodes", () =>
    expect(slurmRequest(options("gres=gpu:a100:1 nodes=4 ntasks=2"), table).notes).toEqual([
      "2 tasks cannot use 4 nodes: Slurm lowers --nodes to 2.",
    ]));
  test("GPUs per socket are told to depend on the tasks, unless a node's count or tasks per socket settle it", () => {
    const notes = (text: string) => slurmRequest(options(text), table).notes.length;
    expect(notes("gpus-per-socket=a100:2 sockets-per-node=2")).toBe(1);
    expect(notes("gpus-per-socket=a100:2 sockets-per-node=2 gpus=a100:4")).toBe(1);
    expect(notes("gpus-per-socket=a100:2 sockets-per-node=2 gpus-per-node=a100:4")).toBe(0);
    expect(notes("gpus-per-socket=a100:2 sockets-per-node=2 ntasks-per-socket=1 ntasks=2")).toBe(0);
  });
  test("shares beside whole GPUs are told", () =>
    expect(slurmRequest(options("gres=gpu:a100:1,shard:2"), table).notes).toEqual([
      "shard shares beside whole GPUs are not counted.",
    ]));
  test("a near name is offered", () => {
    const [candidate] = slurmRequest(options("gres=gpu:h10:2"), table).candidates;
    expect(candidate).toMatchObject({
      message: "No capacity is on file for 'h10'. Did you mean H100:2?",
    });
  });
  test("an ambiguous name says what it may be", () => {
    const [candidate] = slurmRequest(options("gres=gpu:rtx_6000:1"), table).candidates;
    expect(candidate).toMatchObject({ message: expect.stringContaining("RTX 6000 Ada (48 GB)") });
  });
});

test("a site that says what a share is has shares judged as one piece", () => {
  const shares = buildCardTable({ cards: { shard: 2.5 } });
  const [candidate] = slurmRequest(options("gres=shard:4"), shares).candidates;
  expect(candidate).toMatchObject({
    accelerator: "shard",
    count: 1,
    label: "shard:4",
    card: { gb: 10, slice: true },
  });
});

test("MIG slices are slices", () => {
  const [candidate] = slurmRequest(options("gres=gpu:a100_3g.20gb:2"), table).candidates;
  expect(candidate).toMatchObject({ count: 2, card: { gb: 20, slice: true, vendor: "cuda" } });
});

describe("properties", () => {
  const anything = fc.dictionary(
    fc.constantFrom(
      "gres",
      "gpus",
      "gpus-per-node",
      "gpus-per-task",
      "gpus-per-socket",
      "tres-per-task",
      "nodes",
      "ntasks",
      "ntasks-per-node",
      "ntasks-per-gpu",
      "sockets-per-node",
      "nodelist",
      "partition",
      "exclusive",
      "extra-node-info",
    ),
    fc.oneof(
      fc.string({ unit: "binary" }),
      fc.stringMatching(/^[gpu:=,a1()[\]0-9./-]{0,20}$/),
      fc.constantFrom("2", "gpu:2", "gpu:h100:2", "h100:4", "1-2"),
    ),
  );
  test("reading never throws, and what it says is one clean line", () => {
    fc.assert(
      fc.property(anything, (asked) => {
        const request = slurmRequest(asked, table, { partitionMap: {}, defaultGpuType: "T4" });
        const lines = request.candidates.flatMap((one) => [one.label, isJudged(one) ? "" : one.message]);
        return [...lines, ...request.notes].every((line) => !/\p{Cc}/u.test(line) && line.length < 1000);
      }),
      { numRuns: 300 },
    );
  });
  test("the order of the options does not matter", () => {
    fc.assert(
      fc.property(anything, (asked) => {
        const turned = Object.fromEntries(Object.entries(asked).reverse());
        expect(slurmRequest(turned, table)).toEqual(slurmRequest(asked, table));
      }),
    );
  });
  test("per node x nodes", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 64 }),
        fc.integer({ min: 1, max: 64 }),
        fc.integer({ min: 0, max: 9 }),
        (each, nodes, more) => {
          const asked = { "gpus-per-node": `h100:${each}`, nodes: `${nodes}-${nodes + more}` };
          expect(slurmRequest(asked, table).candidates).toMatchObject([{ count: each, nodes }]);
          expect(
            slurmRequest({ gres: `gpu:h100:${each}`, nodes: String(nodes) }, table).candidates,
          ).toMatchObject([{ count: each, nodes }]);
        },
      ),
    );
  });
  test("a total is neither lost nor multiplied by the nodes", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 512 }), fc.integer({ min: 1, max: 64 }), (total, nodes) => {
        const [candidate] = slurmRequest({ gpus: `h100:${total}`, nodes: String(nodes) }, table).candidates;
        expect(candidate!.count! * candidate!.nodes!).toBe(total);
      }),
    );
  });
  test("every spelling of one entry reads alike", () => {
    const type = fc.stringMatching(/^[a-z][a-z0-9_.]{0,12}$/).filter((word) => !/^(?:none|\d.*)$/.test(word));
    fc.assert(
      fc.property(
        type,
        fc.integer({ min: 1, max: 99 }),
        fc.constantFrom("", "gres:", "gres/"),
        fc.constantFrom(":", "="),
        fc.constantFrom("", "(S:0-1)", "(S:0,2)", "(IDX:0-3)"),
        (name, count, prefix, mark, bracket) => {
          const list = readGres(`nic:1,${prefix}gpu:${name}${mark}${count}${bracket},tmp:5G`, "gres");
          expect(list).toEqual({ gpus: [{ type: name, count }], shares: [], unreadable: [] });
        },
      ),
    );
  });
  test("a long list takes no long time", () => {
    countGpus({
      gres: "gpu:a100:1,".repeat(200_000),
      nodelist: "n[1-5],".repeat(200_000),
      gpus: "(".repeat(1_000_000),
    });
  });
});
