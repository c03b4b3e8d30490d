/**
 * docs/remote-evaluation.md followed literally: its commands are run as they stand there, one after another, over the
 * stand-in `sky`. What reaches out of this machine (uv, ssh, systemd, docker) is answered by small scripts that write
 * down what they were asked.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CAPABILITIES } from "../../src/bridge/capabilities.ts";
import { CERTIFICATE_MESSAGE } from "../../src/bridge/evidence/failure-text.ts";
import { COMMANDS } from "../../src/cli/app.ts";
import { LIMITS } from "../../src/daemon/limits.ts";
import { type Standin, standin } from "../bridge/standin-sky-kit.ts";
import { BINARY, ROOT } from "./run.ts";

const PAGE = readFileSync(join(ROOT, "docs/remote-evaluation.md"), "utf8");
const blocksOf = (text: string) => [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block!);
const section = (heading: string) => PAGE.split(/^## /m).find((part) => part.startsWith(heading))!;
const RESULT = "/tmp/vibesys-framework-benchmark-1.json";
const SCRATCH = "/scratch";
const scratchWasThere = existsSync(SCRATCH);

let sky: Standin;
let home = "";
let bin = "";

const said = () => readFileSync(join(home, "said"), "utf8");
const script = (name: string, text: string) => {
  writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(bin, name), 0o755);
};

beforeAll(() => {
  sky = standin();
  home = mkdtempSync(join(tmpdir(), "guide-"));
  bin = join(home, ".local/bin");
  mkdirSync(bin, { recursive: true });
  const note = `printf '%s' "$(basename "$0")" >>"${home}/said"; printf ' %s' "$@" >>"${home}/said"; echo >>"${home}/said"`;
  script("neurarch-gate", `exec '${BINARY}' "$@"`);
  script("sky", `if [ "$1" = check ]; then ${note}; else exec '${sky.sky}' "$@"; fi`);
  for (const name of ["uv", "docker"]) script(name, note);
  // Its settings are read by the real one; the login node is not there.
  script("ssh", `case " $* " in *" -G "*) exec /usr/bin/ssh "$@" ;; esac\n${note}`);
  // The step that a site's container would be started in.
  script(
    "srun",
    `[ "$1 $2" = "--overlap --environment=/scratch/alice/rocm.toml" ] || exit 99\nshift 2\n${note}\nexec "$@"`,
  );
  script(
    "systemctl",
    `${note}
case "$*" in
  "--user enable --now bridge")
    line=$(sed -n 's/^ExecStart=//p' "$HOME/.config/systemd/user/bridge.service")
    setsid sh -c "exec $line" >"$HOME/log" 2>&1 </dev/null &
    echo $! >"$HOME/pid" ;;
  "--user disable --now bridge")
    pid=$(cat "$HOME/pid")
    kill "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done ;;
esac`,
  );
});
afterAll(() => {
  try {
    process.kill(Number(readFileSync(join(home, "pid"), "utf8")), "SIGKILL");
  } catch {
    // it ended in order
  }
  sky.remove();
  rmSync(home, { recursive: true, force: true });
  rmSync(RESULT, { force: true });
  if (!scratchWasThere) rmSync(SCRATCH, { recursive: true, force: true });
});

/** Runs shell lines as a user who follows the page would, and stops at the first that fails. */
async function follow(lines: string): Promise<{ exit: number; out: string; err: string }> {
  const child = Bun.spawn(["bash", "-e", "-c", lines], {
    cwd: home,
    env: { HOME: home, USER: process.env.USER ?? "root", PATH: `${bin}:/usr/local/bin:/usr/bin:/bin` },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { exit: await child.exited, out, err };
}

test("its commands work as they stand, from set-up to clean-up", async () => {
  const { exit, out, err } = await follow(blocksOf(PAGE).join("\n"));
  expect({ exit, err: exit === 0 ? "" : err }).toEqual({ exit: 0, err: "" });
  expect(said()).toContain("uv tool install skypilot[slurm]==0.13.0\n");
  expect(said()).toContain("sky check slurm\n");
  expect(out).toContain("The campaign is in order.");
  expect(out).toContain("mycluster (login.example.org) answers");
  expect(out).toContain("accuracy 1.0\n");
  expect(out).toMatch(/Run run-1, profile mi300: (starting|serving)/);
  expect(out).toContain('{"score": 1.0}\n');
  expect(out).toContain('{"kernels": 12}\n');
  expect(out).toContain('"phase":"ACKNOWLEDGED"');
  expect(out).toContain("nothing was running\n");
  expect(err).toContain("is released; the next evaluation makes a new one.");
  expect(out).toContain("nothing was left\n");
  expect(said()).toMatch(/docker run --rm --mount .* editor-image agent\n/);
  expect(said().match(/^srun sh -c cd /gm)).toHaveLength(4);
  // Two runs: one under a command, one as a service, each with one allocation for all its evaluations.
  const commands = sky.commands();
  expect(commands.filter((name) => name === "launch")).toHaveLength(2);
  expect(commands.filter((name) => name === "exec")).toHaveLength(4);
  expect(sky.running()).toEqual([]);
  expect(existsSync(join(home, "bridge/socket/bridge.sock"))).toBe(false);
  expect(existsSync(join(home, ".local/state/neurarch/bridge/run-1"))).toBe(false);
  const launched = sky.calls().find(({ command }) => command === "launch")!.task!;
  expect(launched).toMatchObject({
    resources: { infra: "slurm/mycluster/mi300", accelerators: "MI300A:4", cpus: 192 },
    config: { slurm: { sbatch_options: { exclusive: true, time: "08:00:00" } } },
  });
}, 120_000);

test("its clean-up by hand leaves nothing of a bridge that was killed", async () => {
  const start = "systemctl --user enable --now bridge";
  const serving =
    "until neurarch-gate bridge status --campaign ~/bridge/campaign.toml | grep serving; do sleep 0.2; done";
  const up = await follow(`${start}\n${serving}\nkill -KILL "$(cat pid)"`);
  expect(up.exit).toBe(0);
  expect(sky.running()).toHaveLength(1);
  const [first, second] = blocksOf(section("Clean up by hand"));
  // Either of the two ways alone is enough.
  const { exit, err } = await follow(first!);
  expect({ exit, err, running: sky.running() }).toMatchObject({ exit: 0, running: [] });
  expect(err).toContain("is released.");
  expect((await follow(`${start}\n${serving}\nkill -KILL "$(cat pid)"`)).exit).toBe(0);
  expect(sky.running()).toHaveLength(1);
  expect((await follow(second!)).exit).toBe(0);
  expect(sky.running()).toEqual([]);
}, 120_000);

test("when the certificate lapses, an evaluation says word for word what the page says", async () => {
  const quoted = /^```text\n(The ssh certificate .*)\n```$/m.exec(PAGE)![1]!;
  expect(quoted).toBe(CERTIFICATE_MESSAGE);
  const serving =
    "until neurarch-gate bridge status --campaign ~/bridge/campaign.toml | grep serving; do sleep 0.2; done";
  expect((await follow(`systemctl --user enable --now bridge\n${serving}`)).exit).toBe(0);
  sky.change({ do: "flag", flag: "certificate-expired", on: true });
  const ask = `eval "$(neurarch-gate bridge mounts --campaign ~/bridge/campaign.toml --format env)"\nneurarch-gate evaluate accuracy`;
  const lapsed = await follow(ask);
  expect(lapsed.exit).toBe(2);
  expect(lapsed.err).toContain(quoted);
  sky.change({ do: "flag", flag: "certificate-expired", on: false });
  const renewed = await follow(ask);
  expect({ exit: renewed.exit, out: renewed.out }).toEqual({ exit: 0, out: "accuracy 1.0\n" });
  expect((await follow("systemctl --user disable --now bridge")).exit).toBe(0);
  expect(sky.running()).toEqual([]);
}, 120_000);

test("it has each result, and no limit or flag that is not so", async () => {
  const rows = [...section("The seven results").matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, name]) => name!);
  expect(rows.sort()).toEqual([...CAPABILITIES.resultClasses].sort());
  const { artifacts } = CAPABILITIES;
  expect(artifacts).toMatchObject({
    maxBytes: 512 * 1024,
    declaredMaxFiles: 1000,
    declaredMaxBytes: 1024 ** 3,
  });
  expect(PAGE).toContain("1,000 files and 1 GiB");
  expect(LIMITS.reconnectPatienceMs).toBe(10 * 60_000);
  const used = [...PAGE.matchAll(/neurarch-gate ((?:bridge|evaluate|doctor|schema)[^`\n|;)]*)/g)].map(
    ([, line]) =>
      line!
        .trim()
        .split(/ -- |\s+#/)[0]!
        .split(" "),
  );
  expect(used.length).toBeGreaterThan(12);
  for (const words of used) {
    const name =
      COMMANDS[words.slice(0, 2).join(" ")] === undefined ? words[0]! : words.slice(0, 2).join(" ");
    const { args } = (await COMMANDS[name]!()).command;
    const flags = words.filter((word) => /^--[a-z]/.test(word)).map((word) => word.slice(2));
    // The benchmark's own flag is the campaign's.
    expect(flags.filter((flag) => !(flag in args) && flag !== "output-json")).toEqual([]);
  }
});
