import { appendLine } from "../../src/host/append.ts";

/** Appends `count` numbered lines and says each number once its line is written. */
const [folder = "", name = "", writer = "", count = "0"] = process.argv.slice(2);
for (let index = 0; index < Number(count); index += 1) {
  const id = `${writer}-${index}`;
  const line = `${JSON.stringify({ id, filler: "x".repeat(200 + ((index * 37) % 900)) })}\n`;
  if (appendLine(folder, name, line) === null) process.stdout.write(`${id}\n`);
}
