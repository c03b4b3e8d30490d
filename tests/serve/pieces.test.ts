import { describe, expect, test } from "bun:test";
import { isAllowed, keysOf } from "../../src/serve/auth.ts";
import { withPolicyEnvironment } from "../../src/serve/environment.ts";
import { isLocal, listenOf } from "../../src/serve/listen.ts";
import { Metrics } from "../../src/serve/metrics.ts";
import { systemdUnit } from "../../src/serve/unit.ts";

describe("an address to listen on", () => {
  const rows: [string, ReturnType<typeof listenOf> | null, boolean][] = [
    ["127.0.0.1:8765", { kind: "tcp", host: "127.0.0.1", port: 8765 }, true],
    [":0", { kind: "tcp", host: "127.0.0.1", port: 0 }, true],
    ["localhost:80", { kind: "tcp", host: "localhost", port: 80 }, true],
    ["127.9.9.9:80", { kind: "tcp", host: "127.9.9.9", port: 80 }, true],
    ["[::1]:80", { kind: "tcp", host: "::1", port: 80 }, true],
    ["[::]:80", { kind: "tcp", host: "::", port: 80 }, false],
    ["0.0.0.0:80", { kind: "tcp", host: "0.0.0.0", port: 80 }, false],
    ["gate.example.org:443", { kind: "tcp", host: "gate.example.org", port: 443 }, false],
    ["127.0.0.1.example.org:1", { kind: "tcp", host: "127.0.0.1.example.org", port: 1 }, false],
    ["unix:/run/gate.sock", { kind: "unix", path: "/run/gate.sock" }, true],
    ["unix:gate.sock", null, false],
    [`unix:/${"x".repeat(107)}`, null, false],
    ["8765", null, false],
    ["127.0.0.1:65536", null, false],
    ["::1:80", null, false],
    ["", null, false],
  ];
  test.each(rows)("%p", (text, wanted, local) => {
    if (wanted === null) expect(() => listenOf(text)).toThrow(/^--listen/);
    else {
      expect(listenOf(text)).toEqual(wanted);
      expect(isLocal(wanted)).toBe(local);
    }
  });
});

describe("a key", () => {
  const keys = keysOf("# SkyPilot\nsky:correct horse\n\ntoken-of-ci\n", "keys");
  const basic = (text: string) => `Basic ${btoa(text)}`;
  const rows: [string, string | null, boolean][] = [
    ["the pair", basic("sky:correct horse"), true],
    ["the token", "Bearer token-of-ci", true],
    ["in another case of the scheme", "bearer token-of-ci", true],
    ["none", null, false],
    ["nothing", "", false],
    ["another password", basic("sky:wrong horse"), false],
    ["a part of it", basic("sky:correct"), false],
    ["the token as a pair", basic("token-of-ci"), false],
    ["the pair as a token", "Bearer sky:correct", false],
    ["a comment", basic("# SkyPilot"), false],
    ["no base64", "Basic %%%", false],
    ["another scheme", "Digest token-of-ci", false],
  ];
  test.each(rows)("%s", (_, header, allowed) => expect(isAllowed(keys, header)).toBe(allowed));
  test("a file without keys, or with a short one, is refused", () => {
    expect(() => keysOf("# none\n", "keys")).toThrow("keys holds no key");
    expect(() => keysOf("long enough\nshort\n", "keys")).toThrow(
      "key 2 of keys is shorter than 8 characters",
    );
  });
});

describe("settings of the environment", () => {
  const env = { NEURARCH_POLICY_MUTATE: "yes", NEURARCH_POLICY_MAX_COST_USD: "50", NEURARCH_POLICY_CLI: "" };
  test("stand where no flag does", () =>
    expect(withPolicyEnvironment({ values: {}, switches: {} }, env)).toEqual({
      values: { "max-cost-usd": "50" },
      switches: { mutate: true },
    }));
  test("and below flags", () =>
    expect(
      withPolicyEnvironment({ values: { "max-cost-usd": "5" }, switches: { mutate: false } }, env),
    ).toEqual({ values: { "max-cost-usd": "5" }, switches: { mutate: false } }));
});

test("metrics count routes, verdicts and times", () => {
  const metrics = new Metrics({ version: "1.2.3", startMs: 1000 });
  metrics.answered("policy", 200, 0.002);
  metrics.answered("policy", 400, 0.3);
  metrics.answered("healthz", 200, 9);
  metrics.judged("skypilot", "refuse");
  const text = metrics.text(5);
  for (const line of [
    'neurarch_gate_build_info{version="1.2.3"} 1',
    'neurarch_gate_requests_total{route="policy",status="400"} 1',
    'neurarch_gate_judgements_total{adapter="skypilot",decision="refuse"} 1',
    'neurarch_gate_answer_seconds_bucket{le="0.001"} 0',
    'neurarch_gate_answer_seconds_bucket{le="0.0025"} 1',
    'neurarch_gate_answer_seconds_bucket{le="+Inf"} 2',
    "neurarch_gate_answer_seconds_sum 0.302",
    "neurarch_gate_answer_seconds_count 2",
    "process_resident_memory_bytes 5",
  ])
    expect(text.split("\n")).toContain(line);
  // Every sample's family is announced before it, and none twice.
  const announced = text.split("\n").filter((line) => line.startsWith("# TYPE"));
  expect(new Set(announced).size).toBe(announced.length);
});

test("a unit quotes its words", () => {
  const unit = systemdUnit("/opt/neurarch gate", ["--cli", 'a "b" $HOME 5%', "--mutate"]);
  expect(unit).toContain('ExecStart="/opt/neurarch gate" serve --cli "a \\"b\\" $$HOME 5%%" --mutate\n');
});
