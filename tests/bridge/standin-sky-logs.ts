/** `sky logs CLUSTER JOB --tail 0` of the stand-in: a job's log from its first line, followed to its end. */
import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import {
  ACTIVE,
  type Cause,
  type Cluster,
  type Job,
  type Rule,
  readText,
  type World,
} from "./standin-sky-world.ts";

const CHUNK_BYTES = 1 << 18;
const EXIT_OF: Record<string, number> = { SUCCEEDED: 0, CANCELLED: 103 };

export function say(text: string | Uint8Array, descriptor = 1): void {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(descriptor, bytes, at, bytes.length - at);
    } catch (error) {
      if ((error as { code?: string }).code !== "EAGAIN") throw error;
      Bun.sleepSync(2);
    }
  }
}

/** What was the last thing that a follower saw when the allocation was taken away, and its exit code. */
function lastWords(cause: Cause, cluster: Cluster): { text: string; exit: number } {
  const node = nodeOf(cluster);
  if (cause === "node-failure") return { text: `srun: error: Node failure on ${node}\n`, exit: 0 };
  const due = {
    "time-limit": " DUE TO TIME LIMIT",
    preempted: " DUE TO PREEMPTION",
    cancelled: "",
    vanished: "",
  };
  const at = new Date().toISOString().slice(0, 19);
  const step = `slurmstepd-${node}: error: *** STEP ${cluster.slurmJob}.8 ON ${node} CANCELLED AT ${at}${due[cause]} ***\n`;
  const text = cause === "vanished" ? "" : `${step}srun: error: ${node}: task 0: Terminated\n`;
  return { text, exit: 143 };
}

export function nodeOf(cluster: Cluster): string {
  const type = String(cluster.resources.accelerators ?? "cpu").split(":")[0] ?? "cpu";
  return `${type.toLowerCase()}x1`;
}

export function streamLogs(world: World, cluster: Cluster, job: Job, rule: Rule): number {
  const folder = world.jobFolder(cluster.name, job.id);
  const decorated = (world.scenario.style ?? "decorated") === "decorated";
  const prefix = decorated ? Buffer.from(`\x1b[36m(${job.name}, pid=${job.pid})\x1b[0m `) : null;
  const cutAtStart = readText(join(world.root, "flags", "cut"));
  say((world.scenario.banner ?? []).map((line) => `${line}\n`).join(""));
  if (decorated)
    say(
      `\x1b[33mTailing logs of job ${job.id} on cluster '${cluster.name}'...\x1b[0m\n` +
        "\x1b[2m├── \x1b[0m\x1b[2mWaiting for task resources on 1 node.\x1b[0m\n" +
        "\x1b[2m└── \x1b[0mJob started. Streaming logs... \x1b[2m(Ctrl-C to exit log streaming; job will not be killed)\x1b[0m\n",
    );
  const sink = new Sink(prefix, rule);
  if (
    decorated &&
    sink.take(
      Buffer.from(
        `bash: ${world.folder(cluster.name)}/.sky_clusters/${cluster.name}/.bashrc: No such file or directory\n`,
      ),
      true,
    )
  )
    return cut(world, rule);
  const log = openSync(join(folder, "log"), "r");
  const buffer = Buffer.alloc(CHUNK_BYTES);
  for (;;) {
    const now = world.cluster(cluster.name);
    const status = world.status(cluster.name, job.id);
    let moved = false;
    for (;;) {
      const length = readSync(log, buffer, 0, buffer.length, null);
      if (length === 0) break;
      moved = true;
      if (sink.take(buffer.subarray(0, length))) return cut(world, rule);
    }
    if (now === null || now.slurmJob !== cluster.slurmJob || now.ended !== null) {
      sink.end();
      const words = lastWords(now?.ended ?? "vanished", cluster);
      say(words.text);
      world.change(rule.after);
      return rule.exitAfter ?? words.exit;
    }
    if (world.flag("sshd-down") || readText(join(world.root, "flags", "cut")) !== cutAtStart) return 255;
    if (moved) continue;
    if (!ACTIVE.includes(status)) {
      closeSync(log);
      sink.end();
      if (decorated) finish(folder, job, status, nodeOf(cluster));
      world.change(rule.after);
      return rule.exitAfter ?? EXIT_OF[status] ?? 100;
    }
    Bun.sleepSync(10);
  }
}

function cut(world: World, rule: Rule): number {
  world.change(rule.after);
  say(rule.stderr === undefined ? "Connection to the cluster was lost.\n" : "", 2);
  return rule.exitAfter ?? 255;
}

/** What SkyPilot's driver says when the program is over. */
function finish(folder: string, job: Job, status: string, node: string): void {
  const exit = readText(join(folder, "exit"))?.trim() ?? "";
  if (status === "FAILED" && exit === "137")
    say(
      `srun: error: ${node}: task 0: Exited with exit code 137\nTraceback (most recent call last):\n` +
        `  File "/home/user/.sky/sky_app/sky_job_${job.id}", line 698, in <module>\n` +
        "    non_137 = next(r for r in returncodes if r != 137)\n              ^^^^^^^^^^^^^^^^^^^^^\nStopIteration\n",
    );
  else if (status === "FAILED" && exit !== "")
    say(
      `srun: error: ${node}: task 0: Exited with exit code ${exit}\n` +
        `ERROR: \x1b[31mJob ${job.id} failed with return code list:\x1b[0m [${exit}] \n`,
    );
  say(`\x1b[0m\x1b[32m✓ Job finished (status: ${status}).\x1b[0m\x1b[0m\n`);
  if (status !== "SUCCEEDED")
    say(`srun: error: ${node}: task 0: Exited with exit code ${EXIT_OF[status] ?? 100}\n`);
}

/** Writes the program's bytes, with the prefix on each line where there is one, up to the rule's cut. */
class Sink {
  private lines = 0;
  private bytes = 0;
  private rest: Buffer = Buffer.alloc(0);

  constructor(
    private readonly prefix: Buffer | null,
    private readonly rule: Rule,
  ) {}

  /** True when the rule says to stop here. */
  take(data: Buffer, noise = false): boolean {
    const { cutBytes, cutLines } = this.rule;
    if (!noise && cutBytes !== undefined && this.bytes + data.length >= cutBytes) {
      say(data.subarray(0, cutBytes - this.bytes));
      return true;
    }
    if (!noise) this.bytes += data.length;
    if (this.prefix === null && cutLines === undefined) {
      say(data);
      return false;
    }
    const all = this.rest.length === 0 ? data : Buffer.concat([this.rest, data]);
    const out: Buffer[] = [];
    let from = 0;
    for (let at = all.indexOf(10); at !== -1; at = all.indexOf(10, from)) {
      if (this.prefix !== null) out.push(this.prefix);
      out.push(all.subarray(from, at + 1));
      from = at + 1;
      if (noise) continue;
      this.lines++;
      if (cutLines !== undefined && this.lines >= cutLines) {
        say(Buffer.concat(out));
        return true;
      }
    }
    this.rest = Buffer.from(all.subarray(from));
    if (out.length > 0) say(Buffer.concat(out));
    return false;
  }

  end(): void {
    if (this.rest.length === 0) return;
    if (this.prefix !== null) say(this.prefix);
    say(this.rest);
  }
}
