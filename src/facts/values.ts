import { nearest } from "../lib/nearest.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { hasControls } from "../lib/shown.ts";
import { grouped } from "../lib/units.ts";
import type { FactSpec, ValueForm } from "./keys.ts";

/** Why a text is not a value: `fault` ends the sentence "X is ...", `write` is a value that would be one. */
export interface ValueFault {
  readonly fault: string;
  readonly write: string;
  readonly unresolved?: true;
}

/** Longest model name or path that is taken for one. */
const MAX_MODEL_LENGTH = 4096;

/**
 * Reads one value; blanks around it do not count. Nothing is guessed: `8.0`, `08` and `1e3` are not whole
 * numbers (YAML 1.1 turns a bare `010` into 8 before we see it, and leaves `08` and `1e3` as text).
 * Choices are compared without case.
 */
export function readValue(
  spec: FactSpec,
  text: string,
): Result<string | number | boolean | null, ValueFault> {
  const value = text.trim();
  const form = spec.form;
  switch (form.kind) {
    case "model":
      return readModel(value);
    case "count":
      return readCount(value, form, `a whole number from 1 to ${grouped(form.most)}`);
    case "rank":
      if (value.toLowerCase() === "none") return ok(null);
      return readRank(value, form, `none or a whole number from 1 to ${grouped(form.most)}`);
    case "hours":
      return readHours(value, form);
    case "share":
      return readShare(value, form.example);
    case "choice":
      return readChoice(value, form.values);
    case "switch":
      return readSwitch(value);
  }
}

function readModel(value: string): Result<string, ValueFault> {
  const write = "Qwen/Qwen3-8B";
  if (value === "") return fail({ fault: "is empty", write });
  if (hasControls(value)) return fail({ fault: "holds control characters", write });
  if (value.length > MAX_MODEL_LENGTH)
    return fail({ fault: `is longer than ${grouped(MAX_MODEL_LENGTH)} characters`, write });
  if (holdsVariable(value)) return fail({ fault: VARIABLE_FAULT, write, unresolved: true });
  return ok(value);
}

const VARIABLE_FAULT = "names a variable, and nothing expands it here";

/** `$X`, `${X}`, `$(command)`: text that a shell would have replaced and that reached us as it stands. */
function holdsVariable(value: string): boolean {
  return /\$(?:[A-Za-z_{(])/.test(value);
}

function readCount(
  value: string,
  form: Extract<ValueForm, { most: number }>,
  wanted: string,
): Result<number, ValueFault> {
  // Ten digits are more than any bound: longer texts are not worth converting, whatever their length.
  const number = /^[1-9]\d{0,9}$/.test(value) ? Number(value) : Number.NaN;
  if (number <= form.most) return ok(number);
  return fail({ fault: faultOf(value, wanted), write: form.example });
}

/** As a count; 0 is probably meant as "no LoRA". */
function readRank(
  value: string,
  form: Extract<ValueForm, { most: number }>,
  wanted: string,
): Result<number, ValueFault> {
  return value === "0"
    ? fail({ fault: faultOf(value, wanted), write: "none" })
    : readCount(value, form, wanted);
}

/** A number as it is written in Python or JSON. */
function numberOf(value: string): number {
  return /^(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?$/.test(value)
    ? Number(value)
    : Number.NaN;
}

function readShare(value: string, example: string): Result<number, ValueFault> {
  const share = numberOf(value);
  return share >= 0 && share < 1
    ? ok(share)
    : fail({ fault: faultOf(value, "a number from 0 to below 1"), write: example });
}

function readHours(value: string, form: Extract<ValueForm, { most: number }>): Result<number, ValueFault> {
  const hours = numberOf(value);
  if (hours > 0 && hours <= form.most) return ok(hours);
  return fail({
    fault: faultOf(value, `a number of hours above 0 and up to ${grouped(form.most)}`),
    write: form.example,
  });
}

function readChoice(value: string, values: readonly string[]): Result<string, ValueFault> {
  const asked = value.toLowerCase();
  const found = values.find((known) => known === asked);
  if (found !== undefined) return ok(found);
  return fail({ fault: faultOf(value, `one of ${values.join(", ")}`), write: meant(asked, values) });
}

/** What a choice was probably meant to be: `on` of `none` and `full` is `full`, `fp16` is the one that ends in it. */
function meant(asked: string, values: readonly string[]): string {
  const [first = "", second = first] = values;
  if (values.length === 2 && ["on", "true", "yes", "1"].includes(asked)) return second;
  const ending = asked === "" ? undefined : values.find((value) => value.endsWith(`-${asked}`));
  return ending ?? nearest(asked, values) ?? first;
}

function readSwitch(value: string): Result<boolean, ValueFault> {
  const asked = value.toLowerCase();
  if (asked === "on" || asked === "true" || asked === "1") return ok(true);
  if (asked === "off" || asked === "false" || asked === "0") return ok(false);
  return fail({ fault: faultOf(value, "on or off"), write: "on" });
}

function faultOf(value: string, wanted: string): string {
  if (value === "") return `is empty, not ${wanted}`;
  return holdsVariable(value) ? VARIABLE_FAULT : `is not ${wanted}`;
}
