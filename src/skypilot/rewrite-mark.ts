/**
 * What a rewrite leaves behind where judging the rewritten request on its own would rewrite it again: the batch that
 * the request had over all its cards. It holds only as long as request and batch are still those of the rewrite.
 */
export interface RewriteMark {
  /** `A100:8` */
  readonly from: string;
  /** `L40S:1` */
  readonly to: string;
  /** Samples per device at the time. */
  readonly batch: number;
  /** Samples a step over all cards before the rewrite. */
  readonly globalBatch: number;
}

/** The variable of a task's `envs` that holds a mark in a SkyPilot request, where comments do not survive. */
export const MARK_VARIABLE = "NEURARCH_REWRITTEN";

const FORM = /^(\S+) to (\S+) at batch ([1-9]\d*), ([1-9]\d*) in all$/;

export function markText({ from, to, batch, globalBatch }: RewriteMark): string {
  return `${from} to ${to} at batch ${batch}, ${globalBatch} in all`;
}

/** The mark in a text; null when it is none. */
export function readMark(text: string): RewriteMark | null {
  const match = FORM.exec(text.trim());
  return match === null
    ? null
    : { from: match[1]!, to: match[2]!, batch: Number(match[3]), globalBatch: Number(match[4]) };
}

const commentHead = (task: number) => `# neurarch-gate: task ${task + 1} rewritten from `;

/** The mark of a file's task, a comment line of its own; `task` counts from 0. */
export function markInFile(text: string, task: number): RewriteMark | null {
  const head = commentHead(task);
  const line = text.split("\n").find((one) => one.startsWith(head));
  return line === undefined ? null : readMark(line.slice(head.length));
}

/** The file with a mark for a task at its top, in place of an earlier one. */
export function withFileMark(text: string, task: number, mark: RewriteMark): string {
  const head = commentHead(task);
  const start = text.startsWith("\uFEFF") ? 1 : 0;
  const lines = text.slice(start).split("\n");
  const end = text.includes("\r\n") ? "\r" : "";
  const others = lines.filter((line) => !line.startsWith(head));
  return `${text.slice(0, start)}${head}${markText(mark)}${end}\n${others.join("\n")}`;
}

/**
 * SkyPilot's own encoding of a task with a mark among its `envs`. SkyPilot writes top-level keys in column one and
 * everything else indented, so the line `envs:` is the mapping itself. Null where there is none to put it in.
 */
export function withEnvMark(text: string, mark: RewriteMark): string | null {
  const line = `  ${MARK_VARIABLE}: ${markText(mark)}\n`;
  const without = text.replace(new RegExp(`^  ${MARK_VARIABLE}: .*\\n`, "m"), "");
  return /^envs:[ ]*\n/m.test(without) ? without.replace(/^envs:[ ]*\n/m, (head) => head + line) : null;
}
