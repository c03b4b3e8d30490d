import { afterAll } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { factsOf } from "../verdict/support.ts";

export { factsOf };

const folders: string[] = [];

/** A folder of this test run alone, gone at its end. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "sources-test-"));
  folders.push(folder);
  return folder;
}

afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Writes files, by path below `folder`. */
export function lay(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

/** A program in `folder` that runs as a shell script. */
export function program(folder: string, name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** A small Llama's config with `vocab` rows, so that it is known which one answered. */
export function config(vocab: number, over: Record<string, unknown> = {}): string {
  return JSON.stringify({
    model_type: "llama",
    hidden_size: 64,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    intermediate_size: 128,
    vocab_size: vocab,
    ...over,
  });
}
