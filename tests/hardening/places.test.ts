import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { BINARY, exec, type Ran, REFUSED, SCRIPT, Scratch, SUBMIT, shell } from "./kit.ts";

const scratch = new Scratch();
// Others have to get into it.
chmodSync(scratch.path, 0o755);
afterAll(() => scratch.remove());

const ROOT_ONLY = process.getuid?.() === 0;
const MALLORY = 65533;
const ALICE = 65534;

/** A folder like /tmp, in which everyone may put things and remove their own. */
function shared(): string {
  const path = scratch.fresh();
  mkdirSync(path);
  chmodSync(path, 0o1777);
  return path;
}

function owned(path: string, uid: number, make = false): string {
  if (make) mkdirSync(path, { mode: 0o700 });
  chownSync(path, uid, uid);
  return path;
}

/** Runs a submit as another user. */
const as = (uid: number, words: readonly string[], env: Record<string, string> = {}): Promise<Ran> =>
  exec(["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", ...words], { env });

/** Everything below a folder: mode, owner and, of files, length, by path. */
function everything(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  const visit = (path: string, name: string) => {
    const stat = lstatSync(path);
    found[name] = `${(stat.mode & 0o7777).toString(8)} ${stat.uid} ${stat.isFile() ? stat.size : ""}`;
    if (stat.isDirectory())
      for (const one of readdirSync(path).sort()) visit(join(path, one), `${name}/${one}`);
  };
  visit(folder, "");
  return found;
}

const judged = (ran: Ran) => expect(ran).toEqual({ exit: 0, out: expect.stringMatching(REFUSED), err: "" });

describe.skipIf(!ROOT_ONLY && process.env.CI === undefined)("a folder that everyone may write", () => {
  /** What Mallory leaves where Alice's cache will stand; nothing of it may be written to, or believed. */
  const TRAPS: Readonly<Record<string, (at: string, victim: string) => void>> = {
    "a folder of Mallory's": (at) => {
      mkdirSync(at, { mode: 0o777 });
      owned(at, MALLORY);
      chmodSync(at, 0o777);
    },
    "a link to a folder of Alice's": (at, victim) => {
      symlinkSync(victim, at);
      Bun.spawnSync(["chown", "-h", String(MALLORY), at]);
    },
    "a link to a folder that is not there": (at, victim) => {
      symlinkSync(join(victim, "new"), at);
      Bun.spawnSync(["chown", "-h", String(MALLORY), at]);
    },
    "a file": (at) => owned(writeTo(at, "x"), MALLORY),
    "a FIFO": (at) => {
      Bun.spawnSync(["mkfifo", at]);
      owned(at, MALLORY);
    },
    "a folder of Alice's that everyone may write": (at) => {
      mkdirSync(at);
      owned(at, ALICE);
      chmodSync(at, 0o777);
    },
  };

  for (const [name, lay] of Object.entries(TRAPS)) {
    test(`the cache: ${name}`, async () => {
      const folder = shared();
      const victim = owned(join(folder, "alices"), ALICE, true);
      lay(join(folder, "neurarch-gate"), victim);
      const before = everything(folder);
      judged(await as(ALICE, SUBMIT, { XDG_CACHE_HOME: folder }));
      expect(everything(folder)).toEqual(before);
    });

    // Below a folder of her own it is Alice's affair who may write there.
    if (name.startsWith("a folder of Alice's")) continue;
    test(`the spool of a collector that is away: ${name}`, async () => {
      const folder = shared();
      const victim = owned(join(folder, "alices"), ALICE, true);
      lay(join(folder, "neurarch"), victim);
      const before = everything(folder);
      judged(await as(ALICE, [...SUBMIT, "--ledger", "unix:/nowhere.sock"], { XDG_STATE_HOME: folder }));
      expect(everything(folder)).toEqual(before);
    });
  }

  test("a size that Mallory planted is not believed", async () => {
    const folder = owned(scratch.fresh(), ALICE, true);
    judged(await as(ALICE, SUBMIT, { XDG_CACHE_HOME: folder }));
    const cache = join(folder, "neurarch-gate");
    const [name = ""] = readdirSync(cache).filter((one) => one.startsWith("size-"));
    const entry = JSON.parse(readFileSync(join(cache, name), "utf8"));
    // A size of next to nothing: every job would fit.
    const forged = JSON.parse(
      JSON.stringify(entry)
        .replace(/\[("[^"]*","[^"]*"),[\d.e+]+,[\d.e+]+,[\d.e+]+\]/g, "[$1,1,1,1]")
        .replace(/"(floorBytes|stateBytes)":\d+/g, '"$1":1'),
    );
    const sum = new Bun.CryptoHasher("sha256").update(JSON.stringify(forged.value)).digest("hex");
    expect(JSON.stringify(forged)).not.toBe(JSON.stringify(entry));
    for (const [uid, mode, believed] of [
      [MALLORY, 0o644, false],
      [ALICE, 0o666, false],
      // Her own is hers to change, which shows that it would have been another verdict.
      [ALICE, 0o600, true],
    ] as const) {
      writeFileSync(join(cache, name), JSON.stringify({ ...forged, sum }));
      owned(join(cache, name), uid);
      chmodSync(join(cache, name), mode);
      const ran = await as(ALICE, SUBMIT, { XDG_CACHE_HOME: folder });
      if (believed) expect(ran.out).toMatch(/^decision=(?:allow|warn\nmessage=(?!.*needs 339))/);
      else judged(ran);
    }
  });

  const LINE_TRAPS: Readonly<Record<string, (at: string, precious: string) => void>> = {
    "a link to a file of Alice's": (at, precious) => {
      symlinkSync(precious, at);
      Bun.spawnSync(["chown", "-h", String(MALLORY), at]);
    },
    "a hard link to a file of Alice's": (at, precious) => linkSync(precious, at),
    "a file of Mallory's": (at) => {
      owned(writeTo(at, ""), MALLORY);
      chmodSync(at, 0o666);
    },
    "a FIFO": (at) => {
      Bun.spawnSync(["mkfifo", "-m", "666", at]);
      owned(at, MALLORY);
    },
    "a folder": (at) => {
      mkdirSync(at);
      owned(at, MALLORY);
    },
    "a link to a device": (at) => {
      symlinkSync("/dev/full", at);
      Bun.spawnSync(["chown", "-h", String(MALLORY), at]);
    },
    "a file of Alice's that everyone may write": (at) => {
      owned(writeTo(at, ""), ALICE);
      chmodSync(at, 0o666);
    },
  };
  const host = readFileSync("/proc/sys/kernel/hostname", "utf8").trim();

  for (const [name, lay] of Object.entries(LINE_TRAPS)) {
    test(`the ledger: ${name} in the place of Alice's`, async () => {
      const folder = shared();
      const precious = owned(writeTo(join(scratch.path, `precious-${Math.random()}`), "precious"), ALICE);
      for (const user of ["nobody", "uid65534"]) lay(join(folder, `${user}@${host}.jsonl`), precious);
      const before = everything(folder);
      judged(await as(ALICE, [...SUBMIT, "--ledger", folder]));
      expect(readFileSync(precious, "utf8")).toBe("precious");
      expect(everything(folder)).toEqual(before);
    });
  }

  test("a name taken from Alice leaves her number", async () => {
    const folder = shared();
    owned(writeTo(join(folder, `nobody@${host}.jsonl`), ""), MALLORY);
    judged(await as(ALICE, [...SUBMIT, "--ledger", folder]));
    const own = join(folder, `uid65534@${host}.jsonl`);
    expect(JSON.parse(readFileSync(own, "utf8"))).toMatchObject({
      decision: "refuse",
      model: "Qwen/Qwen3-8B",
    });
  });

  test("links that come and go while lines are written lead none astray", async () => {
    const folder = shared();
    const precious = owned(writeTo(join(scratch.path, "raced"), "precious"), ALICE);
    chmodSync(precious, 0o600);
    const at = join(folder, `nobody@${host}.jsonl`);
    // Mallory swaps what stands under the name as fast as she can; the sticky bit keeps her from Alice's own file.
    const swap = `while :; do ln -sf ${precious} ${at}; rm -f ${at}; ln -f ${precious} ${at}; rm -f ${at}; done 2>/dev/null`;
    const mallory = Bun.spawn([
      "setpriv",
      `--reuid=${MALLORY}`,
      `--regid=${MALLORY}`,
      "--clear-groups",
      "bash",
      "-c",
      swap,
    ]);
    try {
      for (let times = 0; times < 15; times++) judged(await as(ALICE, [...SUBMIT, "--ledger", folder]));
    } finally {
      mallory.kill("SIGKILL");
      await mallory.exited;
    }
    expect(readFileSync(precious, "utf8")).toBe("precious");
    const lines = readdirSync(folder)
      .filter(
        (name) =>
          name.endsWith(".jsonl") &&
          lstatSync(join(folder, name)).isFile() &&
          lstatSync(join(folder, name)).uid === ALICE,
      )
      .flatMap((name) =>
        readFileSync(join(folder, name), "utf8")
          .split("\n")
          .filter((line) => line.startsWith("{")),
      );
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) JSON.parse(line);
  });

  test("a policy file of Mallory's in /tmp waives nothing", async () => {
    const folder = shared();
    const policy =
      'version: 1\nwaivers:\n  - {rule: admission/request-does-not-fit, owner: x, reason: y, model: "*", created: 2026-11-30, expires: 2099-01-01}\n';
    owned(writeTo(join(folder, ".neurarch.yml"), policy), MALLORY);
    const own = owned(join(folder, "work"), ALICE, true);
    const script = owned(writeTo(join(own, "job.sbatch"), readFileSync(SCRIPT, "utf8")), ALICE);
    const words = [BINARY, "slurm", "--script", script, "--gres", "gpu:a10g:1", "--nodes", "1"];
    judged(await as(ALICE, words));
  });

  test("another user's socket is not spoken to as one's own", async () => {
    const folder = shared();
    const path = join(folder, "gate.sock");
    const listen = `import socket,time\ns=socket.socket(socket.AF_UNIX)\ns.bind(${JSON.stringify(path)})\ns.listen(5)\nprint("ready",flush=True)\ntime.sleep(60)`;
    const mallory = Bun.spawn(["setpriv", `--reuid=${MALLORY}`, "--clear-groups", "python3", "-c", listen], {
      env: { PATH: "/usr/bin:/bin" },
      stdout: "pipe",
    });
    await mallory.stdout.getReader().read();
    const served = await as(ALICE, ["timeout", "5", BINARY, "serve", "--listen", `unix:${path}`]);
    expect({ exit: served.exit, out: served.out }).toEqual({ exit: 5, out: "" });
    expect(lstatSync(path).uid).toBe(MALLORY);
    mallory.kill();
    await mallory.exited;
  });
});

describe("what is made is for its maker alone", () => {
  for (const umask of ["000", "077", "0777"]) {
    test(`cache and spool under umask ${umask}`, async () => {
      const home = scratch.fresh();
      mkdirSync(home, { mode: 0o700 });
      judged(
        await shell(`umask ${umask}; exec $SUBMIT --ledger unix:/nowhere.sock`, { env: { HOME: home } }),
      );
      const made = everything(home);
      delete made[""];
      expect(Object.keys(made).length).toBeGreaterThan(umask === "0777" ? 0 : 4);
      for (const [path, what] of Object.entries(made)) {
        const mode = Number.parseInt(what, 8);
        expect(`${path} ${(mode & 0o077).toString(8)}`).toBe(`${path} 0`);
      }
    });
  }

  test("a ledger's lines are read by the group it hands down, and by nobody else", async () => {
    for (const umask of ["000", "022", "077"]) {
      const folder = scratch.fresh();
      mkdirSync(folder);
      for (const [mode, file] of [
        [0o700, 0o600],
        [0o3733, 0o640],
      ] as const) {
        const ledger = join(folder, mode.toString(8));
        mkdirSync(ledger);
        chmodSync(ledger, mode);
        judged(await shell(`umask ${umask}; exec $SUBMIT --ledger ${ledger}`));
        const [name = ""] = readdirSync(ledger);
        expect(`${umask} ${(statSync(join(ledger, name)).mode & 0o777).toString(8)}`).toBe(
          `${umask} ${file.toString(8)}`,
        );
      }
    }
  });

  test.skipIf(!ROOT_ONLY)(
    "an anonymous ledger's salt is read by all who write there, whatever the first one's umask",
    async () => {
      const folder = shared();
      const line = (uid: number) =>
        as(uid, ["sh", "-c", `umask 077; exec ${SUBMIT.join(" ")} --ledger-anonymous --ledger ${folder}`]);
      judged(await line(ALICE));
      judged(await line(MALLORY));
      const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
      expect(files.length).toBe(2);
      for (const name of files) expect(name).toMatch(/^anon-[0-9a-f]{12}@/);
    },
  );
});

function writeTo(path: string, text: string): string {
  writeFileSync(path, text);
  return path;
}
