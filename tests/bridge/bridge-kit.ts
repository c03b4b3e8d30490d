/** A campaign over the stand-in sky for tests: a daemon, clients, and what they said. */
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Limits } from "../../src/daemon/limits.ts";
import { type Standin, standin } from "./standin-sky-kit.ts";
import type { Scenario } from "./standin-sky-world.ts";

const BUN = resolve(import.meta.dir, "../../node_modules/.bin/bun");
const MAIN = resolve(import.meta.dir, "../../src/main.ts");
const ENTRY = join(import.meta.dir, "daemon-entry.ts");

/** Limits under which nothing takes long. */
const QUICK: Partial<Limits> = {
  queuePollMs: 60,
  queuePatienceMs: 700,
  reconnectMs: 40,
  reconnectMostMs: 200,
  reconnectPatienceMs: 3000,
  secondLookMs: 40,
  cancelMs: 3000,
  closeMs: 4000,
  launchMs: 8000,
  pendingPollMs: 100,
};

export interface Ran {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
}

export interface Daemon {
  readonly pid: number;
  readonly log: () => string;
  /** Resolves with the exit code, 128 + n for a signal. */
  readonly ended: Promise<number>;
  kill(signal?: NodeJS.Signals): Promise<number>;
}

export interface Bench {
  readonly root: string;
  readonly sky: Standin;
  readonly socket: string;
  readonly state: string;
  readonly workspace: string;
  readonly caller: string;
  write(name: string, text: string): void;
  start(options?: {
    readonly crashAt?: string;
    readonly limits?: Partial<Limits>;
    readonly waitFor?: string;
  }): Promise<Daemon>;
  evaluate(words: readonly string[]): Promise<Ran>;
  /** `evaluate` under way, to be interrupted. */
  evaluating(words: readonly string[]): {
    readonly pid: number;
    kill(signal: NodeJS.Signals): void;
    readonly ran: Promise<Ran>;
    out(): string;
  };
  cli(words: readonly string[]): Promise<Ran>;
  journal(): Record<string, unknown>[];
  remove(): Promise<void>;
}

export interface BenchOptions {
  readonly scenario?: Scenario;
  readonly accuracy?: string;
  readonly benchmark?: string;
  /** Further lines of the campaign file, before its tables. */
  readonly more?: string;
  /** Tables of the campaign file. */
  readonly tables?: string;
  readonly profile?: string;
}

/** One's own: two test runs on one machine would take each other's. */
export const RESULT_PATH = `/tmp/vibesys-framework-benchmark-kit-${process.pid}.json`;

export function bench(options: BenchOptions = {}): Bench {
  const sky = standin(options.scenario ?? {});
  const root = mkdtempSync(join(tmpdir(), "bridge-kit-"));
  const workspace = join(root, "workspace");
  const state = join(root, "state");
  const caller = join(root, "caller");
  const socket = join(root, "s", "bridge.sock");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "candidate.py"), "print('candidate')\n");
  writeFileSync(
    join(root, "clusters.toml"),
    `[profiles.test]\nrunner = "skypilot"\ninfra = "slurm/lab/gpu"\naccelerator_backend = "rocm"\naccelerator_type = "MI300A"\naccelerators_per_node = 4\ncpus_per_node = 192\nallocation_time = "08:00:00"\n${options.profile ?? ""}`,
  );
  const text = JSON.stringify;
  writeFileSync(
    join(root, "campaign.toml"),
    `run_id = "run-1"\nworkspace = ${text(workspace)}\nsocket = ${text(socket)}\nstate = ${text(state)}
clusters = ${text(join(root, "clusters.toml"))}\nprofile = "test"\nsky = ${text(sky.sky)}
accuracy = ${text(options.accuracy ?? "echo checked")}\nbenchmark = ${text(options.benchmark ?? "sh bench.sh")}
benchmark_output_flag = "--output-json"\nerror_frames = "campaign"\n${options.more ?? ""}
[resources]\nnodes = 1\naccelerators_per_node = 4\naccelerator_backend = "rocm"\n${options.tables ?? ""}`,
  );
  writeFileSync(join(workspace, "bench.sh"), `echo bench\nprintf '{"score": 1}' >"$2"\n`);
  const env: Record<string, string | undefined> = {
    ...process.env,
    VIBESYS_SKYPILOT_CALLER_STATE: caller,
    XDG_RUNTIME_DIR: undefined,
  };
  const daemons: Daemon[] = [];
  const spawn = (words: readonly string[], more: Record<string, string> = {}) =>
    Bun.spawn([BUN, ...words], {
      cwd: root,
      env: { ...env, ...more },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
  const run = async (words: readonly string[]): Promise<Ran> => {
    const child = spawn([MAIN, ...words]);
    const [out, err] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    return { exit: await child.exited, out, err };
  };
  return {
    root,
    sky,
    socket,
    state,
    workspace,
    caller,
    write: (name, content) => writeFileSync(join(workspace, name), content),
    start: async ({ crashAt = undefined, limits = {}, waitFor = "serving run" } = {}) => {
      const entry = {
        values: {},
        campaign: join(root, "campaign.toml"),
        limits: { ...QUICK, ...limits },
        crashAt: crashAt ?? null,
      };
      const child = spawn([ENTRY], { DAEMON_ENTRY: JSON.stringify(entry) });
      let log = "";
      const reading = (async () => {
        for await (const chunk of child.stderr) log += new TextDecoder().decode(chunk);
      })();
      const ended = reading.then(() => child.exited);
      const daemon: Daemon = {
        pid: child.pid,
        log: () => log,
        ended,
        kill: (signal = "SIGTERM") => {
          child.kill(signal);
          return ended;
        },
      };
      daemons.push(daemon);
      let over = false;
      void ended.then(() => {
        over = true;
      });
      while (!log.includes(waitFor) && !over) await Bun.sleep(5);
      return daemon;
    },
    evaluate: (words) => run(["evaluate", ...words, "--socket", socket]),
    evaluating: (words) => {
      const child = spawn([MAIN, "evaluate", ...words, "--socket", socket]);
      let out = "";
      const reading = (async () => {
        for await (const chunk of child.stdout) out += new TextDecoder().decode(chunk);
      })();
      const ran = (async () => {
        const err = await new Response(child.stderr).text();
        await reading;
        return { exit: await child.exited, out, err };
      })();
      return { pid: child.pid, kill: (signal) => child.kill(signal), ran, out: () => out };
    },
    cli: run,
    journal: () =>
      readFileSync(join(state, "journal"), "utf8")
        .split("\n")
        .flatMap((line) => {
          const at = line.indexOf("{");
          return at === -1 ? [] : [JSON.parse(line.slice(at)) as Record<string, unknown>];
        }),
    remove: async () => {
      for (const daemon of daemons) await daemon.kill("SIGKILL");
      sky.remove();
      rmSync(root, { recursive: true, force: true });
      rmSync(RESULT_PATH, { force: true });
    },
  };
}

/** A client that does just what it is told, on a connection of its own. */
export class RawClient {
  text = "";
  closed = false;
  #wake: () => void = () => {};

  constructor(readonly socket: Socket) {
    socket.on("data", (chunk) => {
      this.text += chunk.toString();
      this.#wake();
    });
    socket.on("close", () => {
      this.closed = true;
      this.#wake();
    });
    socket.on("error", () => {});
  }

  send(value: unknown): void {
    this.socket.write(typeof value === "string" ? value : `${JSON.stringify(value)}\n`);
  }

  get frames(): Record<string, unknown>[] {
    return this.text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  output(type: "stdout" | "stderr" = "stdout"): string {
    return this.frames.flatMap((frame) => (frame.type === type ? [frame.data] : [])).join("");
  }

  /** Waits until `done` holds or the daemon has ended the connection. */
  async until(done: (client: RawClient) => boolean): Promise<void> {
    while (!this.closed && !done(this))
      await new Promise<void>((wake) => {
        this.#wake = wake;
      });
  }

  frame(type: string): Record<string, unknown> | undefined {
    return this.frames.find((frame) => frame.type === type);
  }
}

export async function rawClient(path: string): Promise<RawClient> {
  const socket = connect(path);
  await new Promise<void>((done, fail) => {
    socket.once("connect", done);
    socket.once("error", fail);
  });
  return new RawClient(socket);
}

export const newId = () => randomBytes(16).toString("hex");
export const request = (id: string, kind = "accuracy") => ({
  version: 2,
  invocation_id: id,
  kind,
  arguments: [],
  artifacts: [],
});
export const benchmarkRequest = (id: string) => ({
  ...request(id, "benchmark"),
  arguments: ["--output-json", RESULT_PATH],
  artifacts: [RESULT_PATH],
});
export const ack = (id: string) => ({ version: 2, type: "ack", invocation_id: id });
export const sha256 = (bytes: string | Uint8Array) => createHash("sha256").update(bytes).digest("hex");
