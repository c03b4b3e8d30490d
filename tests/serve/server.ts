import { BINARY, ROOT } from "../acceptance/run.ts";

/** A running `neurarch-gate serve`. */
export interface Server {
  /** `http://127.0.0.1:PORT`, `unix:PATH`. */
  readonly address: string;
  /** What it has said on stderr so far. */
  readonly log: () => string;
  /** The same, once it holds `text`: a pipe is read later than an answer. */
  readonly said: (text: string) => Promise<string>;
  readonly pid: number;
  /** Asks it to end; its exit code. */
  stop(): Promise<number>;
}

/** Starts the built executable on a free port of loopback, unless `args` say where. */
export async function serve(
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const where = args.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"];
  const child = Bun.spawn([BINARY, "serve", ...where, ...args], {
    cwd: ROOT,
    env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", HF_HUB_OFFLINE: "1", ...env },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  let said = "";
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stderr) said += decoder.decode(chunk, { stream: true });
  })();
  for (let tries = 0; ; tries++) {
    const address = /listening on (\S+)\n/.exec(said)?.[1];
    if (address !== undefined) {
      const stop = async () => {
        child.kill("SIGTERM");
        const exit = await child.exited;
        await reading;
        return exit;
      };
      const logged = async (text: string) => {
        for (let waits = 0; !said.includes(text) && waits < 300; waits++) await Bun.sleep(20);
        return said;
      };
      return { address, log: () => said, said: logged, pid: child.pid, stop };
    }
    if (child.exitCode !== null || tries > 600) throw new Error(`serve did not start: ${said}`);
    await Bun.sleep(50);
  }
}

const TASK = (accelerators: string, more = "") =>
  `name: t\n\nresources:\n  accelerators:\n    ${accelerators}\n  disk_size: 256\n  image_id:\n    null: docker:x\n\nnum_nodes: 1\n\nenvs:\n  NEURARCH_MODEL: Qwen/Qwen3-0.6B\n  NEURARCH_BATCH: '1'\n  NEURARCH_SEQ_LEN: '2048'\n${more}secrets:\n  TOKEN: planted-secret\n\nrun: python train.py\n`;

/** The body that SkyPilot's REST client posts: JSON in a JSON string. */
export function body(accelerators: string, more = ""): { task: string; config: string; text: string } {
  const task = TASK(accelerators, more);
  const config = "admin_policy: http://127.0.0.1/\njobs:\n  x: 1\n";
  const request = {
    task,
    skypilot_config: config,
    request_name: "launch",
    request_options: { cluster_name: "c", idle_minutes_to_autostop: null, down: false, dryrun: true },
    at_client_side: false,
    user: "id: abc\nname: planted-user\n",
  };
  return { task, config, text: JSON.stringify(JSON.stringify(request)) };
}
