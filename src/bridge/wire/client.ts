import { fail, ok, type Result } from "../../lib/result.ts";
import { shown } from "../../lib/shown.ts";
import { isDeclared, isPlainPath } from "../declared/globs.ts";
import { MAX_ARTIFACT_BYTES } from "../markers.ts";
import type { ArtifactData, Declared, Frame, WireStatus } from "../types.ts";
import { decodeBase64 } from "./base64.ts";
import { keyProblem, MAX_FRAME_BYTES, type Message, readLine, versionProblem } from "./line.ts";

export { decodeBase64 };

/** SHA-256 of bytes as 64 lower-case hex digits. */
export type Sha256OfBytes = (bytes: Uint8Array) => string;

const STATUSES: readonly string[] = ["COMPLETED", "APPLICATION_FAILED", "CANCELLED"] satisfies WireStatus[];

/**
 * The client's side of one connection: takes the daemon's lines in order and refuses what the protocol does not
 * allow, as the public clients do. An error says what was invalid and is final.
 */
export class FrameReader {
  private artifactArrived = false;
  /** Declared files: those that began, their bytes so far, and what is missing of the one that is coming. */
  private readonly files = new Set<string>();
  private fileBytes = 0;
  private missing = 0;
  private allFiles = false;

  constructor(
    private readonly asked: {
      readonly invocationId: string;
      readonly artifacts: readonly string[];
      readonly declared?: Declared;
    },
    private readonly sha256: Sha256OfBytes,
  ) {}

  /** Reads one line with its line end; without one the daemon was cut off. */
  read(line: Uint8Array): Result<Frame, string> {
    if (line.length > MAX_FRAME_BYTES || line[line.length - 1] !== 0x0a)
      return fail("the bridge returned an invalid frame: it has no end, or more than 1 MiB");
    const message = readLine(line, "the frame", MAX_FRAME_BYTES);
    if (!message.ok) return fail(`the bridge returned an invalid frame: ${message.error}`);
    const version = versionProblem(message.value, "the frame");
    if (version !== null) return fail(`the bridge returned an invalid frame: ${version}`);
    switch (message.value.fields.type) {
      case "stdout":
      case "stderr":
        return output(message.value, message.value.fields.type);
      case "artifact":
        return this.artifact(message.value);
      case "file":
      case "file_data":
      case "files":
        if (this.asked.declared === undefined) break;
        return this.declared(message.value, this.asked.declared);
      case "result":
        return this.result(message.value);
      case "acked":
        return acked(message.value, this.asked.invocationId);
      case "error":
        return errorFrame(message.value);
    }
    return fail("the bridge returned an invalid frame: its type is unknown");
  }

  /** Only what was asked for, each once and as long as announced; its digest is checked where it is written. */
  private declared(message: Message, declared: Declared): Result<Frame, string> {
    const bad = (why: string) => fail(`the bridge returned an invalid file: ${why}`);
    const { fields } = message;
    const kind = fields.type as "file" | "file_data" | "files";
    const needed = { file: ["path", "size", "sha256"], file_data: ["data_base64"], files: ["count"] }[kind];
    const keys = keyProblem(message, "the file", { needed: ["version", "type", ...needed] });
    if (keys !== null) return bad(keys);
    if (this.allFiles) return bad("it came after all of them");
    if (kind === "file_data") {
      const bytes = typeof fields.data_base64 === "string" ? decodeBase64(fields.data_base64) : null;
      if (bytes === null || bytes.length === 0) return bad("its data is not base64");
      if (bytes.length > this.missing) return bad("it has more bytes than announced");
      this.missing -= bytes.length;
      return ok({ type: "file_data", dataBase64: fields.data_base64 as string });
    }
    if (this.missing > 0) return bad("it has fewer bytes than announced");
    if (kind === "files") {
      if (!message.isInt("count") || fields.count !== this.files.size) return bad("not all of them came");
      this.allFiles = true;
      return ok({ type: "files", count: this.files.size });
    }
    const { path, size, sha256 } = fields;
    if (typeof path !== "string" || !isPlainPath(path))
      return bad(`its path ${JSON.stringify(shown(String(path), 80))} leads elsewhere`);
    if (!isDeclared(path, declared.globs) || this.files.has(path))
      return bad(`${shown(path, 80)} ${this.files.has(path) ? "came twice" : "is none that was asked for"}`);
    if (!message.isInt("size") || typeof size !== "number" || size < 0) return bad("its size is not one");
    if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) return bad("its digest is none");
    this.fileBytes += size;
    if (this.files.size >= declared.maxFiles || this.fileBytes > declared.maxBytes)
      return bad("more of them came than were asked for");
    this.files.add(path);
    this.missing = size;
    return ok({ type: "file", file: { path, size, sha256 } });
  }

  private artifact(message: Message): Result<Frame, string> {
    const bad = (why: string) => fail(`the bridge returned an invalid artifact: ${why}`);
    const keys = keyProblem(message, "the artifact", {
      needed: ["version", "type", "path", "size", "sha256", "data_base64"],
    });
    if (keys !== null) return bad(keys);
    const { path, size, sha256, data_base64: data } = message.fields;
    if (typeof path !== "string" || !this.asked.artifacts.includes(path)) return bad("nobody asked for it");
    if (this.artifactArrived) return bad("it came twice");
    if (!message.isInt("size") || typeof size !== "number" || size < 0 || size > MAX_ARTIFACT_BYTES)
      return bad("its size is not one");
    if (typeof sha256 !== "string" || typeof data !== "string") return bad("its digest or data is no text");
    const bytes = decodeBase64(data);
    if (bytes === null) return bad("its data is not base64");
    if (bytes.length !== size) return bad("its size is another");
    if (this.sha256(bytes) !== sha256) return bad("its digest is another");
    this.artifactArrived = true;
    const artifact: ArtifactData = { path, size, sha256, dataBase64: data };
    return ok({ type: "artifact", artifact });
  }

  private result(message: Message): Result<Frame, string> {
    const bad = (why: string) => fail(`the bridge returned an invalid result: ${why}`);
    const keys = keyProblem(message, "the result", {
      needed: ["version", "type", "status", "sky_exit_code", "remote_job_id"],
    });
    if (keys !== null) return bad(keys);
    const { status, sky_exit_code: skyExitCode, remote_job_id: remoteJobId } = message.fields;
    if (typeof status !== "string" || !STATUSES.includes(status)) return bad("its status is unknown");
    if (!message.isInt("sky_exit_code") || !message.isInt("remote_job_id"))
      return bad("its numbers are not whole numbers");
    if (status === "COMPLETED" && this.asked.artifacts.length > 0 && !this.artifactArrived)
      return bad("the artifact is missing");
    if (status !== "COMPLETED" && this.artifactArrived) return bad("an artifact came without completion");
    if (this.asked.declared !== undefined && !this.allFiles) return bad("the declared files are missing");
    return ok({
      type: "result",
      status: status as WireStatus,
      skyExitCode: skyExitCode as number,
      remoteJobId: remoteJobId as number,
    });
  }
}

function output(message: Message, type: "stdout" | "stderr"): Result<Frame, string> {
  const keys = keyProblem(message, "the frame", { needed: ["version", "type", "data"] });
  const { data } = message.fields;
  if (keys !== null) return fail(`the bridge returned an invalid frame: ${keys}`);
  if (typeof data !== "string") return fail("the bridge returned an invalid frame: its data is no text");
  return ok({ type, data });
}

function acked(message: Message, invocationId: string): Result<Frame, string> {
  const keys = keyProblem(message, "it", { needed: ["version", "type", "invocation_id"] });
  if (keys !== null || message.fields.invocation_id !== invocationId)
    return fail(`the bridge returned an invalid acknowledgement${keys === null ? "" : `: ${keys}`}`);
  return ok({ type: "acked", invocationId });
}

/** Either client line's error frame: with a message or without. */
function errorFrame(message: Message): Result<Frame, string> {
  const keys = keyProblem(message, "the error", {
    needed: ["version", "type", "error"],
    optional: ["message"],
  });
  const { error, message: said = "" } = message.fields;
  if (keys !== null || typeof error !== "string" || typeof said !== "string")
    return fail(`the bridge returned an invalid frame: ${keys ?? "its error is no text"}`);
  return ok({ type: "error", error, message: said });
}
