import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../acceptance/run.ts";
import { serve } from "../serve/server.ts";

const python = process.env.NEURARCH_TEST_SKY_PYTHON;

interface Outcome {
  readonly refused?: string;
  readonly before?: { readonly resources: { readonly accelerators: Record<string, number> } };
  readonly after?: { readonly resources: { readonly accelerators: Record<string, number> } };
  readonly same_config?: boolean;
}

const task = (accelerators: string) =>
  `name: t\nresources: {accelerators: ${accelerators}, image_id: docker:x/y}\nenvs: {NEURARCH_MODEL: Qwen/Qwen3-0.6B, NEURARCH_BATCH: "1", NEURARCH_SEQ_LEN: "2048", EMPTY: ""}\nsecrets: {TOKEN: planted-secret}\nsetup: "${"long ".repeat(60)}"\nrun: train\n`;

describe("the built executable behind SkyPilot's own REST client", () => {
  test.skipIf(python === undefined && process.env.CI !== "true")("refuses, admits and rewrites", async () => {
    expect(python).toBeDefined();
    const server = await serve(["--mutate"]);
    try {
      const cases = [
        readFileSync(join(ROOT, "examples/finetune-qwen3-8b.sky.yaml"), "utf8"),
        task("L4:1"),
        task("A100-80GB:8"),
        task("['L4:1', 'T4:1']"),
        "resources: {accelerators: H100:8}\nrun: serve\n",
      ];
      const child = Bun.spawn([python!, join(import.meta.dir, "rest_driver.py")], {
        stdin: new Blob([JSON.stringify({ url: `${server.address}/policy`, cases })]),
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, err] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      if ((await child.exited) !== 0) throw new Error(err);
      const [refused, fits, rewritten, dropped, silent] = JSON.parse(out) as Outcome[];
      expect(refused?.refused).toContain(
        "Neurarch: Qwen/Qwen3-8B needs 339.4 GB to train at batch 8 per device",
      );
      expect(fits?.after).toEqual(fits!.before);
      expect(fits?.same_config).toBe(true);
      expect(rewritten?.before?.resources.accelerators).toEqual({ "A100-80GB": 8 });
      expect(rewritten?.after?.resources.accelerators).not.toEqual({ "A100-80GB": 8 });
      expect(rewritten?.after?.resources).toMatchObject({
        image_id: rewritten?.before?.resources["image_id" as never],
      });
      expect(rewritten?.same_config).toBe(true);
      expect(dropped?.after?.resources.accelerators).toEqual({ L4: 1 });
      expect(silent?.after).toEqual(silent!.before);
      expect(server.log()).not.toContain("planted-secret");
    } finally {
      await server.stop();
    }
  });
});
