import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { MAX_ARTIFACT_BYTES } from "../../src/bridge/markers.ts";
import type { EvaluationRequest, Frame } from "../../src/bridge/types.ts";
import { decodeBase64, FrameReader } from "../../src/bridge/wire/client.ts";
import { cutOutput, cutText, encodeFrame, MAX_OUTPUT_CHARACTERS } from "../../src/bridge/wire/frames.ts";
import { MAX_FRAME_BYTES, MAX_REQUEST_BYTES } from "../../src/bridge/wire/line.ts";
import { encodeAck, encodeRequest, parseAck, parseRequest } from "../../src/bridge/wire/request.ts";
import { digest } from "../../src/host/private-files.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const ID = "0123456789abcdef0123456789abcdef";
const PATH = "/tmp/vibesys-framework-benchmark-t1.json";
const FLAG = "--output-json";
const plain = { version: 2, kind: "accuracy", invocation_id: ID };
const bench = {
  version: 2,
  kind: "benchmark",
  invocation_id: ID,
  arguments: [FLAG, PATH],
  artifacts: [PATH],
};

/** Lines that the public bridge and its clients were seen to exchange. */
const LINES = readFileSync(join(import.meta.dir, "../fixtures/bridge/wire-lines.txt"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => ({ fromClient: line.startsWith("C>B "), text: line.slice(4) }));

function frameOf(raw: Record<string, unknown>): Frame {
  switch (raw.type) {
    case "stdout":
    case "stderr":
      return { type: raw.type, data: String(raw.data) };
    case "artifact":
      return {
        type: "artifact",
        artifact: {
          path: String(raw.path),
          size: Number(raw.size),
          sha256: String(raw.sha256),
          dataBase64: String(raw.data_base64),
        },
      };
    case "result":
      return {
        type: "result",
        status: raw.status as "COMPLETED",
        skyExitCode: Number(raw.sky_exit_code),
        remoteJobId: Number(raw.remote_job_id),
      };
    case "acked":
      return { type: "acked", invocationId: String(raw.invocation_id) };
    default:
      return { type: "error", error: String(raw.error), message: String(raw.message ?? "gone") };
  }
}

describe("lines that were seen between the public bridge and its clients", () => {
  for (const { fromClient, text } of LINES) {
    const raw = JSON.parse(text) as Record<string, unknown>;
    if (raw.type === "progress") continue;
    test(text.slice(0, 100), () => {
      if (!fromClient)
        return expect(
          encodeFrame(frameOf(raw), Object.hasOwn(raw, "message") ? "campaign" : "mainline"),
        ).toBe(`${text}\n`);
      if (raw.type === "ack") {
        expect(encodeAck(String(raw.invocation_id))).toBe(`${text}\n`);
        return expect(parseAck(bytes(`${text}\n`), String(raw.invocation_id))).toEqual({
          ok: true,
          value: null,
        });
      }
      const read = parseRequest(bytes(`${text}\n`), FLAG);
      if (!read.ok) throw new Error(read.error.message);
      expect(encodeRequest(read.value)).toBe(`${text}\n`);
    });
  }
});

describe("a request", () => {
  const accepted: readonly (readonly [string, unknown])[] = [
    ["without lists", plain],
    ["with empty lists", { ...plain, arguments: [], artifacts: [] }],
    ["with one empty list", { ...plain, artifacts: [] }],
    ["benchmark alone", { ...plain, kind: "benchmark" }],
    ["benchmark with its output", bench],
    [
      "every character of a name",
      {
        ...bench,
        arguments: [FLAG, "/tmp/vibesys-framework-benchmark-aZ0._-.json"],
        artifacts: ["/tmp/vibesys-framework-benchmark-aZ0._-.json"],
      },
    ],
  ];
  test.each(accepted)("%s is accepted", (_, request) => {
    const line = JSON.stringify(request);
    expect(parseRequest(bytes(`${line}\n`), FLAG).ok).toBe(true);
    expect(parseRequest(bytes(line), FLAG).ok).toBe(true);
  });

  const other = (path: string) => ({ ...bench, arguments: [FLAG, path], artifacts: [path] });
  const text = (request: unknown) => JSON.stringify(request);
  const refused: readonly (readonly [string, string | Uint8Array, string])[] = [
    ["nothing", "", "not JSON"],
    ["no JSON", "{", "not JSON"],
    ["a list", "[]", "not a JSON object"],
    ["null", "null", "not a JSON object"],
    ["no UTF-8", new Uint8Array([0x7b, 0xff, 0x7d]), "not UTF-8"],
    ["a byte order mark", `\uFEFF${text(plain)}`, "not JSON"],
    ["two objects", `${text(plain)}${text(plain)}`, "not JSON"],
    ["version 1", text({ ...plain, version: 1 }), "another version"],
    ["version 3", text({ ...plain, version: 3 }), "another version"],
    ["version as text", text({ ...plain, version: "2" }), "another version"],
    ["version true", text({ ...plain, version: true }), "another version"],
    ["version 2.0", text(plain).replace(":2", ":2.0"), "another version"],
    ["version 2e0", text(plain).replace(":2", ":2e0"), "another version"],
    ["version null", text({ ...plain, version: null }), "another version"],
    ["no version", text({ kind: "accuracy", invocation_id: ID }), "no version"],
    ["no kind", text({ version: 2, invocation_id: ID }), "no kind"],
    ["no id", text({ version: 2, kind: "accuracy" }), "no invocation_id"],
    ["an extra key", text({ ...plain, host: "x" }), 'the unknown key "host"'],
    ["two extra keys", text({ ...plain, host: "x", port: 1 }), 'the unknown keys "host", "port"'],
    ["an extra key of no value", text({ ...plain, artifact_globs: null }), "artifact_globs"],
    ["an extra key beside version 1", text({ ...plain, version: 1, host: "x" }), "host"],
    ["the key of a prototype", `{"__proto__":{},${text(plain).slice(1)}`, "__proto__"],
    ["another kind", text({ ...plain, kind: "profile" }), "neither accuracy nor benchmark"],
    ["a kind in capitals", text({ ...plain, kind: "Accuracy" }), "neither accuracy nor benchmark"],
    ["a kind that is no text", text({ ...plain, kind: ["accuracy"] }), "neither accuracy nor benchmark"],
    ["a short id", text({ ...plain, invocation_id: ID.slice(1) }), "32 lower-case hex"],
    ["an id in capitals", text({ ...plain, invocation_id: ID.toUpperCase() }), "32 lower-case hex"],
    ["an id with a line end", text({ ...plain, invocation_id: `${ID}\n` }), "32 lower-case hex"],
    ["an id as a number", text({ ...plain, invocation_id: 1 }), "32 lower-case hex"],
    ["arguments as text", text({ ...plain, arguments: "" }), "not a list of texts"],
    ["arguments null", text({ ...plain, arguments: null }), "not a list of texts"],
    ["arguments with a number", text({ ...bench, arguments: [FLAG, 1] }), "not a list of texts"],
    ["artifacts as an object", text({ ...plain, artifacts: {} }), "artifacts are not a list"],
    ["accuracy with an output", text({ ...bench, kind: "accuracy" }), "neither arguments nor artifacts"],
    [
      "an output without its artifact",
      text({ ...bench, artifacts: [] }),
      "artifacts are not the benchmark's",
    ],
    ["an artifact without its output", text({ ...bench, arguments: [] }), "takes --output-json and a path"],
    ["another flag", text({ ...bench, arguments: ["--out", PATH] }), "takes --output-json and a path"],
    [
      "a flag with its value in it",
      text({ ...bench, arguments: [`${FLAG}=${PATH}`] }),
      "takes --output-json",
    ],
    ["three arguments", text({ ...bench, arguments: [FLAG, PATH, "x"] }), "takes --output-json and a path"],
    ["two artifacts", text({ ...bench, artifacts: [PATH, PATH] }), "artifacts are not the benchmark's"],
    ["another artifact", text({ ...bench, artifacts: ["/etc/passwd"] }), "artifacts are not the benchmark's"],
    ["another folder", text(other("/etc/passwd")), "output path is not"],
    ["a path upwards", text(other("/tmp/vibesys-framework-benchmark-../../x.json")), "output path is not"],
    ["a path without a name", text(other("/tmp/vibesys-framework-benchmark-.json")), "output path is not"],
    ["a path of another kind", text(other("/tmp/vibesys-framework-benchmark-x.txt")), "output path is not"],
    ["a path with a line end", text(other(`${PATH}\n`)), "output path is not"],
    [
      "a path with a letter beyond ASCII",
      text(other("/tmp/vibesys-framework-benchmark-é.json")),
      "output path is not",
    ],
    ["one byte too much", `${text(plain)}${" ".repeat(MAX_REQUEST_BYTES)}`, "larger than 4096 bytes"],
    ["a deep nest", "[".repeat(4000), "not JSON"],
  ];
  test.each(refused)("%s is refused", (_, line, why) => {
    const read = parseRequest(typeof line === "string" ? bytes(line) : line, FLAG);
    if (read.ok) throw new Error("it was accepted");
    expect(read.error.error).toBe("ValueError");
    expect(read.error.message).toContain(why);
  });
  test("exactly 4,096 bytes with the line end are read", () => {
    const line = `${text(plain)}${" ".repeat(MAX_REQUEST_BYTES - text(plain).length - 1)}\n`;
    expect(bytes(line).length).toBe(MAX_REQUEST_BYTES);
    expect(parseRequest(bytes(line), FLAG).ok).toBe(true);
    expect(parseRequest(bytes(` ${line}`), FLAG).ok).toBe(false);
  });
  test("whatever comes, it is read or refused in one short line", () => {
    const piece = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom<unknown>(2, "accuracy", "benchmark", ID, [FLAG, PATH], [PATH], []),
    );
    const almost = fc
      .dictionary(
        fc.oneof(
          {
            weight: 9,
            arbitrary: fc.constantFrom("version", "kind", "invocation_id", "arguments", "artifacts"),
          },
          { weight: 1, arbitrary: fc.string() },
        ),
        piece,
      )
      .map((one) => bytes(JSON.stringify(one)));
    fc.assert(
      fc.property(fc.oneof(almost, fc.uint8Array({ maxLength: 200 })), (line) => {
        const read = parseRequest(line, FLAG);
        if (read.ok) return;
        expect(read.error.message).toMatch(/^[^\r\n]{1,500}$/);
        expect(read.error.error).toMatch(/^[A-Za-z]+$/);
      }),
      { numRuns: 3000 },
    );
  });
  test("a long unknown key does not make a long message", () => {
    const read = parseRequest(bytes(text({ ...plain, [`a\n${"b".repeat(3000)}`]: 1 })), FLAG);
    expect(read.ok ? "" : read.error.message).toMatch(/^.{1,500}$/);
  });
});

describe("an acknowledgement", () => {
  const ack = { version: 2, type: "ack", invocation_id: ID };
  const refused: readonly (readonly [string, unknown])[] = [
    ["another id", { ...ack, invocation_id: "f".repeat(32) }],
    ["another type", { ...ack, type: "acked" }],
    ["another version", { ...ack, version: 1 }],
    ["version true", { ...ack, version: true }],
    ["an extra key", { ...ack, status: "COMPLETED" }],
    ["no id", { version: 2, type: "ack" }],
    ["a list", [ack]],
  ];
  test.each(refused)("%s is refused", (_, line) => {
    expect(parseAck(bytes(JSON.stringify(line)), ID).ok).toBe(false);
  });
  test("nothing is refused as well", () => expect(parseAck(new Uint8Array(0), ID).ok).toBe(false));
});

describe("frames", () => {
  test("an error's message is one line of at most 500 characters, and mainline has none", () => {
    const frame: Frame = { type: "error", error: "Value Error\n", message: `a\r\nb${"😀".repeat(600)}` };
    expect(encodeFrame(frame, "mainline")).toBe('{"version":2,"type":"error","error":"ValueError"}\n');
    const said = JSON.parse(encodeFrame(frame, "campaign")).message as string;
    expect(said).toStartWith("a  b😀");
    expect(Array.from(said).length).toBe(500);
    expect(said.isWellFormed()).toBe(true);
  });
  test("the largest frames stay below 1 MiB", () => {
    const worst = "\u0000".repeat(MAX_OUTPUT_CHARACTERS);
    expect(encodeFrame({ type: "stdout", data: worst }, "mainline").length).toBeLessThan(MAX_FRAME_BYTES);
    const data = Buffer.alloc(MAX_ARTIFACT_BYTES).toString("base64");
    const artifact = { path: PATH, size: MAX_ARTIFACT_BYTES, sha256: "0".repeat(64), dataBase64: data };
    expect(encodeFrame({ type: "artifact", artifact }, "mainline").length).toBeLessThan(MAX_FRAME_BYTES);
  });
  test("half a surrogate pair never reaches a client", () => {
    expect(encodeFrame({ type: "stdout", data: "a\ud800b" }, "mainline")).toContain("a\uFFFDb");
  });

  const unit = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }).map(bytes),
    fc.uint8Array({ maxLength: 40 }),
    fc.integer({ min: 65_530, max: 65_545 }).map((length) => bytes("x".repeat(length))),
    fc.integer({ min: 32_760, max: 32_775 }).map((length) => bytes("é".repeat(length))),
    fc.integer({ min: 16_380, max: 16_390 }).map((length) => bytes("😀".repeat(length))),
  );
  const whole = fc
    .array(unit, { maxLength: 5 })
    .map((parts) => new Uint8Array(parts.flatMap((part) => [...part])));
  test("cut output is what it was, in pieces that fit and split nothing", () => {
    fc.assert(
      fc.property(whole, fc.integer({ min: 0, max: 200_000 }), (output, at) => {
        // As a stream: what a first call leaves is read again with what came since.
        const cut = Math.min(at, output.length);
        const first = cutOutput(output.subarray(0, cut), false);
        const taken = first.reduce((sum, piece) => sum + piece.bytes, 0);
        expect(cut - taken).toBeLessThan(4);
        const rest = cutOutput(output.subarray(taken), true);
        const all = [...first, ...rest];
        expect(all.reduce((sum, piece) => sum + piece.bytes, 0)).toBe(output.length);
        for (const piece of all) {
          expect(piece.data.length).toBeLessThanOrEqual(MAX_OUTPUT_CHARACTERS);
          expect(piece.data.isWellFormed()).toBe(true);
        }
        const decoded = new TextDecoder("utf-8", { ignoreBOM: true }).decode(output);
        if (!decoded.includes("\uFFFD")) expect(all.map(({ data }) => data).join("")).toBe(decoded);
      }),
      { numRuns: 200 },
    );
  });
  test("bytes that are no UTF-8 do not hold output back for ever", () => {
    expect(cutOutput(new Uint8Array(10).fill(0xff), false)).toEqual([
      { data: "\uFFFD".repeat(10), bytes: 10 },
    ]);
    expect(cutOutput(new Uint8Array(10).fill(0x80), false)).toEqual([
      { data: "\uFFFD".repeat(10), bytes: 10 },
    ]);
    expect(cutOutput(new Uint8Array([0x61, 0xf0, 0x9f]), false)).toEqual([{ data: "a", bytes: 1 }]);
    expect(cutOutput(new Uint8Array([0x61, 0xf0, 0x9f]), true)).toEqual([{ data: "a\uFFFD", bytes: 3 }]);
  });
  test("cut text joins to what it was", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme" }),
        fc.integer({ min: 65_530, max: 65_540 }),
        (text, length) => {
          const long = `${"x".repeat(length)}${text}${"😀".repeat(40_000)}`;
          const pieces = cutText(long);
          expect(pieces.join("")).toBe(long);
          for (const piece of pieces) {
            expect(piece.length).toBeLessThanOrEqual(MAX_OUTPUT_CHARACTERS);
            expect(piece.isWellFormed()).toBe(long.isWellFormed());
          }
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("the client's side", () => {
  const request = (artifacts: readonly string[]): EvaluationRequest => ({
    kind: "benchmark",
    invocationId: ID,
    arguments: [],
    artifacts,
  });
  const data = Buffer.from('{"score":1}').toString("base64");
  const artifact = {
    version: 2,
    type: "artifact",
    path: PATH,
    size: 11,
    sha256: digest('{"score":1}'),
    data_base64: data,
  };
  const result = { version: 2, type: "result", status: "COMPLETED", sky_exit_code: 0, remote_job_id: 7 };
  const acked = { version: 2, type: "acked", invocation_id: ID };
  /** Reads lines in order; gives the types, or the first refusal. */
  const readAll = (artifacts: readonly string[], lines: readonly (unknown | string)[]) => {
    const reader = new FrameReader(request(artifacts), digest);
    const types: string[] = [];
    for (const line of lines) {
      const frame = reader.read(bytes(typeof line === "string" ? line : `${JSON.stringify(line)}\n`));
      if (!frame.ok) return frame.error;
      types.push(frame.value.type);
    }
    return types;
  };

  const accepted: readonly (readonly [string, readonly string[], readonly unknown[], readonly string[]])[] = [
    ["a run", [], [{ version: 2, type: "stdout", data: "a" }, result, acked], ["stdout", "result", "acked"]],
    ["a run with an artifact", [PATH], [artifact, result], ["artifact", "result"]],
    [
      "a failure without the artifact",
      [PATH],
      [{ ...result, status: "APPLICATION_FAILED", sky_exit_code: 100 }],
      ["result"],
    ],
    ["a cancellation", [], [{ ...result, status: "CANCELLED", sky_exit_code: 103 }], ["result"]],
    ["an error of one client line", [], [{ version: 2, type: "error", error: "E" }], ["error"]],
    ["an error of the other", [], [{ version: 2, type: "error", error: "E", message: "m" }], ["error"]],
  ];
  test.each(accepted)("takes %s", (_, artifacts, lines, types) => {
    expect(readAll(artifacts, lines)).toEqual([...types]);
  });

  const bad64 = (value: string) => ({ ...artifact, data_base64: value });
  const refused: readonly (readonly [string, readonly string[], readonly unknown[], string])[] = [
    ["a line without an end", [], [JSON.stringify(result)], "invalid frame"],
    ["nothing", [], [""], "invalid frame"],
    ["a line above 1 MiB", [], [`${" ".repeat(MAX_FRAME_BYTES)}\n`], "invalid frame"],
    ["no JSON", [], ["x\n"], "invalid frame"],
    ["a list", [], [[1]], "invalid frame"],
    ["version 1", [], [{ ...result, version: 1 }], "invalid frame"],
    ["version true", [], [{ ...result, version: true }], "invalid frame"],
    ["version 2.0", [], [`${JSON.stringify(result).replace(":2", ":2.0")}\n`], "invalid frame"],
    ["no version", [], [{ type: "stdout", data: "" }], "invalid frame"],
    ["an unknown type", [], [{ version: 2, type: "progress", data: "x" }], "invalid frame"],
    ["a type that is no text", [], [{ version: 2, type: 1 }], "invalid frame"],
    ["output that is no text", [], [{ version: 2, type: "stdout", data: 1 }], "invalid frame"],
    ["output with an extra key", [], [{ version: 2, type: "stderr", data: "", x: 1 }], "invalid frame"],
    ["output without data", [], [{ version: 2, type: "stdout" }], "invalid frame"],
    ["an unknown status", [], [{ ...result, status: "DONE" }], "invalid result"],
    ["a status that is no text", [], [{ ...result, status: 0 }], "invalid result"],
    ["an exit that is true", [], [{ ...result, sky_exit_code: true }], "invalid result"],
    ["an exit as text", [], [{ ...result, sky_exit_code: "0" }], "invalid result"],
    ["a job that is 7.0", [], [`${JSON.stringify(result).replace(":7", ":7.0")}\n`], "invalid result"],
    ["a result with an extra key", [], [{ ...result, exit_code: 0 }], "invalid result"],
    [
      "a result without a job",
      [],
      [{ version: 2, type: "result", status: "COMPLETED", sky_exit_code: 0 }],
      "invalid result",
    ],
    ["a missing artifact", [PATH], [result], "invalid result"],
    [
      "an artifact of a failure",
      [PATH],
      [artifact, { ...result, status: "APPLICATION_FAILED" }],
      "invalid result",
    ],
    ["an artifact that nobody asked for", [], [artifact], "invalid artifact"],
    ["another artifact", [PATH], [{ ...artifact, path: "/etc/passwd" }], "invalid artifact"],
    ["a second artifact", [PATH], [artifact, artifact], "invalid artifact"],
    ["no base64", [PATH], [bad64("!!!!")], "invalid artifact"],
    ["base64 with a line end", [PATH], [bad64(`${data}\n`)], "invalid artifact"],
    ["base64 without padding", [PATH], [bad64(data.replace("=", ""))], "invalid artifact"],
    ["another size", [PATH], [{ ...artifact, size: 12 }], "invalid artifact"],
    ["a size that is true", [PATH], [{ ...artifact, size: true }], "invalid artifact"],
    ["a size above the limit", [PATH], [{ ...artifact, size: MAX_ARTIFACT_BYTES + 1 }], "invalid artifact"],
    ["another digest", [PATH], [{ ...artifact, sha256: "0".repeat(64) }], "invalid artifact"],
    ["a digest that is no text", [PATH], [{ ...artifact, sha256: 1 }], "invalid artifact"],
    ["an artifact with an extra key", [PATH], [{ ...artifact, mode: 1 }], "invalid artifact"],
    [
      "an acknowledgement of another",
      [],
      [{ ...acked, invocation_id: "f".repeat(32) }],
      "invalid acknowledgement",
    ],
    ["an acknowledgement with an extra key", [], [{ ...acked, x: 1 }], "invalid acknowledgement"],
    ["an error with an extra key", [], [{ version: 2, type: "error", error: "E", code: 1 }], "invalid frame"],
    ["an error that is no text", [], [{ version: 2, type: "error", error: 1 }], "invalid frame"],
  ];
  test.each(refused)("refuses %s", (_, artifacts, lines, why) => {
    expect(readAll(artifacts, lines)).toContain(`returned an ${why}`);
  });
  test("reads back every frame that is written, of either line", () => {
    const frame = fc.oneof(
      fc.record({
        type: fc.constantFrom("stdout" as const, "stderr" as const),
        data: fc.string({ unit: "grapheme", maxLength: 200 }),
      }),
      fc.record({
        type: fc.constant("result" as const),
        status: fc.constantFrom("COMPLETED" as const, "CANCELLED" as const),
        skyExitCode: fc.integer(),
        remoteJobId: fc.integer(),
      }),
      fc.uint8Array({ maxLength: 300 }).map((content) => ({
        type: "artifact" as const,
        artifact: {
          path: PATH,
          size: content.length,
          sha256: digest(content),
          dataBase64: Buffer.from(content).toString("base64"),
        },
      })),
    );
    fc.assert(
      fc.property(frame, fc.constantFrom("mainline" as const, "campaign" as const), (written, dialect) => {
        const reader = new FrameReader(request(written.type === "artifact" ? [PATH] : []), digest);
        expect(reader.read(bytes(encodeFrame(written, dialect)))).toEqual({ ok: true, value: written });
      }),
    );
  });
  test("base64 gives back any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (content) => {
        expect(decodeBase64(Buffer.from(content).toString("base64"))).toEqual(content);
      }),
    );
  });
});
