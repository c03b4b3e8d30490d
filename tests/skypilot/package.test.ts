import { expect, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../acceptance/run.ts";

const python = process.env.NEURARCH_TEST_SKY_PYTHON;

// Under CI it runs and fails where something is missing; elsewhere it is left out.
test.skipIf(python === undefined && process.env.CI !== "true")(
  "the Python policy installs with pip from its folder, and is a few kilobytes",
  () => {
    const folder = mkdtempSync(join(tmpdir(), "neurarch-pip-"));
    try {
      // pip writes into the folder that it builds from.
      cpSync(join(ROOT, "python-shim"), join(folder, "source"), { recursive: true });
      const target = join(folder, "target");
      const words = [
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-compile",
        "--disable-pip-version-check",
      ];
      const ran = Bun.spawnSync([python!, ...words, "--target", target, join(folder, "source")], {
        env: { ...process.env, HOME: folder },
        stderr: "pipe",
      });
      expect({ exit: ran.exitCode, err: ran.stderr.toString() }).toMatchObject({ exit: 0 });
      const files = readdirSync(target, { recursive: true, encoding: "utf8" }).filter((name) =>
        statSync(join(target, name)).isFile(),
      );
      expect(files).toContain("neurarch_gate/__init__.py");
      const bytes = files.reduce((sum, name) => sum + statSync(join(target, name)).size, 0);
      expect(bytes).toBeLessThan(24_000);
      const where = Bun.spawnSync([python!, "-c", "import neurarch_gate; print(neurarch_gate.__file__)"], {
        env: { ...process.env, PYTHONPATH: target, HOME: folder, PYTHONDONTWRITEBYTECODE: "1" },
      });
      expect(where.stdout.toString().trim()).toBe(join(target, "neurarch_gate/__init__.py"));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  60_000,
);
