import { appendLine } from "../../src/host/append.ts";
import { lineOf } from "../../src/ledger/entry.ts";
import { verdictEntry } from "./entries.ts";

/** Appends `count` verdicts with rotation at a small size, and says each id once its line is written. */
const [folder = "", name = "", writer = "", count = "0"] = process.argv.slice(2);
const rotation = { maxBytes: 60_000, maxAgeMs: null, keepMs: null };
for (let index = 0; index < Number(count); index += 1) {
  const id = `writer${writer}-${index}`;
  const line = lineOf(verdictEntry({ id, model: "m".repeat((index * 37) % 190) }));
  if (appendLine(folder, name, line, rotation) === null) process.stdout.write(`${id}\n`);
}
