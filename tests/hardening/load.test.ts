import { expect, test } from "bun:test";
import { join } from "node:path";
import { ROOT } from "./kit.ts";

test("the load runs, nothing fails and every submit has its line (make load measures)", () => {
  const words = ["--seconds", "3", "--hours", "0.01", "--parallel", "16"];
  const child = Bun.spawnSync(
    [join(ROOT, "node_modules/.bin/bun"), join(import.meta.dir, "load.ts"), ...words],
    {
      timeout: 110_000,
    },
  );
  expect({ exit: child.exitCode, err: child.stderr.toString() }).toEqual({ exit: 0, err: "" });
  const page = child.stdout.toString();
  expect(page).toMatch(/^\| failed \| 0 \| none \| yes \|$/m);
  expect(page).toMatch(/^\| lines in the ledger \| [\d,]+ \| as many as submits \| yes \|$/m);
}, 120_000);
