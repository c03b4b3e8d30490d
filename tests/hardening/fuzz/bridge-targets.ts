import { createHash } from "node:crypto";
import { LogReader } from "../../../src/bridge/evidence/log-reader.ts";
import { readCluster, readQueue, submittedId } from "../../../src/bridge/evidence/views.ts";
import { decodeLog, encodeEntry } from "../../../src/bridge/journal/log.ts";
import { readRecord } from "../../../src/bridge/journal/record.ts";
import { Redactor, redact } from "../../../src/bridge/redaction.ts";
import { rewriteCommand } from "../../../src/bridge/rewrite.ts";
import { quoteWords, shellWords } from "../../../src/bridge/shell-words.ts";
import { FrameReader } from "../../../src/bridge/wire/client.ts";
import { encodeFrame } from "../../../src/bridge/wire/frames.ts";
import { encodeRequest, parseAck, parseRequest } from "../../../src/bridge/wire/request.ts";
import { SKY_OUTPUTS, WIRE_LINES } from "./corpus.ts";
import { mutated, mutatedJson, ODD, type Random } from "./random.ts";
import { hold, isOneLine, type Target, target } from "./target.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const sha256 = (value: Uint8Array | string) => createHash("sha256").update(value).digest("hex");
const JSON_PIECES = ['"', ":", ",", "{", "}", "[", "]", "2", "true", "null", "version", "type", ...ODD];
const ID = "56193c97fb1c45e6b8c174b0a61e81f0";

function line(random: Random): string {
  const sample = random.of(WIRE_LINES);
  if (random.once(2)) return `${mutated(random, sample, JSON_PIECES)}${random.once(8) ? "" : "\n"}`;
  return `${JSON.stringify(mutatedJson(random, JSON.parse(sample)))}\n`;
}

/** Bytes that need not be text. */
function raw(random: Random, text: string): Uint8Array {
  const made = bytes(text);
  for (let times = random.int(3); times > 0 && made.length > 0; times--)
    made[random.int(made.length)] = random.int(256);
  return made;
}

const SKY_PIECES = [
  "\u001b[36m(task, pid=1)\u001b[0m ",
  "Tailing logs of job 4 on cluster 'c1'...\n",
  "\n",
  "\r",
  "srun: error: ",
  "✓ Job finished (status: SUCCEEDED).",
  "Job submitted, ID: 4",
  "__NEURARCH_BRIDGE_END_abc__ exit=0\n",
  "__NEURARCH_BRIDGE_",
  "[",
  "{",
  "}",
  "]",
  '"c1"',
  "null",
  ...ODD,
];
const skyText = (random: Random) =>
  random.once(4)
    ? random.soup(SKY_PIECES, 40)
    : mutated(random, random.of(SKY_OUTPUTS).slice(0, 6000), SKY_PIECES);

const SECRETS = ["s3cret-value-one", "multi\nline\nsecret", "hf_aaaaaaaaaaaaaaaaaaaa"];

export const BRIDGE_TARGETS: readonly Target[] = [
  target({
    name: "wire-request",
    input: line,
    check(text) {
      const read = parseRequest(bytes(text), "--output-json");
      parseAck(bytes(text), ID);
      if (!read.ok) return;
      const again = parseRequest(bytes(encodeRequest(read.value)), "--output-json");
      hold(
        again.ok && JSON.stringify(again.value) === JSON.stringify(read.value),
        "a request that reads otherwise when it is written again",
      );
    },
  }),
  target({
    name: "wire-frames",
    input: (random) => random.many(4, () => line(random)),
    check(lines) {
      const reader = new FrameReader(
        { invocationId: ID, artifacts: ["/tmp/vibesys-framework-benchmark-kit.json"] },
        sha256,
      );
      for (const one of lines) {
        const read = reader.read(bytes(one));
        if (!read.ok)
          return hold(isOneLine(read.error), `an error of more than one line: ${JSON.stringify(read.error)}`);
        const { value } = read;
        if (value.type !== "stdout" && value.type !== "stderr" && value.type !== "result") continue;
        // A broken surrogate is no text of the daemon's.
        if ("data" in value && !value.data.isWellFormed()) continue;
        const again = reader.read(bytes(encodeFrame(value, "campaign")));
        hold(
          again.ok && JSON.stringify(again.value) === JSON.stringify(value),
          "a frame that reads otherwise when it is written again",
        );
      }
    },
  }),
  target({
    name: "wire-bytes",
    input: (random) => [...raw(random, line(random))],
    check(numbers) {
      parseRequest(Uint8Array.from(numbers), "--output-json");
      new FrameReader({ invocationId: ID, artifacts: [] }, sha256).read(Uint8Array.from(numbers));
    },
  }),
  target({
    name: "sky-logs",
    share: 2,
    input: (random) => ({ text: skyText(random), cut: random.int(60) + 1 }),
    check({ text, cut }) {
      const whole = bytes(text);
      const read = (step: number) => {
        const reader = new LogReader({ clusterName: "c1", jobId: 4, nonce: "abc" });
        const out: Buffer[] = [];
        const emit = (piece: Uint8Array) => void out.push(Buffer.from(piece));
        for (let at = 0; at < whole.length; at += step) reader.take(whole.subarray(at, at + step), emit);
        const said = reader.end(true, emit);
        return { out: Buffer.concat(out).toString("latin1"), said: JSON.stringify(said) };
      };
      const [one, other] = [read(Math.max(1, whole.length)), read(cut)];
      hold(one.out === other.out, "in pieces the program's bytes are others");
      hold(one.said === other.said, `in pieces the log says otherwise: ${one.said} ${other.said}`);
    },
  }),
  target({
    name: "sky-views",
    input: skyText,
    check(text) {
      for (const read of [readCluster(text, "c1", 1_700_000_000_000), readQueue(text, "c1")])
        if (!read.ok)
          hold(isOneLine(read.error), `an error of more than one line: ${JSON.stringify(read.error)}`);
      submittedId(text);
    },
  }),
  target({
    name: "journal-log",
    input: (random) => ({
      entries: random.many(5, () => random.soup(["a", "é", "{", "}", "1", " ", "\u{1f600}"], 20)),
      harm: random.once(2),
      at: random.int(400),
      byte: random.int(256),
    }),
    check({ entries, harm, at, byte }) {
      const whole = new Uint8Array(Buffer.concat(entries.map(encodeEntry)));
      const decoded = decodeLog(whole);
      hold(
        JSON.stringify(decoded.entries) === JSON.stringify(entries),
        "what was written is not what is read",
      );
      if (!harm || whole.length === 0) return;
      whole[at % whole.length] = byte;
      // An altered log gives none but entries that were written, in their order.
      let from = 0;
      for (const entry of decodeLog(whole).entries) {
        const found = entries.indexOf(entry, from);
        hold(found !== -1, `an entry that nobody wrote: ${JSON.stringify(entry)}`);
        from = found + 1;
      }
    },
  }),
  target({
    name: "journal-record",
    input: (random) => mutatedJson(random, RECORD),
    check(value) {
      readRecord(value, sha256 as never);
    },
  }),
  target({
    name: "redaction",
    input: (random) => ({
      text: random.soup(
        [
          ...SECRETS,
          "s3cret",
          "-value",
          "\n",
          "x",
          "line",
          "-----BEGIN PRIVATE KEY-----\n",
          "-----END PRIVATE KEY-----\n",
          ...ODD,
        ],
        16,
      ),
      cut: random.int(9) + 1,
    }),
    check({ text, cut }) {
      const masked = redact(text, SECRETS);
      for (const secret of SECRETS) hold(!masked.includes(secret), "a secret is left");
      const redactor = new Redactor(SECRETS);
      let pieces = "";
      for (let at = 0; at < text.length; at += cut) pieces += redactor.push(text.slice(at, at + cut));
      pieces += redactor.end();
      for (const secret of SECRETS) hold(!pieces.includes(secret), "in pieces a secret is left");
    },
  }),
  target({
    name: "shell-words",
    input: (random) => random.many(5, () => random.soup([...ODD.filter((one) => one !== "\0"), "a", "b"], 4)),
    check(words) {
      const read = shellWords(quoteWords(words));
      if (read.ok)
        hold(JSON.stringify(read.value) === JSON.stringify(words), `read as ${JSON.stringify(read.value)}`);
      shellWords(words.join(" "));
      rewriteCommand(words);
    },
  }),
];

const RECORD = {
  invocationId: ID,
  kind: "accuracy",
  phase: "SUBMITTED",
  spooledBytes: 10,
  deliveredBytes: 2,
  result: null,
  request: { arguments: [], artifacts: [] },
};
