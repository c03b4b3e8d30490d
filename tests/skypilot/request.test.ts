import { describe, expect, test } from "bun:test";
import { buildCardTable } from "../../src/request/cards.ts";
import { readAccelerator, skypilotRequest } from "../../src/request/skypilot.ts";
import type { GpuRequest } from "../../src/request/types.ts";
import { readRequestTask, readTasks } from "../../src/skypilot/task.ts";
import { normalForms } from "./documents.ts";

const table = buildCardTable();

function requestOf(resources: string, nodes = 1): GpuRequest {
  const read = readTasks(`resources: ${resources}\nnum_nodes: ${nodes}\n`);
  if (!read.ok) throw new Error(read.error.message);
  return skypilotRequest(read.value.tasks[0]!, table);
}

/** `H100:8 x 2 nodes=H100/80`, or `8xH100!card-unknown`; `+` behind a memory form. */
function short(request: GpuRequest): string {
  const words = request.candidates.map((one) =>
    "card" in one ? `${one.label}=${one.card.gb}${one.memoryForm ? "+" : ""}` : `${one.label}!${one.reason}`,
  );
  return `${request.choice}: ${words.join(", ")}`;
}

describe("resources as GPU requests", () => {
  const rows: readonly (readonly [resources: string, nodes: number, request: string])[] = [
    ["{accelerators: A10G:1}", 1, "one: A10G:1=24"],
    ["{accelerators: H100:8}", 2, "one: H100:8 x 2 nodes=80"],
    ["{accelerators: h100}", 1, "one: h100:1=80"],
    ["{accelerators: H100:1.0}", 1, "one: H100:1=80"],
    ["{gpus: {A100-80GB: 4}}", 1, "one: A100-80GB:4=80"],
    ["{accelerators: [A100:1, V100:1]}", 1, "ordered: A100:1=40, V100:1=16"],
    ["{accelerators: {A100:1, 'T4:4'}}", 1, "any-of: A100:1=40, T4:4=16"],
    ["{accelerators: {A100: 1, T4: 2}}", 3, "any-of: A100:1 x 3 nodes=40, T4:2 x 3 nodes=16"],
    ["{any_of: [{accelerators: A100}, {accelerators: T4}]}", 1, "any-of: A100:1=40, T4:1=16"],
    ["{ordered: [{accelerators: A100}, {accelerators: T4}]}", 1, "ordered: A100:1=40, T4:1=16"],
    ["{any_of: [{accelerators: A100}]}", 1, "one: A100:1=40"],
    ["{accelerators: 80GB+}", 1, "open: 80GB+:1=80+"],
    ["{accelerators: 80GB:8}", 1, "open: 80GB:8=80+"],
    ["{accelerators: 'NVIDIA:40GB+:2'}", 1, "open: NVIDIA:40GB+:2=40+"],
    ["{accelerators: 'NVIDIA:80GB'}", 1, "open: NVIDIA:80GB:1=80+"],
    ["{accelerators: 1TB}", 1, "open: 1TB:1=1024+"],
    ["{accelerators: [T4:4, 80GB+]}", 1, "ordered: T4:4=16, 80GB+:1=80+"],
    ["{accelerators: A10G:0.5}", 1, "one: A10G:0.5!fractional"],
    ["{accelerators: 'A100:inf'}", 1, "one: A100:Infinity!unreadable-request"],
    ["{accelerators: 8xH100}", 1, "one: 8xH100:1!card-unknown"],
    ["{accelerators: $G}", 1, "one: $G:1!unresolved-variable"],
    ["{accelerators: tpu-v5e-8}", 1, "one: tpu-v5e-8:1!not-a-gpu"],
    ["{accelerators: Trainium:16}", 1, "one: Trainium:16!not-a-gpu"],
    ["{instance_type: gpu_8x_a100}", 2, "one: gpu_8x_a100 x 2 nodes!instance-type"],
    ["{instance_type: x, accelerators: T4}", 1, "one: T4:1=16"],
    ["{cpus: 8}", 1, "one: "],
    ["{any_of: [{cpus: 8}, {accelerators: T4}]}", 1, "one: T4:1=16"],
  ];
  for (const [resources, nodes, request] of rows) {
    test(`${resources} x ${nodes}`, () => expect(short(requestOf(resources, nodes))).toBe(request));
  }

  test("a candidate without accelerators keeps the places of the others", () => {
    const { candidates } = requestOf("{any_of: [{cpus: 8}, {accelerators: T4}]}");
    expect(candidates.map(({ written }) => written)).toEqual([1]);
    expect(requestOf("{accelerators: [T4, L4]}").candidates.map(({ written }) => written)).toEqual([
      undefined,
      undefined,
    ]);
  });

  test("SkyPilot's expansion of a memory size is open, whatever it holds", () => {
    for (const name of ["memory-at-least", "memory-count", "memory-manufacturer", "memory-labelled"]) {
      const form = normalForms[name]!;
      if ("error" in form) throw new Error(form.error);
      const read = readRequestTask(form.tasks[0]!.text);
      if (!read.ok) throw new Error(read.error.message);
      const request = skypilotRequest(read.value, table);
      expect(request.choice).toBe("open");
      expect(request.candidates.length).toBeGreaterThan(1);
      for (const one of request.candidates) if ("card" in one) expect(one.memoryForm).toBe(true);
    }
  });
});

describe("what is told of a request that is not judged", () => {
  const rows: readonly (readonly [resources: string, message: string | RegExp])[] = [
    ["{accelerators: 8xH100}", "No capacity is on file for '8xH100'. Did you mean H100:8?"],
    ["{accelerators: {8xH100: 2}}", "No capacity is on file for '8xH100'. Did you mean H100:16?"],
    ["{accelerators: H100x8}", "No capacity is on file for 'H100x8'. Did you mean H100:8?"],
    ["{accelerators: A10GG:2}", /^No capacity is on file for 'A10GG'\. Did you mean A10G?:2\?$/],
    ["{accelerators: $G}", "No variable is filled in where cards are asked for, so '$G' stays as written."],
    ["{accelerators: A10G:0.5}", "A10G:0.5 asks for a part of a card, and what a part holds is not known."],
    ["{accelerators: RTX-6000}", /^'RTX-6000' may be the Quadro RTX 6000 \(24 GB\), .*\.$/],
  ];
  for (const [resources, message] of rows) {
    test(resources, () => {
      const [one] = requestOf(resources).candidates;
      if (one === undefined || "card" in one) throw new Error("it was judged");
      if (typeof message === "string") expect(one.message).toBe(message);
      else expect(one.message).toMatch(message);
    });
  }
});

test("strings that SkyPilot refuses as accelerators", () => {
  const rows = [
    "A100:0",
    "A100:-1",
    "A100:x",
    "A100:",
    "H100:8:2",
    "80GB:x",
    "80GB:2.0",
    "80000MB",
    "NVIDIA:80GB:0",
  ];
  for (const row of rows) expect(typeof readAccelerator(row)).toBe("string");
});
