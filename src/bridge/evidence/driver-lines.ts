import { withoutAnsi } from "./ansi.ts";

/**
 * The lines that SkyPilot and Slurm put between and after a job's own: which they are and what they say. Shapes as
 * SkyPilot 0.13.0 over Slurm 22.05 printed them.
 */

/** What the lines around a job's output have said so far. */
export interface DriverSaid {
  /** X of `Job finished (status: X).` */
  finished: string | null;
  /** n of `failed with return code list: [n]`; the largest where there are several. */
  listedExit: number | null;
  /** Lines that name a cause, newest last, at most `MAX_CAUSES`. */
  causes: string[];
}

const MAX_CAUSES = 12;
const MAX_CAUSE_CHARACTERS = 300;

const FINISHED = /^✓ Job finished \(status: (\w+)\)\.$/;
const LISTED = /^ERROR: Job (\d+) failed with return code list: \[([\d, ]+)\] *$/;

/** Words of a line that say why a job or its allocation ended, or that nobody could be reached. */
const CAUSES = [
  "DUE TO TIME LIMIT",
  "DUE TO PREEMPTION",
  "DUE TO NODE FAILURE",
  "Node failure on",
  "CANCELLED AT",
  "has expired",
  "StopIteration",
  "setup failed with return code",
  "Communication connection failure",
  "Unable to contact slurm controller",
  "Unable to confirm allocation",
  "Logs for job",
  "not found (see",
];

/** How lines of SkyPilot's driver, of Slurm's step daemon and of srun begin. */
const DRIVER = [
  "srun: ",
  "slurmstepd",
  "ERROR: ",
  "INFO: ",
  "✓ ",
  "├── ",
  "└── ",
  "⚙︎ ",
  "Tailing logs of job ",
  "Traceback (most recent call last):",
];

/**
 * What the driver's words look like where they follow an unfinished last line of the program on the same line. As
 * bytes (latin-1: the check mark is three of them), for the program's part need not be text.
 */
export const GLUED = ["srun: error: ", "ERROR: \x1b[31mJob ", "\xe2\x9c\x93 Job finished (status: "] as const;

export function isDriverLine(plain: string): boolean {
  return DRIVER.some((start) => plain.startsWith(start));
}

/** Reads one line that is not the program's (colours still in it) into `said`. */
export function heedDriverLine(line: string, jobId: number, said: DriverSaid): void {
  const plain = withoutAnsi(line);
  const finished = FINISHED.exec(plain.trim());
  if (finished !== null) {
    said.finished = finished[1] ?? null;
    return;
  }
  const listed = LISTED.exec(plain);
  if (listed !== null && Number(listed[1]) === jobId) {
    const codes = (listed[2] ?? "").split(",").map(Number);
    said.listedExit = Math.max(...codes);
    return;
  }
  noteCause(plain, said);
}

/** Keeps a line that names a cause. */
export function noteCause(plain: string, said: DriverSaid): void {
  const text = plain.trim().slice(0, MAX_CAUSE_CHARACTERS);
  if (!CAUSES.some((words) => text.includes(words)) || said.causes.includes(text)) return;
  said.causes.push(text);
  if (said.causes.length > MAX_CAUSES) said.causes.shift();
}

/**
 * Where the driver's words begin in a line of the program that it did not end itself (read as latin-1, so that it is
 * an offset in bytes); null when they do not. `sure`: only the driver can have written them, for they name the job's id
 * or end the line in its colours.
 */
export function glueIn(line: string, jobId: number): { readonly at: number; readonly sure: boolean } | null {
  if (!GLUED.some((words) => line.includes(words))) return null;
  const listed = line.lastIndexOf(`ERROR: \x1b[31mJob ${jobId} failed with return code list:\x1b[0m [`);
  if (listed > 0) return { at: listed, sure: true };
  const finished =
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the colours are what is looked for
    /(?:\x1b\[\d*m)*\xe2\x9c\x93 Job finished \(status: \w+\)\.((?:\x1b\[0m)*)$/.exec(line);
  if (finished !== null && finished.index > 0)
    return { at: finished.index, sure: (finished[1] ?? "").length > 0 };
  const step =
    /srun: error: (?:[\w.-]+: task \d+: (?:Exited with exit code \d+|Terminated|Killed)|Node failure on [\w.-]+)$/.exec(
      line,
    );
  return step !== null && step.index > 0 ? { at: step.index, sure: false } : null;
}
