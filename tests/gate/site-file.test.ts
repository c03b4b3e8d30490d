import { describe, expect, test } from "bun:test";
import { parseSiteFile } from "../../src/gate/site-file.ts";
import type { GateError } from "../../src/lib/errors.ts";

describe("a site file", () => {
  test("every key", () => {
    expect(
      parseSiteFile(
        `mode = "reject"
mutate = true
fail_closed = false
max_cost_usd = 500
headroom = 1.2
sizing = "cli"
cli = "node /opt/neurarch.mjs"
timeout_s = 4.5
cluster = "lab"
annotate = true
default_gpu_type = "a100"
hours_from_time = true
cards = "/etc/neurarch/cards.json"
[prices]
H100 = 2.0
[gpu_map]
a100 = "A100-80"
[partition_map]
debug = "a10"
[defaults]
precision = "bf16"
grad-accum = 4
padding-mask = true
`,
        "gate.toml",
      ),
    ).toMatchObject({
      mode: "reject",
      headroom: 1.2,
      gpu_map: { a100: "A100-80" },
      defaults: { "grad-accum": 4 },
    });
  });

  const rows: readonly (readonly [text: string, message: string, hint: string])[] = [
    ["mode = 'strict'", "`mode` in gate.toml is not one of warn, reject", "Correct the value."],
    ["headroom = 0.5", "`headroom` in gate.toml is not 1 or more", "Correct the value."],
    ["max_cost_usd = '5'", "`max_cost_usd` in gate.toml is not a number", "Correct the value."],
    ["mutate = 1", "`mutate` in gate.toml is not true or false", "Correct the value."],
    ["gpu_mpa = 'x'", "gate.toml has the unknown key `gpu_mpa`", "Did you mean `gpu_map`?"],
    ["mode = ", "gate.toml:1:8 is not TOML: invalid value", "Correct the line, or remove the file."],
    ["timeout_s = inf", "`timeout_s` in gate.toml is not a finite number", "Correct the value."],
  ];
  for (const [text, message, hint] of rows) {
    test(text, () => {
      try {
        parseSiteFile(text, "gate.toml");
      } catch (error) {
        const { code, message: told, hint: told2 } = error as GateError;
        expect({ code, message: told, hint: told2 }).toEqual({ code: "settings-invalid", message, hint });
        return;
      }
      throw new Error("it was read");
    });
  }
});

test("the example is one, and every key of it counts", async () => {
  const { loadSettings } = await import("../../src/gate/load.ts");
  const config = `${import.meta.dir}/../../examples/gate.toml`;
  const settings = await loadSettings({ values: { config }, switches: {} });
  expect(settings).toMatchObject({
    maxCostUsd: 500,
    hoursFromTime: true,
    defaultGpuType: "a100",
    timeoutS: 4,
    partitionMap: { debug: "a10g" },
    factDefaults: { precision: "bf16" },
  });
  expect(settings.table.find("a100")).toMatchObject({ id: "A100-80", gb: 80 });
  expect(settings.table.find("h100")?.usdPerHour).toBe(2.5);
  expect(settings.table.mapped).toBe(true);
});

test("a path in a site file is a whole one", async () => {
  const { loadSettings } = await import("../../src/gate/load.ts");
  const config = `${import.meta.dir}/relative.toml`;
  await Bun.write(config, 'prices = "prices.json"\n');
  try {
    await expect(loadSettings({ values: { config }, switches: {} })).rejects.toThrow(
      "`prices` of the site file is prices.json, a path that starts in the user's folder",
    );
  } finally {
    await Bun.file(config).delete();
  }
});
