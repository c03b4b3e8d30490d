import { readNodes } from "./nodes.ts";
import { readAccelerator, skypilotRequest } from "./skypilot.ts";
import type { CardTable, GpuRequest } from "./types.ts";

/**
 * A request on plain flags: `--request H100:8 --nodes 2`, read as SkyPilot reads an accelerator, so that one way of
 * writing it works everywhere. What is no request at all comes back as one that cannot be judged, with the reason.
 */
export function plainRequest(text: string, nodes: string | null, table: CardTable): GpuRequest {
  const count = nodes === null ? { least: 1 } : readNodes(nodes);
  // Slurm takes 0 nodes for at least one; on plain flags it is a mistake.
  if (count === null || /^0+$/.test(nodes?.trim() ?? "")) {
    return unreadable(text, `--nodes is '${nodes}', not a number of nodes (--nodes 2).`);
  }
  if (text.trim() === "") return unreadable(text, "The request is empty, not a card and a count (H100:8).");
  const asked = readAccelerator(text.trim());
  if (typeof asked === "string") return unreadable(text, asked);
  if (asked.name === "") return unreadable(text, `The request '${text}' names no card (H100:8).`);
  return skypilotRequest(
    {
      candidates: [{ accelerator: asked, instanceType: null, fromMemory: false }],
      choice: "one",
      numNodes: count.least,
    },
    table,
  );
}

function unreadable(text: string, message: string): GpuRequest {
  const candidate = { accelerator: text, count: null, nodes: null, label: text };
  return { candidates: [{ ...candidate, reason: "unreadable-request", message }], choice: "one", notes: [] };
}
