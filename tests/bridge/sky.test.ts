import { afterAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { markerLine } from "../../src/bridge/markers.ts";
import { Redactor, redact } from "../../src/bridge/redaction.ts";
import type { Campaign, ResolvedResources } from "../../src/bridge/types.ts";
import { makeAllocations } from "../../src/daemon/allocation.ts";
import { LIMITS } from "../../src/daemon/limits.ts";
import { makeSky } from "../../src/daemon/sky.ts";
import { skyEnvironment } from "../../src/daemon/sky-host.ts";
import type { LogsEnd, Sky } from "../../src/daemon/types.ts";
import { isCallRunning } from "../../src/host/outliving-call.ts";
import { NONCE } from "./sky-transcripts.ts";
import { type Standin, standin } from "./standin-sky-kit.ts";
import type { Scenario } from "./standin-sky-world.ts";

const RESOURCES: ResolvedResources = {
  profileName: "p",
  infra: "slurm/lab/gpu",
  acceleratorType: "A10G",
  nodes: 1,
  acceleratorsPerNode: 1,
  cpusPerNode: null,
  memoryGbPerNode: null,
  exclusive: false,
  runtimeImage: null,
  commandPrefix: null,
  allocationTime: "01:00:00",
  remoteArtifactRoot: null,
};
const NAME = "vibesys-t-0123456789ab";
const TASK = { infra: "slurm/lab/gpu", accelerators: "A10G:1" };
const MARK = (exit: string) =>
  `printf '\\n%s\\n' "${markerLine({ kind: "end", exitCode: 0 }, NONCE).replace("exit=0", "exit=")}${exit}"`;

const folder = mkdtempSync(join(tmpdir(), "sky-test-"));
const worlds: Standin[] = [];
afterAll(() => {
  for (const world of worlds) world.remove();
  rmSync(folder, { recursive: true, force: true });
});

function made(
  scenario: Scenario = {},
  callMs = 20_000,
): { world: Standin; sky: Sky; state: string; workdir: string } {
  const world = standin(scenario);
  worlds.push(world);
  const state = mkdtempSync(join(folder, "state-"));
  const workdir = join(state, "snapshot");
  mkdirSync(workdir);
  writeFileSync(join(workdir, "value.txt"), "19\n");
  const secrets = ["super-secret-value"];
  const sky = makeSky({
    program: world.sky,
    calls: join(state, "calls"),
    changes: join(state, "changes"),
    env: process.env,
    redact: (text) => redact(text, secrets),
    redactor: () => new Redactor(secrets),
    times: { callMs, readTries: 3 },
  });
  return { world, sky, state, workdir };
}

const up = { clusters: { [NAME]: { resources: TASK } } };
const exec = (sky: Sky, workdir: string, run: string, jobName = "vibesys-inv-aaaaaaaaaaaa-a1") =>
  sky.exec({ clusterName: NAME, jobName, resources: RESOURCES, workdir, run });

/** Waits for every process of sky to be gone; a killed one takes a moment. */
async function allGone(world: Standin): Promise<void> {
  const alive = () => world.calls().filter((call) => existsSync(`/proc/${call.pid}/exe`));
  for (let waited = 0; alive().length > 0 && waited < 3000; waited += 20) await Bun.sleep(20);
  expect(alive()).toEqual([]);
}

async function logs(
  sky: Sky,
  jobId: number,
  onOutput?: (text: string) => Promise<void>,
  signal: AbortSignal = new AbortController().signal,
): Promise<LogsEnd & { out: string; err: string }> {
  const pieces: Buffer[] = [];
  let err = "";
  const end = await sky.logs({
    clusterName: NAME,
    jobId,
    jobName: "vibesys-inv-aaaaaaaaaaaa-a1",
    nonce: NONCE,
    onOutput: async (chunk) => {
      pieces.push(Buffer.from(chunk));
      await onOutput?.(chunk.toString());
    },
    onStderr: (text) => {
      err += text;
    },
    signal,
  });
  return { ...end, out: Buffer.concat(pieces).toString(), err };
}

const NEVER = new AbortController().signal;

describe("calls", () => {
  test("argument vectors, and the task as JSON in a private file that is gone afterwards", async () => {
    const { world, sky, state, workdir } = made(up);
    await sky.cluster(NAME);
    await sky.queue(NAME);
    await sky.launch(NAME, RESOURCES, NEVER);
    expect(await exec(sky, workdir, "true")).toEqual({ ok: true, value: 2 });
    await logs(sky, 2);
    await sky.cancel(NAME, 2);
    await sky.cancel(NAME, "all");
    await sky.down(NAME);
    const argv = world
      .calls()
      .map((call) => call.argv.map((word) => (word.endsWith(".yaml") ? "TASK" : word)).join(" "));
    expect(argv).toEqual([
      `status --refresh --output json ${NAME}`,
      `status --output json ${NAME}`,
      `queue ${NAME} --output json`,
      `launch -y -d -c ${NAME} TASK`,
      `exec -d ${NAME} TASK`,
      `logs ${NAME} 2 --tail 0`,
      `cancel -y ${NAME} 2`,
      `cancel -y ${NAME} -a`,
      `down -y ${NAME}`,
    ]);
    const [launch, run] = world.calls().filter((call) => call.task !== undefined);
    expect(launch?.task).toEqual({
      num_nodes: 1,
      resources: TASK,
      run: "true",
      config: { slurm: { sbatch_options: { time: "01:00:00" } } },
    });
    expect(run?.task).toMatchObject({ run: "true", name: "vibesys-inv-aaaaaaaaaaaa-a1", workdir });
    for (const { argv } of world.calls())
      for (const word of argv) if (word.endsWith(".yaml")) expect(existsSync(word)).toBe(false);
    expect(readdirSync(join(state, "changes"))).toEqual([]);
  });

  test.each(["plain", "decorated"] as const)(
    "a job's own bytes, its code and its staged files (%s)",
    async (style) => {
      const { sky, workdir } = made({ ...up, style });
      await exec(
        sky,
        workdir,
        `cat value.txt; printf 'err\\n' >&2; printf '\\377'; echo; printf last; ${MARK("7")}; exit 7`,
      );
      const end = await logs(sky, 1);
      expect(end).toMatchObject({
        exitCode: 100,
        markerExit: 7,
        finished: style === "plain" ? null : "FAILED",
        causes: [],
      });
      expect(end.out).toBe("19\nerr\n\ufffd\nlast\n");
    },
  );

  test.each([
    ["time-limit", 143, "DUE TO TIME LIMIT"],
    ["preempted", 143, "DUE TO PREEMPTION"],
    ["node-failure", 0, "Node failure on a10gx1"],
    ["cancelled", 143, "CANCELLED AT"],
  ] as const)("the last words of an allocation: %s", async (cause, exitCode, words) => {
    for (const style of ["plain", "decorated"] as const) {
      const { world, sky, workdir } = made({ ...up, style, killWaitS: 0.05 });
      await exec(sky, workdir, "echo one; sleep 60");
      const end = await logs(sky, 1, async () => {
        world.change({ do: "end", cluster: NAME, cause });
      });
      expect(end).toMatchObject({ exitCode, markerExit: null, finished: null });
      expect(end.causes.join("\n")).toContain(words);
      expect(end.out.startsWith("one\n")).toBe(true);
    }
  });

  test("a slow consumer holds sky back", async () => {
    const { world, sky, workdir } = made({ ...up, style: "plain" });
    await exec(sky, workdir, "head -c 40000000 /dev/zero | tr '\\0' x; echo");
    let bytes = 0;
    let writtenEarly = -1;
    await logs(sky, 1, async (text) => {
      if (bytes === 0) {
        await Bun.sleep(700);
        const pid = world.calls().find((call) => call.command === "logs")?.pid;
        writtenEarly = Number(/wchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
      }
      bytes += text.length;
    });
    expect(bytes).toBe(40_000_001);
    expect(writtenEarly).toBeLessThan(4_000_000);
  });

  test("sky's stderr is masked, and so are messages", async () => {
    const stderr = "boom super-secret-value hf_abcdefghijklmnop\n";
    const { sky, workdir } = made({
      ...up,
      rules: [
        { on: "logs", stderr, exit: 1 },
        { on: "exec", stderr, exit: 1 },
      ],
    });
    const refused = await exec(sky, workdir, "true");
    expect(refused).toMatchObject({ ok: false, error: { kind: "refused" } });
    const text = JSON.stringify(refused) + JSON.stringify(await logs(sky, 1));
    expect(text).toContain("boom");
    expect(text).not.toContain("super-secret");
    expect(text).not.toContain("hf_abc");
  });

  test("an aborted log ends at once with all that it started", async () => {
    const { sky, workdir } = made(up);
    await exec(sky, workdir, "echo one; sleep 60");
    const stop = new AbortController();
    const end = await logs(sky, 1, async () => stop.abort(), stop.signal);
    expect(end.exitCode).toBe(null);
    expect(end.out).toBe("one\n");
  });
});

describe("what goes wrong", () => {
  test.each([
    ["status", { on: "status", hang: true }],
    ["queue", { on: "queue", hangChild: true }],
  ] as const)("%s that hangs is asked three times and killed with what it started", async (verb, rule) => {
    const { world, sky } = made({ ...up, rules: [rule] }, 150);
    const asked = await (verb === "status" ? sky.cluster(NAME) : sky.queue(NAME));
    expect(asked).toMatchObject({ ok: false, error: { kind: "timeout", error: "SkyPilotTimeoutError" } });
    expect(asked.ok ? "" : asked.error.message).toContain("3 attempts");
    await allGone(world);
  });

  test.each(["cancel", "down", "launch"] as const)(
    "%s that hangs is killed and not repeated",
    async (verb) => {
      const { world, sky } = made({ ...up, rules: [{ on: verb, hang: true }] }, 400);
      const done = await (verb === "cancel"
        ? sky.cancel(NAME, 1)
        : verb === "down"
          ? sky.down(NAME)
          : sky.launch(NAME, RESOURCES, AbortSignal.timeout(400)));
      expect(done).toMatchObject({ ok: false, error: { kind: "timeout" } });
      expect(world.commands().filter((command) => command === verb).length).toBeLessThanOrEqual(1);
      await allGone(world);
    },
  );

  test.each([
    ["garbage", { on: "queue", stdout: "no json\n", exit: 0 }, "output"],
    ["a flood", { on: "queue", flood: 40_000_000 }, "output"],
    ["exit 1", { on: "queue", stderr: "odd\n", exit: 1 }, "refused"],
    [
      "no API server",
      { on: "queue", stderr: "sky.exceptions.ApiServerConnectionError: Could not connect\n", exit: 1 },
      "transport",
    ],
    [
      "an expired certificate",
      { on: "queue", stderr: "ssh: Certificate invalid: expired\n", exit: 255 },
      "certificate",
    ],
    [
      "no cluster",
      { on: "queue", stderr: "sky.exceptions.ClusterDoesNotExist: no\n", exit: 1 },
      "no-cluster",
    ],
  ] as const)("%s", async (_, rule, kind) => {
    const { sky } = made({ ...up, rules: [rule] });
    expect(await sky.queue(NAME)).toMatchObject({ ok: false, error: { kind } });
  });

  test("no executable", async () => {
    const { state, workdir } = made(up);
    for (const program of [join(state, "nowhere"), "no-such-sky"]) {
      const sky = makeSky({
        program,
        calls: join(state, "calls"),
        changes: join(state, "changes"),
        env: process.env,
        redact: (text) => text,
        redactor: () => new Redactor([]),
      });
      const missing = { ok: false, error: { kind: "missing-cli", error: "SkyPilotCLIError" } };
      expect(await sky.queue(NAME)).toMatchObject(missing);
      expect(await exec(sky, workdir, "true")).toMatchObject(missing);
      expect(await sky.down(NAME)).toMatchObject(missing);
      expect((await logs(sky, 1)).exitCode).toBe(null);
    }
  });

  test("a refusal that names the job is none", async () => {
    const { sky, workdir } = made({ ...up, rules: [{ on: "exec", exitAfter: 1 }] });
    expect(await exec(sky, workdir, "true")).toEqual({ ok: true, value: 1 });
  });

  test("the variables of an evaluation are not sky's, but what sky needs is", () => {
    const env = {
      HOME: "/h",
      PATH: "/bin",
      SSH_AUTH_SOCK: "/s",
      SKYPILOT_X: "1",
      HF_TOKEN: "t",
      OTHER: "o",
      NEURARCH_X: "n",
    };
    expect(Object.keys(skyEnvironment(env, ["HF_TOKEN", "HOME", "SSH_AUTH_SOCK"]))).toEqual([
      "HOME",
      "PATH",
      "SSH_AUTH_SOCK",
      "SKYPILOT_X",
      "OTHER",
    ]);
  });
});

describe("a daemon that is killed in mid-call", () => {
  /** Another process that makes the call and is killed with -9 as soon as sky was started. */
  async function killedIn(world: Standin, state: string, code: string, verb: string): Promise<void> {
    const script = join(state, "daemon.ts");
    const root = join(import.meta.dir, "../../src");
    writeFileSync(
      script,
      `import { makeSky } from ${JSON.stringify(`${root}/daemon/sky.ts`)};
const sky = makeSky({ program: ${JSON.stringify(world.sky)}, calls: ${JSON.stringify(join(state, "calls"))}, changes: ${JSON.stringify(join(state, "changes"))},
  env: process.env, redact: (t: string) => t, redactor: () => ({ push: (t: string) => t, end: () => "" }) });
const resources = ${JSON.stringify(RESOURCES)};
await ${code};
`,
    );
    const child = Bun.spawn([process.execPath, script], { stdout: "ignore", stderr: "inherit" });
    const until = Date.now() + 20_000;
    while (!world.commands().includes(verb) && Date.now() < until) await Bun.sleep(5);
    child.kill("SIGKILL");
    await child.exited;
  }

  test("its submission goes on, happens once, and its outcome is found", async () => {
    const { world, sky, state, workdir } = made({ ...up, rules: [{ on: "exec", delayS: 0.6 }] });
    const jobName = "vibesys-inv-bbbbbbbbbbbb-a1";
    expect(await sky.pendingExec(jobName)).toBe(null);
    await killedIn(
      world,
      state,
      `sky.exec({ clusterName: ${JSON.stringify(NAME)}, jobName: ${JSON.stringify(jobName)}, resources, workdir: ${JSON.stringify(workdir)}, run: "echo once" })`,
      "exec",
    );
    expect(isCallRunning(join(state, "calls", jobName))).toBe(true);
    expect(await sky.pendingExec(jobName)).toEqual({ ok: true, value: 1 });
    expect(await sky.pendingExec(jobName)).toEqual({ ok: true, value: 1 });
    expect(world.commands()).toEqual(["exec"]);
    const queue = await sky.queue(NAME);
    expect(queue.ok && queue.value.jobs.map((job) => job.name)).toEqual([jobName]);
    expect(existsSync(join(state, "calls", jobName, "task.yaml"))).toBe(false);
  });

  test("its launch is waited for and not made twice", async () => {
    const { world, sky, state } = made({ rules: [{ on: "launch", delayS: 0.6 }] });
    await killedIn(
      world,
      state,
      `sky.launch(${JSON.stringify(NAME)}, resources, new AbortController().signal)`,
      "launch",
    );
    expect(await sky.launch(NAME, RESOURCES, NEVER)).toEqual({ ok: true, value: null });
    expect(world.commands()).toEqual(["launch"]);
    expect(world.running()).toEqual([1]);
  });

  test("a shell that never began does not begin later", async () => {
    const { sky, state } = made(up);
    const call = join(state, "calls", "job-a1");
    mkdirSync(call, { recursive: true });
    writeFileSync(join(call, "about.json"), "{}");
    expect(await sky.pendingExec("job-a1")).toBe(null);
    expect(existsSync(join(call, "started"))).toBe(true);
  });
});

describe("the allocation", () => {
  function allocated(
    scenario: Scenario,
    more: { timeoutS?: number; resources?: Partial<ResolvedResources>; isBusy?: boolean } = {},
  ) {
    const { world, sky } = made(scenario);
    const notices: string[] = [];
    const resources = { ...RESOURCES, ...more.resources };
    const campaign = { resources, timeoutS: more.timeoutS ?? null } as Campaign;
    const allocations = makeAllocations({
      campaign,
      clusterName: NAME,
      sky,
      limits: { ...LIMITS, queuePollMs: 20, reconnectMs: 20, secondLookMs: 20, launchMs: 3000 },
      nowMs: () => Date.now(),
      awakeMs: () => performance.now(),
      sleep: (ms) => Bun.sleep(ms),
      log: () => undefined,
      ...(more.isBusy === undefined ? {} : { isBusy: () => more.isBusy === true }),
    });
    return {
      world,
      sky,
      allocations,
      notices,
      ensure: () => allocations.ensure((text) => void notices.push(text)),
    };
  }

  test("is launched where there is none, and found again by one question", async () => {
    const { world, ensure } = allocated({});
    expect(await ensure()).toEqual({ ok: true, value: { clusterName: NAME, nodeNames: "job1-a10gx1" } });
    expect(world.commands()).toEqual(["status", "launch", "status", "status"]);
    expect(await ensure()).toMatchObject({ ok: true });
    expect(world.commands().slice(4)).toEqual(["status"]);
    expect(world.calls().at(-1)?.argv).not.toContain("--refresh");
  });

  test.each([
    ["UP", ["status", "status"]],
    ["STOPPED", ["status", "down", "launch", "status", "status"]],
    ["DOWN", ["status", "down", "launch", "status", "status"]],
    ["INIT", ["status", "status", "status", "status"]],
  ])("that is %s", async (status, commands) => {
    const { world, ensure } = allocated({ clusters: { [NAME]: { status, resources: TASK } } });
    expect(await ensure()).toMatchObject({ ok: true });
    expect(world.commands()).toEqual(commands);
  });

  test.each(["STOPPED", "DOWN"])("that was being made and became %s is an error", async (status) => {
    const { world, ensure } = allocated({ clusters: { [NAME]: { status: "INIT", resources: TASK } } });
    const says = (word: string) => `[{"name": "${NAME}", "status": "${word}"}]\n`;
    world.scenario({
      rules: [
        { on: "status", nth: 1, stdout: says("INIT"), exit: 0 },
        { on: "status", nth: 2, stdout: says(status), exit: 0 },
      ],
    });
    const made = await ensure();
    expect(made.ok ? "" : made.error.message).toContain(`became ${status}`);
    expect(world.commands()).toEqual(["status", "status"]);
  });

  test("of a state that nobody knows is not touched", async () => {
    const { world, ensure } = allocated({ clusters: { [NAME]: { status: "ODD", resources: TASK } } });
    expect(await ensure()).toMatchObject({ ok: false });
    expect(world.commands()).toEqual(["status"]);
  });

  test.each([
    ["another card", { accelerators: "H100:1", infra: "slurm/lab/gpu" }, "has H100:1, not A10G:1"],
    ["more cards", { accelerators: "A10G:4", infra: "slurm/lab/gpu" }, "has A10G:4, not A10G:1"],
    [
      "another cluster",
      { accelerators: "A10G:1", infra: "slurm/far/gpu" },
      "is on slurm/far, not on slurm/lab/gpu",
    ],
  ])("with %s is refused before it is used", async (_, resources, words) => {
    const { world, ensure } = allocated({ clusters: { [NAME]: { resources } } });
    const found = await ensure();
    expect(found).toMatchObject({ ok: false, error: { kind: "refused" } });
    expect(found.ok ? "" : found.error.message).toContain(words);
    expect(world.commands()).toEqual(["status", "status"]);
    expect(world.running()).toEqual([1]);
  });

  test("that is short of time is replaced, cancel before down, unless a job is on it", async () => {
    const short = { timeoutS: 3000, resources: { allocationTime: "01:00:00" } };
    const old = allocated(up, short);
    await old.ensure();
    expect(old.world.commands()).toEqual(["status", "status"]);
    for (const isBusy of [false, true]) {
      const { world, ensure } = allocated(up, { ...short, isBusy });
      world.commands();
      world.age(NAME, 1200);
      expect(await ensure()).toMatchObject({ ok: true });
      expect(world.commands()).toEqual(
        isBusy ? ["status", "status"] : ["status", "status", "cancel", "down", "launch", "status", "status"],
      );
    }
  });

  test("that was lost between two evaluations is made anew, and told by its nodes", async () => {
    for (const change of [{ do: "drop" }, { do: "status", status: "STOPPED" }] as const) {
      const { world, ensure, allocations } = allocated({});
      const first = await ensure();
      world.change({ ...change, cluster: NAME } as Parameters<Standin["change"]>[0]);
      const second = await ensure();
      expect(second).toMatchObject({ ok: true });
      expect(second).not.toEqual(first);
      expect(first.ok && (await allocations.look(first.value))).toBe("gone");
      expect(second.ok && (await allocations.look(second.value))).toBe("same");
    }
  });

  test("is gone only after two answers that agree", async () => {
    const { world, ensure, allocations } = allocated({});
    const first = await ensure();
    world.scenario({ rules: [{ on: "status", nth: 4, stdout: "[]\n", exit: 0 }] });
    expect(first.ok && (await allocations.look(first.value))).toBe("same");
    world.scenario({});
    world.change({ do: "flag", flag: "sshd-down", on: true });
    expect(first.ok && (await allocations.look(first.value))).toBe("unreachable");
  });

  test("is given back whole even while a job runs on it", async () => {
    const { world, sky, ensure, allocations } = allocated({});
    await ensure();
    await exec(sky, folder, "sleep 60");
    expect(world.running()).toEqual([1]);
    expect(await allocations.release()).toEqual({ ok: true, value: null });
    expect(world.running()).toEqual([]);
    expect(world.commands().slice(-2)).toEqual(["cancel", "down"]);
  });

  test.each(["sshd-down", "certificate-expired"] as const)(
    "is not forgotten while it cannot be reached (%s)",
    async (flag) => {
      const { world, ensure, allocations } = allocated({});
      await ensure();
      world.change({ do: "flag", flag, on: true });
      expect(await allocations.release()).toMatchObject({ ok: false });
      expect(world.commands().at(-1)).toBe("cancel");
      expect(world.cluster(NAME)).not.toBe(null);
      world.change({ do: "flag", flag, on: false });
      expect(await allocations.release()).toMatchObject({ ok: true });
      expect(world.running()).toEqual([]);
    },
  );
});
