import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BINARY, ROOT } from "../acceptance/run.ts";
import { Cluster } from "../slurm/cluster.ts";

/** How a block ended; stdout and stderr as one, as a terminal shows them. */
export interface Ended {
  readonly exit: number;
  readonly text: string;
}

/** The folders of a host that pages write to; in a sandbox they lie below its own root. */
const HOST =
  /(^|[\s"'=>:(])(\/(?:usr\/local|etc\/slurm|etc\/neurarch|var\/log|var\/lib|run\/neurarch|tmp)(?=[/\s"'])\S*)/gm;

/** A port that nobody has now. */
function freePort(): number {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const { port } = server;
  server.stop(true);
  return port!;
}

/**
 * A checkout and a user on a host of their own, for the blocks of one page: they run one after the other in the
 * checkout, with the executable on PATH. Of the host only paths differ: what lies in /usr/local, /etc/slurm and the
 * like lies below `root`, port 8765 is a free one, and `pip` installs into a folder of the sandbox.
 */
export class Sandbox {
  readonly root = mkdtempSync(join(tmpdir(), "gate-docs-"));
  readonly work = join(this.root, "checkout");
  readonly #port = freePort();
  #cluster: Cluster | null = null;

  constructor() {
    // Its users have to come to what is installed here.
    chmodSync(this.root, 0o755);
    for (const folder of ["home", "bin", "usr/local/bin", "etc/neurarch", "var/log", "run/neurarch", "tmp"])
      mkdirSync(join(this.root, folder), { recursive: true });
    mkdirSync(join(this.work, "dist"), { recursive: true });
    symlinkSync(BINARY, join(this.work, "dist/neurarch-gate"));
    for (const folder of ["examples", "python-shim"])
      cpSync(join(ROOT, folder), join(this.work, folder), { recursive: true });
    for (const folder of ["tests", "lua", "schemas", "node_modules"])
      symlinkSync(join(ROOT, folder), join(this.work, folder));
    const sky = process.env.NEURARCH_TEST_SKY_PYTHON;
    // Where the pages say that the executable was installed, the printed files look for it.
    const installed = join(this.root, "usr/local/bin/neurarch-gate");
    this.#program(
      "neurarch-gate",
      `case "$1 $*" in
"print-lua "*--binary*) ;;
"print-lua "*) shift; exec ${BINARY} print-lua --binary ${installed} "$@" ;;
"serve serve") set -- serve --listen 127.0.0.1:${this.#port} ;;
esac
exec ${BINARY} "$@"`,
    );
    this.#program("sudo", 'exec "$@"');
    this.#program("pip", "echo 'no Python of SkyPilot is named (NEURARCH_TEST_SKY_PYTHON)'; exit 1");
    if (sky !== undefined) {
      // As pip writes it: the first line tells which Python runs SkyPilot.
      this.#program("sky", "from sky.client.cli.command import cli\ncli()", sky);
      const shim = join(this.root, "site/neurarch_gate/__init__.py");
      this.#program(
        "pip",
        `[ "$1" = uninstall ] && { rm -rf ${this.root}/site/"\${3//-/_}"; exit 0; }
${sky} -m pip install -q --no-deps --no-build-isolation --upgrade --disable-pip-version-check --target ${this.root}/site "\${@:2}" &&
sed -i 's#/usr/local/bin/neurarch-gate#${installed}#' ${shim}`,
      );
    }
  }

  #program(name: string, script: string, interpreter = "/bin/bash"): void {
    const path = join(this.root, "bin", name);
    writeFileSync(path, `#!${interpreter}\n${script}\n`);
    chmodSync(path, 0o755);
  }

  /** A private cluster whose slurm.conf, as on a new host, names no filter yet. */
  get cluster(): Cluster {
    if (this.#cluster === null) {
      this.#cluster = Cluster.start();
      const conf = join(this.#cluster.folder, "etc/slurm.conf");
      const text = readFileSync(conf, "utf8");
      writeFileSync(conf, text.replace(/^CliFilterPlugins=.*\n/m, ""));
      rmSync(join(this.#cluster.folder, "etc/cli_filter.lua"), { force: true });
    }
    return this.#cluster;
  }

  /** Text of a page as it is in the sandbox. */
  inside(text: string): string {
    const etc = this.#cluster === null ? null : join(this.#cluster.folder, "etc");
    return text
      .replaceAll("127.0.0.1:8765", `127.0.0.1:${this.#port}`)
      .replace(HOST, (_, before: string, path: string) =>
        etc !== null && path.startsWith("/etc/slurm")
          ? `${before}${etc}${path.slice("/etc/slurm".length)}`
          : `${before}${this.root}${path}`,
      );
  }

  /** What was printed, with the paths and the port as pages have them. */
  outside(text: string): string {
    const etc = this.#cluster === null ? null : join(this.#cluster.folder, "etc");
    return (etc === null ? text : text.replaceAll(etc, "/etc/slurm"))
      .replaceAll(`${this.root}/`, "/")
      .replaceAll(`127.0.0.1:${this.#port}`, "127.0.0.1:8765");
  }

  get env(): Record<string, string> {
    return {
      PATH: `${join(this.root, "bin")}:/usr/bin:/bin:/usr/sbin:/sbin`,
      HOME: join(this.root, "home"),
      USER: "root",
      HF_HUB_OFFLINE: "1",
      LC_ALL: "C.UTF-8",
      PYTHONPATH: join(this.root, "site"),
      PYTHONDONTWRITEBYTECODE: "1",
      SKYPILOT_DISABLE_USAGE_COLLECTION: "1",
      ...(this.#cluster === null ? {} : { SLURM_CONF: join(this.#cluster.folder, "etc/slurm.conf") }),
    };
  }

  /** A user who has configured nothing yet. */
  anew(): void {
    rmSync(join(this.root, "home"), { recursive: true, force: true });
    mkdirSync(join(this.root, "home"));
  }

  /** Runs a script in the checkout; the first command that fails ends it. */
  async run(script: string): Promise<Ended> {
    const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", `exec 2>&1\n${this.inside(script)}`], {
      cwd: this.work,
      env: this.env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    const [text, exit] = await Promise.all([new Response(child.stdout).text(), child.exited]);
    return { exit, text: this.outside(text) };
  }

  /** Runs a script whose first command is a server, and the rest once that listens; ends the server. */
  async serving(script: string): Promise<Ended> {
    const [first, ...rest] = script.split("\n");
    const server = Bun.spawn(["bash", "-c", `exec ${this.inside(first!)}`], {
      cwd: this.work,
      env: this.env,
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    try {
      const reader = server.stderr.getReader();
      let said = "";
      while (!said.includes("listening on")) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`the server ended: ${said}`);
        said += new TextDecoder().decode(value);
      }
      reader.releaseLock();
      return await this.run(rest.join("\n"));
    } finally {
      server.kill("SIGTERM");
      await server.exited;
    }
  }

  remove(): void {
    this.#cluster?.stop();
    rmSync(this.root, { recursive: true, force: true });
  }
}
