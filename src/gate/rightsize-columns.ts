import { FACT_SPECS, foldedName } from "../facts/keys.ts";
import type { RawFact } from "../facts/raw.ts";
import { GateError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";

/** What each column of a table of jobs holds; -1 = there is no such column. */
export interface Columns {
  readonly count: number;
  readonly jobId: number;
  readonly gpu: number;
  readonly nodes: number;
  readonly facts: readonly { readonly at: number; readonly flag: string; readonly name: string }[];
  /** Sentences on columns that are not read although their names are near to one that is. */
  readonly notes: readonly string[];
}

const OWN = ["job-id", "gpu", "nodes"] as const;

/**
 * Reads the header of a table of jobs: `job_id`, `model`, `gpu`, `nodes` and any fact's name, in any order and case,
 * with `-` or `_`. Columns of other names belong to someone else and are left alone.
 * Throws `GateError("input-invalid")` for a header that names no model or one column twice.
 */
export function readColumns(header: readonly string[], path: string): Columns {
  const names = header.map((name) => foldedName(name));
  const known = [...OWN, ...FACT_SPECS.map((spec) => spec.flag)];
  for (const name of known) {
    const first = names.indexOf(name);
    if (first !== -1 && names.indexOf(name, first + 1) !== -1) {
      throw new GateError(
        "input-invalid",
        `${path} has two columns named ${spelled(name)}`,
        "Leave one of them out.",
      );
    }
  }
  if (!names.includes("model")) throw noModel(header, names, path);
  const at = (name: string) => names.indexOf(name);
  const notes: string[] = [];
  for (const [index, name] of names.entries()) {
    const near =
      name === "" || known.includes(name) ? null : nearest(name.replaceAll("-", ""), known.map(bare));
    const meant = near === null ? undefined : known.find((one) => bare(one) === near);
    if (meant !== undefined && !names.includes(meant))
      notes.push(`The column ${shown(header[index]!)} is not read; is ${spelled(meant)} meant?`);
  }
  return {
    count: header.length,
    jobId: at("job-id"),
    gpu: at("gpu"),
    nodes: at("nodes"),
    facts: FACT_SPECS.flatMap(({ flag }) =>
      at(flag) === -1 ? [] : [{ at: at(flag), flag, name: header[at(flag)]!.trim() }],
    ),
    notes,
  };
}

/** The facts of a record; an empty field is a fact that is not told. */
export function recordFacts(fields: readonly string[], columns: Columns): RawFact[] {
  const facts: RawFact[] = [];
  for (const { at, flag, name } of columns.facts) {
    const value = fields[at]!;
    if (value.trim() !== "") facts.push({ name: flag, value, from: { kind: "site", name } });
  }
  return facts;
}

function bare(name: string): string {
  return name.replaceAll("-", "");
}

function spelled(name: string): string {
  return name.replaceAll("-", "_");
}

function noModel(header: readonly string[], names: readonly string[], path: string): GateError {
  const [only = ""] = header;
  const separator = [";", "\t", "|"].find((mark) => header.length === 1 && only.includes(mark));
  const near = nearest("model", names);
  const hint = header.some((name) => name.includes("\0") || name.includes("\ufffd"))
    ? "Save it as UTF-8 text with commas between the fields."
    : separator !== undefined
      ? `Its columns are parted by ${separator === "\t" ? "tabs" : `\`${separator}\``}; save it with commas.`
      : near === null
        ? "The first line names the columns: job_id,model,gpu,hours,batch,seq_len,lora_rank,attention."
        : `Is the column ${shown(near)} meant? Name it model.`;
  return new GateError("input-invalid", `${path} has no column named model`, hint);
}
