import { GateError } from "../../lib/errors.ts";
import type { PortableRequest } from "../types.ts";
import { portableOf } from "./profiles.ts";
import { RUN } from "./run-schema.ts";
import { type FileText, readJson } from "./toml.ts";

/** One launch on resources that the launch before it did not have. */
export interface Launch {
  /** UTC, ISO 8601. */
  readonly at: string;
  readonly profile: string;
  readonly infra: string;
  readonly acceleratorType: string;
  /** See `resourceFingerprint`. */
  readonly fingerprint: string;
  /** The program that launched it, with its version. */
  readonly program: string;
}

/**
 * What a run keeps of how it was launched, in `STATE/run.json`. The profile is a default and no promise: a resumed
 * run may go on elsewhere. Cluster and job ids are the journal's.
 */
export interface RunRecord {
  readonly runId: string;
  readonly workspaceId: string;
  readonly portable: PortableRequest;
  readonly profile: string;
  readonly launches: readonly Launch[];
}

/** What a daemon is about to be started with. */
export interface Asked {
  readonly runId: string;
  readonly workspaceId: string;
  readonly portable: PortableRequest;
  readonly launch: Launch;
}

/** Reads a record. Throws `GateError("settings-invalid")` naming the file and the key. */
export function readRunRecord(file: FileText): RunRecord {
  const raw = readJson(RUN, file, "settings-invalid");
  return {
    runId: raw.run_id,
    workspaceId: raw.workspace_id,
    portable: portableOf(raw.resources),
    profile: raw.profile,
    launches: raw.launches.map(({ accelerator_type, ...launch }) => ({
      ...launch,
      acceleratorType: accelerator_type,
    })),
  };
}

/** The text of a record, as `readRunRecord` reads it. */
export function runRecordText(record: RunRecord): string {
  const { portable } = record;
  const document = {
    version: 1,
    run_id: record.runId,
    workspace_id: record.workspaceId,
    environment: "skypilot",
    resources: {
      nodes: portable.nodes,
      accelerators_per_node: portable.acceleratorsPerNode,
      accelerator_backend: portable.acceleratorBackend,
      cpus_per_node: portable.cpusPerNode,
    },
    profile: record.profile,
    launches: record.launches.map(({ acceleratorType, at, profile, infra, ...rest }) => ({
      at,
      profile,
      infra,
      accelerator_type: acceleratorType,
      ...rest,
    })),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/**
 * The record of a run that is started or started again. A resumed run keeps its id and its portable request: another
 * one is refused by key, because results measured under two requests do not belong together. Another profile is taken;
 * what changed is appended to the launches.
 *
 * Throws `GateError("input-invalid")`. `recordPath` and `requestPath` are for messages.
 */
export function resumeRun(
  previous: RunRecord | null,
  asked: Asked,
  places: { readonly record: string; readonly request: string },
): RunRecord {
  const { launch } = asked;
  if (previous === null)
    return {
      runId: asked.runId,
      workspaceId: asked.workspaceId,
      portable: asked.portable,
      profile: launch.profile,
      launches: [launch],
    };
  if (previous.runId !== asked.runId)
    throw new GateError(
      "input-invalid",
      `\`run_id\` is ${asked.runId}, and ${places.record} is of run ${previous.runId}`,
      "Give each run a state folder of its own with --state.",
    );
  const { portable } = previous;
  const keys: readonly (readonly [string, string | number | null, string | number | null])[] = [
    ["nodes", asked.portable.nodes, portable.nodes],
    ["accelerators_per_node", asked.portable.acceleratorsPerNode, portable.acceleratorsPerNode],
    ["accelerator_backend", asked.portable.acceleratorBackend, portable.acceleratorBackend],
    ["cpus_per_node", asked.portable.cpusPerNode, portable.cpusPerNode],
  ];
  for (const [key, now, then] of keys)
    if (now !== then)
      throw new GateError(
        "input-invalid",
        `\`resources.${key}\` in ${places.request} is ${now ?? "not set"}, and ${places.record} was begun with ${then ?? "none"}`,
        "A run keeps its request: ask for the same, or begin another run with another --state.",
      );
  const last = previous.launches.at(-1);
  const same =
    last !== undefined && last.profile === launch.profile && last.fingerprint === launch.fingerprint;
  return {
    ...previous,
    workspaceId: asked.workspaceId,
    profile: launch.profile,
    launches: same ? previous.launches : [...previous.launches, launch],
  };
}
