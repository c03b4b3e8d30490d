import { readFileSync } from "node:fs";
import type { TaskOverrides } from "../../src/skypilot/task.ts";

const folder = `${import.meta.dir}/../fixtures/skypilot`;

export interface SampleDocument {
  readonly name: string;
  readonly text: string;
  readonly overrides: TaskOverrides;
}

/** What SkyPilot made of a document: its normal form and its own text of it, or its refusal. */
export type NormalForm =
  | { readonly error: string }
  | {
      readonly kind: string;
      readonly tasks: readonly { readonly config: TaskConfig; readonly text: string }[];
    };

export interface ResourceConfig {
  readonly accelerators?: Readonly<Record<string, number>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly infra?: string;
  readonly instance_type?: string;
  readonly use_spot?: boolean;
  readonly _no_missing_accel_warnings?: boolean;
  readonly any_of?: readonly ResourceConfig[];
  readonly ordered?: readonly ResourceConfig[];
}

export interface TaskConfig {
  readonly name?: string;
  readonly resources: ResourceConfig;
  readonly num_nodes: number;
  readonly envs?: Readonly<Record<string, string>>;
  readonly service?: object;
}

/** The documents that tests/skypilot/oracle.py gave to SkyPilot 0.13.0. */
export const documents: readonly SampleDocument[] = `\n${readFileSync(`${folder}/documents.txt`, "utf8")}`
  .split("\n=== ")
  .slice(1)
  .map((part) => {
    const [, name = "", options = "", rest = ""] = /^(\S+) ?([^\n]*)\n?([\s\S]*)$/.exec(part)!;
    const { env, env_file, gpus, num_nodes, environment, crlf, bom } = JSON.parse(options || "{}");
    const overrides = { env, gpus, numNodes: num_nodes, environment, envFiles: env_file && [env_file] };
    const lines = rest === "" ? "" : `${rest}\n`;
    return {
      name,
      text: `${bom ? "\uFEFF" : ""}${crlf ? lines.replaceAll("\n", "\r\n") : lines}`,
      overrides,
    };
  });

const kept = JSON.parse(readFileSync(`${folder}/normal-forms.json`, "utf8"));

export const normalForms: Readonly<Record<string, NormalForm>> = kept.documents;

/** Plain scalars: Python's type and `str()` of what PyYAML's safe loader makes of them. */
export const scalars: Readonly<Record<string, readonly [type: string, text: string]>> = kept.scalars;
