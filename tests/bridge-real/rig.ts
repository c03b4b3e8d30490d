/** A real Slurm cluster and a real SkyPilot of a test's own: brought up, used, disturbed and taken down again. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../acceptance/run.ts";

const SCRIPT = join(import.meta.dir, "rig.sh");
const PROGRAMS = [
  "unshare",
  "nsenter",
  "munged",
  "slurmctld",
  "slurmd",
  "sshd",
  "ssh",
  "rsync",
  "curl",
  "ip",
];
const PATH = "/mnt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Why there can be no rig on this machine; null where there can. */
export function missing(): string | null {
  if (process.getuid?.() !== 0) return "needs root";
  const absent = PROGRAMS.filter((name) => Bun.which(name, { PATH }) === null);
  if (absent.length > 0) return `not installed: ${absent.join(", ")}`;
  const python = process.env.NEURARCH_TEST_SKY_PYTHON;
  if (python === undefined) return "NEURARCH_TEST_SKY_PYTHON names no Python with skypilot[slurm]";
  const asked = Bun.spawnSync([python, "-c", "import hostlist, grpc, sky"]);
  return asked.exitCode === 0 ? null : `${python} has no skypilot[slurm]`;
}

export interface Ended {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
  readonly ms: number;
}

/** A process inside of which the output can be read while it runs. */
export interface Running {
  readonly out: () => string;
  readonly err: () => string;
  readonly ended: Promise<Ended>;
}

export class Rig {
  /** The folder that is /mnt inside. */
  readonly folder = mkdtempSync(join(tmpdir(), "gate-rig-"));
  #holder: Bun.Subprocess<"pipe", "pipe", "pipe"> | null = null;
  #pid = "";

  /** Brings it up; about 20 s on two free cores. Throws with the daemons' last words where that fails. */
  static async start(): Promise<Rig> {
    const rig = new Rig();
    const python = process.env.NEURARCH_TEST_SKY_PYTHON ?? "";
    // A session of its own: what ends the test does not end it, but closes its stdin.
    const words = ["setsid", "--wait", "bash", SCRIPT, "hold", rig.folder, python, ROOT];
    const holder = Bun.spawn(words, { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
    rig.#holder = holder;
    const said = new Response(holder.stderr).text();
    let line = "";
    for await (const chunk of holder.stdout) {
      line += new TextDecoder().decode(chunk);
      if (line.includes("\n")) break;
    }
    const pid = /^ready (\d+)$/m.exec(line)?.[1];
    if (pid === undefined) {
      await rig.stop();
      throw new Error(`the rig did not come up: ${line}${await said}`);
    }
    rig.#pid = pid;
    return rig;
  }

  /** The namespaces end with their first process, and everything in them. */
  async stop(): Promise<void> {
    this.#holder?.stdin.end();
    await this.#holder?.exited;
    // To look into what went wrong.
    if (process.env.NEURARCH_TEST_KEEP === undefined) rmSync(this.folder, { recursive: true, force: true });
  }

  /** Starts a command inside, as the operator on the host of SkyPilot. */
  spawn(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
    const variables = {
      PATH,
      HOME: "/mnt/home",
      USER: "root",
      LANG: "C.UTF-8",
      SKYPILOT_DISABLE_USAGE_COLLECTION: "1",
      SLURM_CONF: "/mnt/etc/slurm.conf",
      ...env,
    };
    const enter = ["nsenter", "-t", this.#pid, "-m", "-p", "-n", "-u", "-i", "--wd=/mnt", "--"];
    const started = performance.now();
    const child = Bun.spawn([...enter, ...argv], {
      env: variables,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const said = { out: "", err: "" };
    const read = async (stream: ReadableStream<Uint8Array>, name: "out" | "err") => {
      const decoder = new TextDecoder();
      for await (const chunk of stream) said[name] += decoder.decode(chunk, { stream: true });
    };
    const ended = Promise.all([read(child.stdout, "out"), read(child.stderr, "err")]).then(async () => ({
      exit: await child.exited,
      ...said,
      ms: performance.now() - started,
    }));
    return { out: () => said.out, err: () => said.err, ended };
  }

  run(argv: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended> {
    return this.spawn(argv, env).ended;
  }

  /** The stdout of a command that has to succeed. */
  async ask(...argv: string[]): Promise<string> {
    const { exit, out, err } = await this.run(argv);
    if (exit !== 0) throw new Error(`${argv.join(" ")} ended with ${exit}: ${out}${err}`);
    return out;
  }

  /** One of the script's functions. */
  act(...words: string[]): Promise<string> {
    return this.ask("bash", "/mnt/bin/rig.sh", "do", ...words);
  }

  /** Slurm jobs of campaigns (SkyPilot's own checks are jobs as well), newest last: `id state`. */
  async jobs(states = "RUNNING,PENDING,COMPLETING"): Promise<readonly string[]> {
    const rows = (await this.ask("squeue", "-h", "-t", states, "-o", "%j %A %T")).split("\n");
    return rows
      .filter((row) => row.startsWith("vibesys-"))
      .map((row) => row.slice(row.indexOf(" ") + 1))
      .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  }

  /** A file of the rig, by its path inside; empty where there is none. */
  text(path: string): string {
    try {
      return readFileSync(join(this.folder, path.replace(/^\/mnt/, "")), "utf8");
    } catch {
      return "";
    }
  }
}

/** Waits until `holds` gives something true; throws with `what` after `patienceS`. */
export async function until<T>(
  what: string,
  holds: () => T | Promise<T>,
  patienceS = 300,
): Promise<NonNullable<T>> {
  const end = performance.now() + patienceS * 1000;
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (performance.now() > end) throw new Error(`${what}: not within ${patienceS} s`);
    await Bun.sleep(100);
  }
}
