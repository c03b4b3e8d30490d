import { flagFacts } from "../../facts/flags.ts";
import { readFacts } from "../../facts/read.ts";
import { loadSettings } from "../../gate/load.ts";
import { makeSizer, SKYPILOT_DEADLINE_MS } from "../../gate/size.ts";
import { environment, showsUnicode, terminalColumns, workingDirectory } from "../../host/env.ts";
import { type ErrorCode, GateError } from "../../lib/errors.ts";
import { jsonText } from "../../render/json-line.ts";
import type { Unsized } from "../../sizing/types.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { jobFlags, OUTPUT_FLAGS, pick, SITE_FLAGS } from "../flags.ts";

// A cost needs a request, so hours mean nothing here.
const { hours: _, ...JOB_FLAGS } = jobFlags({ withModel: false });

export const command: Command = {
  name: "size",
  description: "Size a model's training peak, without a request",
  args: {
    model: {
      type: "positional",
      description: "Hugging Face id, or a path to a config.json, its folder or a .neurarch.json",
    },
    ...JOB_FLAGS,
    batch: { type: "string", valueHint: "N", description: "samples per step, on all cards together (1)" },
    explain: { type: "boolean", description: "every term, its formula and its bytes" },
    plot: { type: "boolean", description: "draw need by batch beside what each card holds" },
    "plot-svg": { type: "string", valueHint: "FILE", description: "write that drawing as SVG (- = stdout)" },
    config: SITE_FLAGS.config,
    cards: SITE_FLAGS.cards,
    "gpu-map": SITE_FLAGS["gpu-map"],
    headroom: SITE_FLAGS.headroom,
    sizing: SITE_FLAGS.sizing,
    cli: SITE_FLAGS.cli,
    "plan-url": SITE_FLAGS["plan-url"],
    timeout: SITE_FLAGS.timeout,
    ...OUTPUT_FLAGS,
  },
  examples: [
    ["neurarch-gate size Qwen/Qwen3-8B --batch 8", "the peak at batch 8 and 2048 tokens"],
    ["neurarch-gate size ./config.json --lora-rank 16 --explain", "a LoRA run, term by term"],
    ["neurarch-gate size gpt2 --precision bf16 --json", "for scripts"],
    ["neurarch-gate size Qwen/Qwen3-8B --batch 8 --plot", "need by batch, in the terminal"],
  ],
  run,
};

const CODE_OF: Record<Unsized["reason"], ErrorCode> = {
  "recipe-not-sized": "usage",
  "family-not-sized": "config-invalid",
  "config-invalid": "config-invalid",
  "model-not-found": "unreachable",
  "model-unreachable": "unreachable",
  "sizing-failed": "unreachable",
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const { values, switches, words } = input;
  const json = switches.json === true || values.output === "json";
  checkPlot(input, json);
  const settings = await loadSettings(input);
  const flags = { batch: "1", ...pick(values, JOB_FLAGS), model: words[0]! };
  const reading = readFacts(flagFacts(flags), { unknownKeys: "ignore", siteDefaults: settings.factDefaults });
  if (reading.kind !== "facts") {
    const problem = reading.kind === "unreadable" ? reading.problems[0]?.message : undefined;
    throw new GateError("usage", (problem ?? "the model's name is empty").replace(/\.$/, ""));
  }
  const { facts } = reading;
  const size = makeSizer(settings, {
    cwd: workingDirectory(),
    env: environment(),
    deadlineMs: SKYPILOT_DEADLINE_MS,
  });
  const sized = await size(facts);
  if (!sized.ok) {
    const { reason, message } = sized.error;
    const hint = reason === "recipe-not-sized" ? "Leave it out to size the job without it." : null;
    throw new GateError(CODE_OF[reason], message.replace(/\.$/, ""), hint);
  }
  const { sizing } = sized.value;
  const batch = facts.batch.value;
  const drawn = switches.plot === true || values["plot-svg"] !== undefined;
  const plot = drawn
    ? (await import("../../render/plot.ts")).plotOf({
        sizing,
        batch,
        headroom: settings.headroom,
        table: settings.table,
      })
    : null;
  if (plot !== null && values["plot-svg"] !== undefined) {
    const { plotSvg } = await import("../../render/plot-svg.ts");
    if (values["plot-svg"] === "-") return { out: plotSvg(plot), exit: 0 };
    await write(values["plot-svg"], plotSvg(plot));
  }
  if (json) {
    const { sizingDocument } = await import("../../render/json.ts");
    return { out: `${jsonText(sizingDocument(sizing, batch, switches.explain === true))}\n`, exit: 0 };
  }
  const { humanSizing, USUAL_WIDTH } = await import("../../render/human.ts");
  const width = terminalColumns() ?? USUAL_WIDTH;
  const texts: string[] = [];
  if (switches.explain === true) {
    const { explain } = await import("../../render/explain.ts");
    texts.push(explain({ sizing, batch, headroom: settings.headroom, facts }, width));
  }
  if (plot !== null && switches.plot === true) {
    const { plotText } = await import("../../render/plot-text.ts");
    texts.push(plotText(plot, { width, ascii: !showsUnicode() }));
  }
  if (texts.length === 0) texts.push(humanSizing(sizing, batch, settings.headroom, width));
  return { out: texts.join("\n"), exit: 0 };
}

/** A drawing on stdout leaves no room for another document there. */
function checkPlot({ values, switches }: ParsedWords, json: boolean): void {
  const refuse = (flag: string, other: string, hint: string) => {
    throw new GateError("usage", `${flag} and ${other} both write to stdout`, hint);
  };
  if (json && switches.plot === true) refuse("--plot", "--json", "Leave one out, or use --plot-svg FILE.");
  if (values["plot-svg"] !== "-") return;
  for (const [other, given] of Object.entries({ json, explain: switches.explain, plot: switches.plot })) {
    if (given === true) refuse("--plot-svg -", `--${other}`, "Name a file.");
  }
}

async function write(path: string, text: string): Promise<void> {
  const { writeText } = await import("../../host/write.ts");
  const problem = writeText(path, text);
  if (problem !== null) throw new GateError("usage", `${path} cannot be written: ${problem}`);
}
