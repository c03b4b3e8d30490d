import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { BINARY, ROOT } from "../../acceptance/run.ts";

/** What a command of `sky` came to, colours taken out. */
export interface Told {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
}

export interface ApiServer {
  readonly url: string;
  readonly home: string;
  readonly log: () => string;
  stop(): Promise<void>;
}

/** A card and its memory in GB: the catalogue of the machines that can be asked for, 1, 2, 4 and 8 cards each. */
const CARDS = { T4: 16, L4: 24, A10G: 24, L40S: 48, "A100-80GB": 80, H100: 80, H200: 141 };

/**
 * SkyPilot's own command line and API server, with homes, records and ports of their own. One cloud is enabled: its
 * check looks for a file with a key and asks nobody. The catalogue is written here, where none can be downloaded.
 */
export class SkyLab {
  readonly folder = mkdtempSync(join(tmpdir(), "neurarch-sky-"));
  readonly #children = new Set<{ readonly pid: number }>();

  /** @param policies a Python module `site_policies`, in which the policies of the rows are written. */
  constructor(
    private readonly python: string,
    policies: string,
  ) {
    mkdirSync(this.#modules());
    copyFileSync(join(import.meta.dir, "own_queue.py"), join(this.#modules(), "own_queue.py"));
    writeFileSync(
      join(this.#modules(), "site_policies.py"),
      policies.replaceAll("BINARY", JSON.stringify(BINARY)),
    );
  }

  #modules = () => join(this.folder, "modules");

  /** A home folder with a SkyPilot config; `config` is YAML. */
  home(name: string, config: string): string {
    const home = join(this.folder, name);
    const catalogue = join(home, ".sky/catalogs/v8");
    for (const folder of ["common", "fluidstack"]) mkdirSync(join(catalogue, folder), { recursive: true });
    mkdirSync(join(home, ".fluidstack"));
    writeFileSync(join(home, ".fluidstack/api_key"), "api_key = none\n");
    const cards = Object.entries(CARDS);
    const rows = (head: string, lines: readonly string[]) => `${[head, ...lines].join("\n")}\n`;
    writeFileSync(
      join(catalogue, "common/accelerators.csv"),
      rows(
        "AcceleratorName,Clouds",
        cards.map(([card]) => `${card},['Fluidstack']`),
      ),
    );
    writeFileSync(
      join(catalogue, "common/metadata.csv"),
      rows(
        "GPU,MemoryGB,Manufacturer",
        cards.map(([card, gb]) => `${card},${gb},NVIDIA`),
      ),
    );
    const machines = cards.flatMap(([card, gb]) =>
      [1, 2, 4, 8].map(
        (n) => `${n}x-${card},${card},${n}.0,${8 * n}.0,${64 * n}.0,${(gb * n) / 100},default,,`,
      ),
    );
    writeFileSync(
      join(catalogue, "fluidstack/vms.csv"),
      rows("InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice", [
        "cpu-8,,,8.0,64.0,0.1,default,,",
        ...machines,
      ]),
    );
    writeFileSync(join(home, ".sky/config.yaml"), `allowed_clouds: [fluidstack]\n${config}`);
    writeFileSync(join(home, ".sky/plugins.yaml"), "plugins: [{class: own_queue.OwnQueue}]\n");
    return home;
  }

  /** Writes a file of the lab. */
  file(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    return path;
  }

  env(home: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
    return {
      PATH: `${dirname(this.python)}:/usr/local/bin:/usr/bin:/bin`,
      HOME: home,
      PYTHONPATH: `${this.#modules()}:${join(ROOT, "python-shim")}`,
      PYTHONDONTWRITEBYTECODE: "1",
      SKYPILOT_DISABLE_USAGE_COLLECTION: "1",
      HF_HUB_OFFLINE: "1",
      ...more,
    };
  }

  /** Starts an API server on a free port of loopback. `env` is what it is started with. */
  async server(home: string, env: Readonly<Record<string, string>> = {}): Promise<ApiServer> {
    const port = await freePort();
    const log = join(home, "server.log");
    const child = Bun.spawn(
      [this.python, "-u", "-m", "sky.server.server", "--host=127.0.0.1", `--port=${port}`],
      {
        cwd: home,
        env: this.env(home, { IS_SKYPILOT_SERVER: "true", ...env }),
        stdio: ["ignore", Bun.file(log), Bun.file(log)],
      },
    );
    this.#children.add(child);
    const said = () => readFileSync(log, "utf8");
    const url = `http://127.0.0.1:${port}`;
    for (let tries = 0; ; tries++) {
      const healthy = await fetch(`${url}/api/health`).then(
        (reply) => reply.ok,
        () => false,
      );
      if (healthy) break;
      if (child.exitCode !== null || tries > 600)
        throw new Error(`SkyPilot's API server did not start:\n${said().slice(-2000)}`);
      await Bun.sleep(100);
    }
    return { url, home, log: said, stop: () => this.#end(child) };
  }

  /** Runs `sky ARGS` as a user with that home, who answers a question with "n". */
  async sky(home: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<Told> {
    return this.#run([join(dirname(this.python), "sky"), ...args], home, env);
  }

  /** Runs a Python script. */
  async script(
    path: string,
    args: readonly string[],
    home: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const { exit, out, err } = await this.#run([this.python, path, ...args], home, env);
    if (exit !== 0) throw new Error(err);
    return out;
  }

  async #run(command: string[], home: string, env: Readonly<Record<string, string>>): Promise<Told> {
    const child = Bun.spawn(command, {
      cwd: this.folder,
      env: this.env(home, env),
      stdin: new Blob(["n\n"]),
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#children.add(child);
    const [out, err, exit] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    this.#children.delete(child);
    return { exit, out: plain(out), err: plain(err) };
  }

  /** Ends everything that was started here, and removes the folder. */
  async close(): Promise<void> {
    await Promise.all([...this.#children].map((child) => this.#end(child)));
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** The API server waits for daemons of its own that never end, so it and its workers are not asked. */
  async #end(child: { readonly pid: number; readonly exited?: Promise<number> }): Promise<void> {
    this.#children.delete(child);
    for (const pid of descendants(child.pid).toReversed()) kill(pid);
    await child.exited;
  }
}

function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the colours of a terminal
  return text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "");
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // it has ended by itself
  }
}

/** A process and all that it started, the first one first. */
function descendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      // it ended while we looked
    }
  }
  const all = [root];
  for (const pid of all) all.push(...(children.get(pid) ?? []));
  return all;
}

function freePort(): Promise<number> {
  return new Promise((done, failed) => {
    const server = createServer();
    server.once("error", failed);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => done(port));
    });
  });
}
