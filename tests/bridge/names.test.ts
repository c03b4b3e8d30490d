import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  clusterName,
  jobName,
  requestDigest,
  resourceFingerprint,
  tokenFileName,
} from "../../src/bridge/names.ts";
import { canonicalJson, type Json } from "../../src/bridge/python-json.ts";
import type { ResolvedResources } from "../../src/bridge/types.ts";
import { digest } from "../../src/host/private-files.ts";

const PLAIN: ResolvedResources = {
  profileName: "test",
  infra: "slurm/beverin/mi300",
  acceleratorType: "MI300A",
  nodes: 1,
  acceleratorsPerNode: 4,
  cpusPerNode: 192,
  memoryGbPerNode: null,
  exclusive: true,
  runtimeImage: null,
  commandPrefix: null,
  allocationTime: "08:00:00",
  remoteArtifactRoot: null,
};
const FULL: ResolvedResources = {
  ...PLAIN,
  memoryGbPerNode: 480,
  runtimeImage: "docker:img",
  commandPrefix: ["env", "-C", "/", "X=1"],
};
const cluster = (runId: string, resources: ResolvedResources) =>
  clusterName(runId, resourceFingerprint(resources, "rocm", digest), digest);

describe("names that both sides of a campaign must agree on", () => {
  // Names that the public Python bridge was seen to use for these resources.
  test.each([
    ["run-1", PLAIN, "vibesys-run-1-b4ce3ad122f5"],
    ["run-1", FULL, "vibesys-run-1-011dc5612b9a"],
  ] as const)("the cluster of %s", (runId, resources, expected) => {
    expect(cluster(runId, resources)).toBe(expected);
  });
  test("the job of an id, and the token file of a kind", () => {
    expect(jobName("a".repeat(32), 1, digest)).toBe("vibesys-inv-3ba3f5f43b92-a1");
    expect(jobName("b97e4dd58bcb400cb0f8cc2434713c50", 2, digest)).toBe("vibesys-inv-9df9e1c9468f-a2");
    expect(tokenFileName("accuracy", [], digest)).toBe("pending-bf6db404e30a6528");
    expect(
      tokenFileName("benchmark", ["--output-json", "/tmp/vibesys-framework-benchmark-t1.json"], digest),
    ).toBe("pending-ad1ba0155133625b");
    expect(tokenFileName("benchmark", ["--output-json", "/etc/passwd"], digest)).toBe(
      "pending-8a390fb777c8a97a",
    );
  });
  test("the profile's name and artifact root do not change the cluster, everything else does", () => {
    expect(cluster("r", { ...FULL, profileName: "other", remoteArtifactRoot: "/x" })).toBe(
      cluster("r", FULL),
    );
    for (const change of [
      { infra: "slurm/other" },
      { acceleratorType: "H100" },
      { nodes: 2 },
      { acceleratorsPerNode: 8 },
      { cpusPerNode: null },
      { memoryGbPerNode: 64 },
      { exclusive: false },
      { runtimeImage: null },
      { commandPrefix: ["env"] },
      { allocationTime: null },
    ] satisfies Partial<ResolvedResources>[])
      expect(cluster("r", { ...FULL, ...change })).not.toBe(cluster("r", FULL));
  });
  test("a cluster's name has at most 28 plain characters, and runs with one beginning differ", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1 }), (runId) => {
        expect(cluster(runId, PLAIN)).toMatch(/^vibesys-[a-z0-9-]{1,7}-[0-9a-f]{12}$/);
        expect(cluster(`${runId}x`, PLAIN)).not.toBe(cluster(runId, PLAIN));
      }),
    );
    expect(cluster("2026-0820-A", PLAIN)).toStartWith("vibesys-2026-08-");
    expect(cluster("Run_É.42", PLAIN)).toStartWith("vibesys-run---4-");
  });
  test("the digest of a request counts command, arguments and setup, and not the id", () => {
    const request = { kind: "accuracy", invocationId: "a".repeat(32), arguments: [], artifacts: [] } as const;
    const base = requestDigest(request, ["sh", "x"], null, digest);
    expect(requestDigest({ ...request, invocationId: "b".repeat(32) }, ["sh", "x"], null, digest)).toBe(base);
    expect(requestDigest(request, ["sh", "y"], null, digest)).not.toBe(base);
    expect(requestDigest(request, ["sh", "x"], "true", digest)).not.toBe(base);
    expect(requestDigest(request, ["sh", "x"], "false", digest)).not.toBe(
      requestDigest(request, ["sh", "x"], "true", digest),
    );
  });
});

describe("JSON as Python writes it", () => {
  test.each<[Json, string]>([
    [{ b: 1, a: [true, null, "x"] }, '{"a":[true,null,"x"],"b":1}'],
    ['é\u2028\u007f\u001f"\\/', '"\\u00e9\\u2028\\u007f\\u001f\\"\\\\/"'],
    ["😀", '"\\ud83d\\ude00"'],
    [{ "\uffff": 1, "😀": 2 }, '{"\\uffff":1,"\\ud83d\\ude00":2}'],
    [{ a: undefined }, "{}"],
    [[], "[]"],
  ])("%j", (value, expected) => {
    expect(canonicalJson(value)).toBe(expected);
  });
  test("is JSON, and ASCII", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value as Json);
        expect(text).toMatch(/^[\x20-\x7e]*$/);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});
