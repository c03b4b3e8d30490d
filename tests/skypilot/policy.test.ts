import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BINARY, ROOT } from "../acceptance/run.ts";

const python = process.env.NEURARCH_TEST_SKY_PYTHON;

interface Outcome {
  readonly lines: readonly (readonly [level: string, text: string])[];
  readonly task?: {
    readonly resources: { readonly accelerators: unknown };
    readonly envs: Record<string, string>;
  };
  readonly same?: boolean;
  readonly refused?: string;
}

const task = (accelerators: string, more = "") =>
  `resources: {accelerators: ${accelerators}}\nenvs: {NEURARCH_MODEL: Qwen/Qwen3-0.6B, NEURARCH_BATCH: "1", NEURARCH_SEQ_LEN: "2048"${more}}\nsecrets: {TOKEN: planted-secret}\nrun: train\n`;

const serviceOf = (what: string) =>
  task("H200:1", `, NEURARCH_TASK: ${what}`).replace("secrets:", "service: {readiness_probe: /}\nsecrets:");

const folder = mkdtempSync(join(tmpdir(), "neurarch-policy-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
function siteFile(text: string): string {
  const path = join(folder, `${Bun.hash(text)}.toml`);
  writeFileSync(path, text);
  return path;
}

const CASES = {
  refused: { task: readFileSync(join(ROOT, "examples/finetune-qwen3-8b.sky.yaml"), "utf8") },
  fits: { task: task("L4:1") },
  warned: { task: task("H200:1") },
  rewritten: { task: task("A100-80GB:8"), attributes: { mutate: true } },
  "rewritten already": {
    task: task("H200:1", ", NEURARCH_REWRITTEN: 'at batch 1: A100-80GB:8 to H200:1 with 8 in all'"),
    attributes: { mutate: true },
  },
  "rewritten, then changed": {
    task: task("H200:1", ", NEURARCH_REWRITTEN: 'at batch 4: A100-80GB:8 to H200:1 with 32 in all'"),
    attributes: { mutate: true },
  },
  "no model": { task: "resources: {accelerators: H100:8}\nrun: train\n" },
  "a controller": { task: task("T4:1"), request_name: "jobs.launch_controller" },
  "a service that trains": { task: serviceOf("train"), request_name: "serve.up" },
  "a service": { task: serviceOf("serve"), request_name: "serve.up" },
  "more than a cluster's card": {
    task: task("H200:1"),
    request_name: "exec",
    attributes: { mutate: true },
  },
  "a capped cost, over the site's file": {
    task: task("L4:1", ', NEURARCH_HOURS: "100"'),
    attributes: { max_cost_usd: 5, config: siteFile("max_cost_usd = 1000\n") },
  },
  "a cap of the site's file": {
    task: task("L4:1", ', NEURARCH_HOURS: "100"'),
    attributes: { config: siteFile("max_cost_usd = 5\n") },
  },
  "a capped cost": { task: task("L4:1", ', NEURARCH_HOURS: "100"'), attributes: { max_cost_usd: 5 } },
} as const;
type Name = keyof typeof CASES;

if (python === undefined) {
  test.skipIf(process.env.CI !== "true")(
    "NEURARCH_TEST_SKY_PYTHON names a Python with skypilot 0.13.0",
    () => {
      expect(python).toBeDefined();
    },
  );
} else {
  describe("the built executable behind the Python policy, in SkyPilot itself", () => {
    const outcomes = new Map<Name, Outcome>();
    beforeAll(async () => {
      const plan = {
        shim: join(ROOT, "python-shim"),
        texts: [],
        cases: Object.values(CASES).map((one) => ({
          ...one,
          attributes: { ...("attributes" in one ? one.attributes : {}), binary: BINARY },
        })),
      };
      const child = Bun.spawn([python, join(import.meta.dir, "shim_driver.py")], {
        stdin: new Blob([JSON.stringify(plan)]),
        stdout: "pipe",
        env: { PATH: process.env.PATH, PYTHONDONTWRITEBYTECODE: "1" },
      });
      const { cases } = JSON.parse((await new Response(child.stdout).text()).trim().split("\n").at(-1)!);
      Object.keys(CASES).forEach((name, index) => void outcomes.set(name as Name, cases[index]));
    }, 60_000);
    const of = (name: Name) => outcomes.get(name)!;

    test("what cannot hold the job is refused with the sentence", () => {
      expect(of("refused").refused).toStartWith(
        "Neurarch: Qwen/Qwen3-8B needs 339.4 GB to train at batch 8 per device",
      );
      expect(of("refused").refused).toEndWith("Change `accelerators:` and resubmit.");
    });

    test("what fits goes on unchanged and without a word", () => {
      expect(of("fits")).toMatchObject({ same: true, lines: [] });
    });

    test("an over-request is warned about and goes on unchanged", () => {
      expect(of("warned").same).toBe(true);
      expect(of("warned").lines).toEqual([
        ["WARNING", expect.stringMatching(/^Neurarch: H200:1 \(141 GB\) is over-requested: /)],
      ]);
    });

    test("with mutate it is rewritten, told once, and nothing else changes but the mark", () => {
      const { task: after, lines } = of("rewritten");
      expect(after?.resources.accelerators).toEqual({ H200: 1 });
      expect(after?.envs).toEqual({
        NEURARCH_MODEL: "Qwen/Qwen3-0.6B",
        NEURARCH_BATCH: "1",
        NEURARCH_SEQ_LEN: "2048",
        NEURARCH_REWRITTEN: "at batch 1: A100-80GB:8 to H200:1 with 8 in all",
      });
      expect(lines).toEqual([
        ["WARNING", expect.stringMatching(/^Neurarch: rewrote A100-80GB:8 to H200:1: /)],
      ]);
    });

    test("judging the result again rewrites nothing, unless the job was changed since", () => {
      expect(of("rewritten already")).toMatchObject({ same: true, lines: [] });
      expect(of("rewritten, then changed").task?.resources.accelerators).not.toEqual({ H200: 1 });
    });

    test("no model, a controller: admitted without a word", () => {
      for (const name of ["no model", "a controller"] as const)
        expect(of(name)).toMatchObject({ same: true, lines: [] });
    });

    test("a run over the cap is refused with rate, source and date", () => {
      expect(of("a capped cost").refused).toMatch(
        /\$80\.00: .*\$0\.80 per card-hour \(Modal's on-demand list, 2026-08-19\).*over the cap of \$5\.00/,
      );
    });

    test("the class's settings lie over the site's file", () => {
      for (const name of ["a capped cost, over the site's file", "a cap of the site's file"] as const)
        expect(of(name).refused).toContain("over the cap of $5.00");
    });

    test("a service is judged where it says that it trains", () => {
      expect(of("a service that trains").lines).toEqual([
        ["WARNING", expect.stringMatching(/^Neurarch: H200:1 \(141 GB\) is over-requested: /)],
      ]);
      expect(of("a service")).toMatchObject({ same: true, lines: [] });
    });

    test("on a cluster a rewrite stands beside the cards asked for", () => {
      const { task: after, lines } = of("more than a cluster's card");
      expect(after?.resources).toMatchObject({
        any_of: expect.arrayContaining([
          expect.objectContaining({ accelerators: { H200: 1 } }),
          expect.objectContaining({ accelerators: { L4: 1 } }),
        ]),
      });
      expect(lines).toEqual([
        ["WARNING", expect.stringMatching(/^Neurarch: H200:1 \(141 GB\) is over-requested: .* holds it\.$/)],
      ]);
    });

    test("no secret is told", () => {
      expect(
        JSON.stringify([...outcomes.values()].map(({ lines, refused }) => [lines, refused])),
      ).not.toContain("planted-secret");
    });
  });
}
