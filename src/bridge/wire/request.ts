import { fail, ok, type Result } from "../../lib/result.ts";
import { shown } from "../../lib/shown.ts";
import { declaredProblem } from "../declared/globs.ts";
import { declaredFields } from "../names.ts";
import type { Declared, EvaluationRequest } from "../types.ts";
import {
  keyProblem,
  MAX_REQUEST_BYTES,
  oneLine,
  PROTOCOL_VERSION,
  readLine,
  textList,
  versionProblem,
} from "./line.ts";

/** A refusal as the client gets it: the name of an error class, and one line of at most 500 characters. */
export interface WireProblem {
  readonly error: string;
  readonly message: string;
}

/** Most characters of an error's message. */
export const MAX_MESSAGE = 500;

/** The output path that a benchmark may be handed. */
const ARTIFACT_PATH = /^\/tmp\/vibesys-framework-benchmark-[A-Za-z0-9._-]+\.json$/;
const INVOCATION_ID = /^[0-9a-f]{32}$/;

const refuse = (message: string): Result<never, WireProblem> =>
  fail({ error: "ValueError", message: oneLine(message, MAX_MESSAGE) });

/** Whether a path is one that a benchmark may write its result to. */
export function isArtifactPath(path: string): boolean {
  return ARTIFACT_PATH.test(path);
}

/** Whether a text is an id as clients choose it. */
export function isInvocationId(text: string): boolean {
  return INVOCATION_ID.test(text);
}

/**
 * Reads a client's request strictly: unknown keys by name, no number for a text, no `true` for 1. Accepted are a kind
 * alone, and a benchmark with the configured output flag, a path and that path as its artifact.
 */
export function parseRequest(
  line: Uint8Array,
  benchmarkOutputFlag: string,
): Result<EvaluationRequest, WireProblem> {
  const message = readLine(line, "the request", MAX_REQUEST_BYTES);
  if (!message.ok) return refuse(message.error);
  const { fields } = message.value;
  const problem =
    keyProblem(message.value, "the request", {
      needed: ["version", "kind", "invocation_id"],
      optional: ["arguments", "artifacts", "declared"],
    }) ?? versionProblem(message.value, "the request");
  if (problem !== null) return refuse(problem);
  const { kind, invocation_id: invocationId } = fields;
  if (kind !== "accuracy" && kind !== "benchmark")
    return refuse("the request's kind is neither accuracy nor benchmark");
  if (typeof invocationId !== "string" || !isInvocationId(invocationId))
    return refuse("the request's invocation_id is not 32 lower-case hex digits");
  const given = Object.hasOwn(fields, "arguments") ? textList(fields.arguments) : [];
  const artifacts = Object.hasOwn(fields, "artifacts") ? textList(fields.artifacts) : [];
  if (given === null) return refuse("the request's arguments are not a list of texts");
  if (artifacts === null) return refuse("the request's artifacts are not a list of texts");
  const declared = declaredOf(fields.declared);
  if (!declared.ok) return refuse(declared.error);
  const allowed = argumentProblem(kind, given, artifacts, benchmarkOutputFlag);
  if (allowed !== null) return refuse(allowed);
  return ok({
    kind,
    invocationId,
    arguments: given,
    artifacts,
    ...(declared.value === undefined ? {} : { declared: declared.value }),
  });
}

/** The files that a client of ours wants back besides; undefined where it named none. The error is a sentence. */
function declaredOf(value: unknown): Result<Declared | undefined, string> {
  if (value === undefined) return ok(undefined);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return fail("the request's declared is not an object");
  const { globs, max_files: maxFiles, max_bytes: maxBytes, ...rest } = value as Record<string, unknown>;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined)
    return fail(`the request's declared has the unknown key ${JSON.stringify(shown(unknown, 40))}`);
  const patterns = textList(globs);
  if (patterns === null) return fail("the request's declared.globs are not a list of texts");
  if (!Number.isSafeInteger(maxFiles) || !Number.isSafeInteger(maxBytes))
    return fail("the request's declared.max_files and max_bytes are not whole numbers");
  const declared = { globs: patterns, maxFiles: maxFiles as number, maxBytes: maxBytes as number };
  const problem = declaredProblem(declared);
  return problem === null ? ok(declared) : fail(problem);
}

/** What is wrong with a request's arguments and artifacts; null = nothing. */
export function argumentProblem(
  kind: EvaluationRequest["kind"],
  given: readonly string[],
  artifacts: readonly string[],
  benchmarkOutputFlag: string,
): string | null {
  if (given.length === 0 && artifacts.length === 0) return null;
  if (kind !== "benchmark") return "an accuracy request takes neither arguments nor artifacts";
  const path = given[1];
  if (given.length !== 2 || given[0] !== benchmarkOutputFlag || path === undefined)
    return `a benchmark request takes ${benchmarkOutputFlag} and a path as its arguments, or none`;
  if (!isArtifactPath(path))
    return "the benchmark's output path is not /tmp/vibesys-framework-benchmark-NAME.json with a NAME of letters, digits, dots, dashes and underscores";
  if (artifacts.length !== 1 || artifacts[0] !== path)
    return "the request's artifacts are not the benchmark's output path alone";
  return null;
}

/** Reads the client's acknowledgement of a result: exactly the id that was asked for. */
export function parseAck(line: Uint8Array, invocationId: string): Result<null, WireProblem> {
  const message = readLine(line, "the acknowledgement", MAX_REQUEST_BYTES);
  if (!message.ok) return refuse(message.error);
  const problem =
    keyProblem(message.value, "the acknowledgement", { needed: ["version", "type", "invocation_id"] }) ??
    versionProblem(message.value, "the acknowledgement");
  if (problem !== null) return refuse(problem);
  const { type, invocation_id: id } = message.value.fields;
  if (type !== "ack") return refuse("the acknowledgement's type is not ack");
  if (id !== invocationId) return refuse("the acknowledgement is of another invocation");
  return ok(null);
}

/** A request as a client writes it, with its line end. */
export function encodeRequest(request: EvaluationRequest): string {
  return `${JSON.stringify({
    version: PROTOCOL_VERSION,
    invocation_id: request.invocationId,
    kind: request.kind,
    arguments: request.arguments,
    artifacts: request.artifacts,
    ...(request.declared === undefined ? {} : { declared: declaredFields(request.declared) }),
  })}\n`;
}

/** An acknowledgement as a client writes it, with its line end. */
export function encodeAck(invocationId: string): string {
  return `${JSON.stringify({ version: PROTOCOL_VERSION, type: "ack", invocation_id: invocationId })}\n`;
}
