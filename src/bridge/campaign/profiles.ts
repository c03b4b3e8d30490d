import { GateError } from "../../lib/errors.ts";
import { nearest } from "../../lib/nearest.ts";
import type { PortableRequest, Profile, ResolvedResources } from "../types.ts";
import { CLUSTERS, RESOURCES } from "./schemas.ts";
import { type FileText, readToml } from "./toml.ts";

/** Variables that a path on the cluster may name. */
export interface Names {
  readonly USER?: string | undefined;
  readonly HOME?: string | undefined;
}

/** Reads the operator's profiles, in the file's order. Throws `GateError("settings-invalid")`. */
export function readClusters(file: FileText, names: Names): readonly Profile[] {
  const { profiles } = readToml(CLUSTERS, file, "settings-invalid");
  return Object.entries(profiles).map(([name, raw]) => ({
    name,
    infra: raw.infra.trim(),
    acceleratorBackend: raw.accelerator_backend,
    acceleratorType: raw.accelerator_type.trim(),
    acceleratorsPerNode: raw.accelerators_per_node,
    cpusPerNode: raw.cpus_per_node ?? null,
    memoryGbPerNode: raw.memory_gb_per_node ?? null,
    maxNodes: raw.max_nodes ?? 1,
    exclusive: raw.exclusive ?? true,
    remoteRuntimeImage: raw.remote_runtime_image?.trim() ?? null,
    commandPrefix: raw.command_prefix ?? null,
    allocationTime: raw.allocation_time ?? null,
    remoteArtifactRoot:
      raw.remote_artifact_root === undefined
        ? null
        : artifactRoot(
            raw.remote_artifact_root.trim(),
            names,
            `\`profiles.${name}.remote_artifact_root\` in ${file.path}`,
          ),
    ...(raw.remote_artifact_root === undefined
      ? {}
      : { remoteArtifactRootWritten: raw.remote_artifact_root.trim() }),
  }));
}

/** Expands `$USER` and `$HOME` (also in braces); the path must then be absolute and plain. */
function artifactRoot(path: string, names: Names, where: string): string {
  const expanded = path.replace(/\$(?:\{(\w*)\}|(\w+))/g, (written, braced?: string, plain?: string) => {
    const name = braced ?? plain ?? "";
    if (name !== "USER" && name !== "HOME")
      throw new GateError(
        "settings-invalid",
        `${where} names ${written}, and only $USER and $HOME are expanded`,
        "Write the path itself.",
      );
    const value = names[name];
    if (value === undefined || value === "")
      throw new GateError(
        "settings-invalid",
        `${where} names ${written}, which the environment does not set`,
        `Set ${name}, or write the path itself.`,
      );
    return value;
  });
  const parts = expanded.split("/").slice(1);
  if (
    !expanded.startsWith("/") ||
    parts.some((part) => part === "." || part === "..") ||
    expanded.includes("$")
  )
    throw new GateError(
      "settings-invalid",
      `${where} is not an absolute path without . and .. parts`,
      "Write it from / on, for example /scratch/$USER/vibesys.",
    );
  return expanded;
}

/** Reads an experiment's request. Throws `GateError("input-invalid")`. */
export function readResources(file: FileText): PortableRequest {
  return portableOf(readToml(RESOURCES, file, "input-invalid").resources);
}

/** A `[resources]` table as read, with its defaults. */
export function portableOf(raw: {
  readonly nodes?: number | undefined;
  readonly accelerators_per_node: number;
  readonly accelerator_backend: PortableRequest["acceleratorBackend"];
  readonly cpus_per_node?: number | null | undefined;
}): PortableRequest {
  return {
    nodes: raw.nodes ?? 1,
    acceleratorsPerNode: raw.accelerators_per_node,
    acceleratorBackend: raw.accelerator_backend,
    cpusPerNode: raw.cpus_per_node ?? null,
  };
}

/** The profile of a name. Throws `GateError("input-invalid")` listing the ones there are. */
export function profileNamed(profiles: readonly Profile[], name: string, clustersPath: string): Profile {
  const found = profiles.find((profile) => profile.name === name);
  if (found !== undefined) return found;
  const names = profiles.map((profile) => profile.name);
  const near = nearest(name, names);
  throw new GateError(
    "input-invalid",
    `\`profile\` is ${name}, and ${clustersPath} has no such profile: it has ${names.join(", ")}`,
    near === null ? "Name one of them with --profile." : `Did you mean \`--profile ${near}\`?`,
  );
}

/** Files that a refusal is about. */
export interface Places {
  readonly request: string;
  readonly clusters: string;
}

/**
 * A portable request on a profile. Nodes and accelerators are the request's, CPUs the request's or else the
 * profile's, everything else the profile's.
 * Throws `GateError("input-invalid")` where the profile cannot hold the request, naming both files and the key.
 */
export function resolveResources(
  portable: PortableRequest,
  profile: Profile,
  places: Places,
): ResolvedResources {
  const refuse = (key: string, asked: number | string, has: number | string, profileKey: string): never => {
    throw new GateError(
      "input-invalid",
      `\`resources.${key}\` in ${places.request} is ${asked}, and profile ${profile.name} in ${places.clusters} has ${profileKey} ${has}`,
      "Ask for less, or choose another profile with --profile.",
    );
  };
  if (portable.acceleratorBackend !== profile.acceleratorBackend)
    throw new GateError(
      "input-invalid",
      `\`resources.accelerator_backend\` in ${places.request} is ${portable.acceleratorBackend}, and profile ${profile.name} in ${places.clusters} is for ${profile.acceleratorBackend}`,
      `Choose a profile for ${portable.acceleratorBackend} with --profile.`,
    );
  if (portable.nodes > profile.maxNodes) refuse("nodes", portable.nodes, profile.maxNodes, "max_nodes");
  if (portable.acceleratorsPerNode > profile.acceleratorsPerNode)
    refuse(
      "accelerators_per_node",
      portable.acceleratorsPerNode,
      profile.acceleratorsPerNode,
      "accelerators_per_node",
    );
  if (
    portable.cpusPerNode !== null &&
    profile.cpusPerNode !== null &&
    portable.cpusPerNode > profile.cpusPerNode
  )
    refuse("cpus_per_node", portable.cpusPerNode, profile.cpusPerNode, "cpus_per_node");
  return {
    profileName: profile.name,
    infra: profile.infra,
    acceleratorType: profile.acceleratorType,
    nodes: portable.nodes,
    acceleratorsPerNode: portable.acceleratorsPerNode,
    cpusPerNode: portable.cpusPerNode ?? profile.cpusPerNode,
    memoryGbPerNode: profile.memoryGbPerNode,
    exclusive: profile.exclusive,
    runtimeImage: profile.remoteRuntimeImage,
    commandPrefix: profile.commandPrefix,
    allocationTime: profile.allocationTime,
    remoteArtifactRoot: profile.remoteArtifactRoot,
    ...(profile.remoteArtifactRootWritten === undefined
      ? {}
      : { remoteArtifactRootWritten: profile.remoteArtifactRootWritten }),
  };
}
