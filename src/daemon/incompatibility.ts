import type { ClusterFound } from "../bridge/evidence/views.ts";
import type { Campaign } from "../bridge/types.ts";
import type { SkyProblem } from "./types.ts";

/** What of an existing cluster is not what the campaign needs; null where all that sky says fits. */
export function incompatibility(
  campaign: Campaign,
  clusterName: string,
  view: ClusterFound,
): SkyProblem | null {
  const { resources } = campaign;
  const has = view.resources;
  if (has === null) return null;
  const wanted = `${resources.acceleratorType}:${resources.acceleratorsPerNode}`;
  const infra = resources.infra.toLowerCase().split("/").slice(0, 2).join("/");
  const wrong =
    has.accelerators !== null && has.accelerators.toLowerCase() !== wanted.toLowerCase()
      ? `has ${has.accelerators}, not ${wanted}`
      : has.nodes !== null && has.nodes !== resources.nodes
        ? `has ${has.nodes} nodes, not ${resources.nodes}`
        : has.infra !== null && !sameInfra(has.infra.toLowerCase(), infra)
          ? `is on ${has.infra}, not on ${resources.infra}`
          : null;
  if (wrong === null) return null;
  return {
    kind: "refused",
    error: "SkyPilotClusterIncompatible",
    message: `the existing cluster ${clusterName} ${wrong}; release it, or name another run`,
  };
}

function sameInfra(has: string, wanted: string): boolean {
  return has === wanted || wanted.startsWith(`${has}/`) || has.startsWith(`${wanted}/`);
}
