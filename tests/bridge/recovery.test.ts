/** What becomes of an evaluation when the world around it fails: each under plain and under decorated logs. */
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, type BenchOptions, bench, RESULT_PATH } from "./bridge-kit.ts";
import type { Change } from "./standin-sky-world.ts";

const CLUSTER = "*";
const ends = (
  cause: "time-limit" | "preempted" | "node-failure" | "vanished" | "cancelled",
  purge = false,
): Change => ({
  do: "end",
  cluster: CLUSTER,
  cause,
  purge,
});

async function on(options: BenchOptions, work: (b: Bench) => Promise<void>): Promise<void> {
  const made = bench(options);
  try {
    await work(made);
  } finally {
    await made.remove();
  }
}

const until = async (done: () => boolean) => {
  while (!done()) await Bun.sleep(10);
};
/** The lines of the program, without those of a shell or srun that was ended. */
const own = (out: string) => out.replace(/^(?!one$|two$).*\n/gm, "");
const jobsRun = (b: Bench) => b.sky.calls().filter(({ command }) => command === "exec").length;
/** Notes in the workspace's own folder, outside the snapshot, how often the program ran. */
const counted = (b: Bench) => {
  const path = join(b.root, "runs");
  return existsSync(path) ? readFileSync(path, "utf8").length : 0;
};
const count = (b: Bench) => `printf x >>${join(b.root, "runs")}`;
const script = (b: Bench, text: string) => b.write("check.sh", `${count(b)}\n${text}\n`);
const CHECK = { accuracy: "sh check.sh" };

/** Kills a daemon once its client has seen so much of the output; how the client ended. */
const killedOnce = async (b: Bench, seen: (out: string) => boolean) => {
  const daemon = await b.start();
  const running = b.evaluating(["accuracy"]);
  await until(() => seen(running.out()));
  await daemon.kill("SIGKILL");
  return await running.ran;
};

for (const style of ["plain", "decorated"] as const) {
  describe(`${style} logs`, () => {
    test("launch once, evaluate twice and a benchmark, release once", () =>
      on({ scenario: { style } }, async (b) => {
        const daemon = await b.start();
        expect(await b.evaluate(["accuracy"])).toEqual({ exit: 0, out: "checked\n", err: "" });
        expect(await b.evaluate(["accuracy"])).toEqual({ exit: 0, out: "checked\n", err: "" });
        expect(await b.evaluate(["benchmark", "--output-json", RESULT_PATH])).toEqual({
          exit: 0,
          out: "bench\n",
          err: "",
        });
        expect(readFileSync(RESULT_PATH, "utf8")).toBe('{"score": 1}');
        expect(await daemon.kill()).toBe(0);
        expect(b.sky.commands().filter((name) => name === "launch" || name === "down")).toEqual([
          "launch",
          "down",
        ]);
        expect(b.sky.commands().slice(-2)).toEqual(["cancel", "down"]);
        expect(b.sky.running()).toEqual([]);
        expect(existsSync(b.socket)).toBe(false);
      }));

    test("an application failure is told with its code and never tried again", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "echo nope; exit 7");
        await b.start();
        const { exit, out, err } = await b.evaluate(["accuracy"]);
        expect([exit, out]).toEqual([1, "nope\n"]);
        expect(err).toMatch(
          /exit code 7\. \(APPLICATION_FAILED; cluster vibesys-run-1-\w+, job 2, attempt 1\)/,
        );
        expect([jobsRun(b), counted(b)]).toEqual([1, 1]);
      }));

    const LOST = [
      ["time-limit", "Allocation expired"],
      ["preempted", "Allocation was preempted"],
      ["node-failure", "Node failed"],
      ["vanished", "Allocation expired"],
    ] as const;
    for (const [cause, words] of LOST) {
      test(`${cause} in the middle of a run: another attempt on another allocation`, () =>
        on({ ...CHECK, scenario: { style } }, async (b) => {
          script(b, "echo one; sleep 0.6; echo two");
          await b.start();
          const running = b.evaluating(["accuracy"]);
          await until(() => running.out() === "one\n");
          b.sky.change(ends(cause));
          const { exit, out, err } = await running.ran;
          // A shell that is asked to end may have a last word of its own.
          expect([exit, own(out)]).toEqual([0, "one\none\ntwo\n"]);
          expect(err).toContain(`${words} after `);
          expect(err).toContain("retrying on a new allocation (attempt 2 of 2). Output starts again.");
          expect(b.sky.slurm().length).toBe(2);
        }));
    }

    test("twice lost: an error that the next call passes", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "echo one; sleep 1; echo two");
        await b.start();
        const running = b.evaluating(["accuracy"]);
        await until(() => running.out() === "one\n");
        b.sky.change(ends("time-limit"));
        await until(() => own(running.out()) === "one\none\n");
        b.sky.change(ends("preempted"));
        const { exit, out, err } = await running.ran;
        expect([exit, own(out)]).toEqual([2, "one\none\n"]);
        expect(err).toContain(
          "(PREEMPTED); all 2 attempts of this call were lost to infrastructure. The next call begins anew.",
        );
        const next = await b.evaluate(["accuracy"]);
        expect([next.exit, next.out]).toEqual([0, "one\ntwo\n"]);
      }));

    for (const queueMissing of ["empty", "error"] as const) {
      for (const purge of [false, true]) {
        test(`an allocation that ended between two evaluations is replaced (queue ${queueMissing}, purged ${purge})`, () =>
          on({ scenario: { style, queueMissing } }, async (b) => {
            await b.start();
            expect((await b.evaluate(["accuracy"])).exit).toBe(0);
            b.sky.change(ends("time-limit", purge));
            expect((await b.evaluate(["accuracy"])).exit).toBe(0);
            expect(b.sky.slurm().length).toBe(2);
          }));
      }
    }

    test("FAILED_DRIVER while streaming is infrastructure", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "echo one; sleep 0.8; echo two");
        await b.start();
        const running = b.evaluating(["accuracy"]);
        await until(() => running.out() === "one\n");
        b.sky.change({ do: "job", cluster: CLUSTER, job: "last", status: "FAILED_DRIVER" });
        const { exit, out, err } = await running.ran;
        expect([exit, out]).toEqual([0, "one\none\ntwo\n"]);
        expect(err).toContain("attempt 2 of 2");
      }));

    test("FAILED_DRIVER seen at a restart", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "echo one; sleep 0.8; echo two");
        expect((await killedOnce(b, (out) => out === "one\n")).exit).toBe(2);
        b.sky.change({ do: "job", cluster: CLUSTER, job: "last", status: "FAILED_DRIVER" });
        await b.start();
        const { exit, out } = await b.evaluate(["accuracy"]);
        expect([exit, out]).toEqual([0, "one\ntwo\n"]);
      }));

    test("a lost connection is taken up again within the call, each line once", () =>
      on({ ...CHECK, scenario: { style, rules: [{ on: "logs", nth: 1, cutLines: 1 }] } }, async (b) => {
        script(b, "echo one; sleep 0.5; echo two");
        await b.start();
        const { exit, out } = await b.evaluate(["accuracy"]);
        expect([exit, out]).toEqual([0, "one\ntwo\n"]);
        expect([jobsRun(b), counted(b)]).toEqual([1, 1]);
      }));

    test("sshd away in mid-run: said, looked for again, each line once", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "echo one; sleep 0.8; echo two");
        await b.start();
        const running = b.evaluating(["accuracy"]);
        await until(() => running.out() === "one\n");
        b.sky.change({ do: "flag", flag: "sshd-down", on: true }, { do: "cut" });
        await Bun.sleep(600);
        b.sky.change({ do: "flag", flag: "sshd-down", on: false });
        const { exit, out, err } = await running.ran;
        expect([exit, out]).toEqual([0, "one\ntwo\n"]);
        expect(err).toContain("TRANSPORT_LOST");
        expect(counted(b)).toBe(1);
      }));

    test("an unreachable cluster ends the call, not the job; the next call gets the rest", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "echo one; sleep 0.8; echo two");
        await b.start({ limits: { reconnectPatienceMs: 300 } });
        const running = b.evaluating(["accuracy"]);
        await until(() => running.out() === "one\n");
        b.sky.change({ do: "flag", flag: "certificate-expired", on: true }, { do: "cut" });
        const first = await running.ran;
        expect([first.exit, first.out]).toEqual([2, "one\n"]);
        expect(first.err).toContain("certificate of this host has expired");
        b.sky.change({ do: "flag", flag: "certificate-expired", on: false });
        const { exit, out } = await b.evaluate(["accuracy"]);
        expect([exit, out]).toEqual([0, "two\n"]);
        expect(counted(b)).toBe(1);
      }));

    test("a killed daemon: the restarted one goes on with the running job, each line once", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "echo one; echo two; sleep 1; echo three");
        expect((await killedOnce(b, (out) => out === "one\ntwo\n")).exit).toBe(2);
        await b.start();
        const { exit, out } = await b.evaluate(["accuracy"]);
        expect([exit, out]).toEqual([0, "three\n"]);
        expect([jobsRun(b), counted(b)]).toEqual([1, 1]);
      }));

    test("a killed client: the job goes on, its result is recorded, and the next call gets what was not handed out", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "echo one; sleep 0.6; echo two; sleep 0.2; echo three");
        await b.start();
        const running = b.evaluating(["accuracy"]);
        await until(() => running.out() === "one\n");
        running.kill("SIGKILL");
        await running.ran;
        await until(() => b.journal().some((entry) => JSON.stringify(entry).includes('"phase":"COMPLETED"')));
        const logs = b.sky.commands().filter((name) => name === "logs").length;
        const { exit, out } = await b.evaluate(["accuracy"]);
        expect([exit, out]).toEqual([0, "two\nthree\n"]);
        expect(b.sky.commands().filter((name) => name === "logs").length).toBe(logs);
      }));

    test("a job that somebody else cancelled", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "echo one; sleep 5");
        await b.start();
        const running = b.evaluating(["accuracy"]);
        await until(() => running.out() === "one\n");
        b.sky.change({ do: "job", cluster: CLUSTER, job: "last", status: "CANCELLED" });
        const { exit, out, err } = await running.ran;
        expect([exit, out]).toEqual([130, "one\n"]);
        expect(err).toContain("CANCELLED");
      }));

    test("a daemon that is closed during a run cancels it, tells its client and releases", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "echo one; sleep 20");
        const daemon = await b.start();
        const running = b.evaluating(["accuracy"]);
        await until(() => running.out() === "one\n");
        expect(await daemon.kill()).toBe(0);
        expect((await running.ran).exit).toBe(130);
        expect(b.sky.running()).toEqual([]);
        expect(existsSync(b.socket)).toBe(false);
      }));

    test("exec that lost its reply: its job is found, nothing runs twice", () =>
      on(
        { ...CHECK, scenario: { style, rules: [{ on: "exec", nth: 1, mute: true, exitAfter: 1 }] } },
        async (b) => {
          script(b, "echo checked");
          await b.start();
          expect(await b.evaluate(["accuracy"])).toEqual({ exit: 0, out: "checked\n", err: "" });
          expect([jobsRun(b), counted(b)]).toEqual([1, 1]);
        },
      ));

    test("exec that was refused: an error, and the next call submits", () =>
      on(
        {
          ...CHECK,
          scenario: { style, rules: [{ on: "exec", nth: 1, stderr: "no, token=hf_abcdefghijk\n", exit: 1 }] },
        },
        async (b) => {
          script(b, "echo checked");
          await b.start();
          const first = await b.evaluate(["accuracy"]);
          expect([first.exit, first.out]).toEqual([2, ""]);
          expect(first.err).toContain("SkyPilot exec failed with exit code 1");
          expect(first.err).not.toContain("hf_abcdefghijk");
          expect(await b.evaluate(["accuracy"])).toEqual({
            exit: 0,
            out: "checked\n",
            err: expect.stringContaining("going on with") as unknown as string,
          });
          expect(counted(b)).toBe(1);
        },
      ));

    test("a job that shows up after it was taken to be nowhere is found by the next call, nothing runs twice", () =>
      on(
        {
          ...CHECK,
          scenario: { style, visibleAfter: 2, rules: [{ on: "exec", nth: 1, mute: true, exitAfter: 1 }] },
        },
        async (b) => {
          script(b, "echo checked");
          await b.start();
          const first = await b.evaluate(["accuracy"]);
          expect([first.exit, first.out]).toEqual([2, ""]);
          const next = await b.evaluate(["accuracy"]);
          expect([next.exit, next.out]).toEqual([0, "checked\n"]);
          expect([jobsRun(b), counted(b)]).toEqual([1, 1]);
        },
      ));

    test("a job that shows up in the queue late is not submitted again", () =>
      on(
        {
          ...CHECK,
          scenario: { style, visibleAfter: 3, rules: [{ on: "exec", nth: 1, mute: true, exitAfter: 0 }] },
        },
        async (b) => {
          script(b, "echo checked");
          await b.start();
          expect((await b.evaluate(["accuracy"])).out).toBe("checked\n");
          expect([jobsRun(b), counted(b)]).toEqual([1, 1]);
        },
      ));

    test("a log that changed behind us: said, its output starts again, the job does not", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "echo one; sleep 0.8; echo two");
        await b.start();
        const running = b.evaluating(["accuracy"]);
        await until(() => running.out() === "one\n");
        const log = join(b.sky.root, "clusters", clusterOf(b), "jobs", "2", "log");
        writeFileSync(log, readFileSync(log, "utf8").replace("one", "ONE"));
        b.sky.change({ do: "cut" });
        const { exit, out, err } = await running.ran;
        expect(exit).toBe(0);
        expect(out).toBe("one\nONE\ntwo\n");
        expect(err).toContain("its output starts again");
        expect([jobsRun(b), counted(b)]).toEqual([1, 1]);
      }));

    test("a candidate that was edited meanwhile: said while a job is under way, measured when none is", () =>
      on({ accuracy: "sh check.sh", scenario: { style } }, async (b) => {
        b.write("check.sh", "cat candidate.py; sleep 0.8; echo two");
        await killedOnce(b, (out) => out !== "");
        b.write("candidate.py", "print('edited')\n");
        await b.start();
        const pinned = await b.evaluate(["accuracy"]);
        expect([pinned.exit, pinned.out]).toEqual([0, "two\n"]);
        expect(pinned.err).toContain("it reports the candidate as it was then");
        const fresh = await b.evaluate(["accuracy"]);
        expect([fresh.exit, fresh.out, fresh.err]).toEqual([0, "print('edited')\ntwo\n", ""]);
      }));

    test("prefix, setup and environment, whose values stand in no argument and no log", () =>
      on(
        {
          accuracy: "sh check.sh",
          more: 'setup = "export READY=1"\n',
          tables: '[environment]\nset = { SECRET_WORD = "s3cr3t-w0rd" }\n',
          profile: 'command_prefix = ["env", "-C", "/", "X=1"]\n',
          scenario: { style },
        },
        async (b) => {
          // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's
          b.write("check.sh", 'echo "$READY $X ${#SECRET_WORD}"; ls -a | grep -c neurarch; exit 0');
          const daemon = await b.start();
          const { exit, out } = await b.evaluate(["accuracy"]);
          expect([exit, out]).toEqual([0, "1 1 11\n0\n"]);
          expect(JSON.stringify(b.sky.calls())).not.toContain("s3cr3t");
          expect(daemon.log()).not.toContain("s3cr3t");
        },
      ));

    const MISSING: readonly (readonly [string, string, string])[] = [
      ["no result file", "echo no file", "there is no result file"],
      ["a result that is too large", `head -c 600000 /dev/zero >"$2"`, "has more than 524,288 bytes"],
    ];
    for (const [name, text, words] of MISSING) {
      test(`${name}: final, and the next call runs anew`, () =>
        on({ scenario: { style } }, async (b) => {
          b.write("bench.sh", text);
          await b.start();
          const { exit, err } = await b.evaluate(["benchmark", "--output-json", RESULT_PATH]);
          expect(exit).toBe(1);
          expect(err).toContain(words);
          b.write("bench.sh", `echo bench; printf 1 >"$2"`);
          expect(await b.evaluate(["benchmark", "--output-json", RESULT_PATH])).toEqual({
            exit: 0,
            out: "bench\n",
            err: "",
          });
        }));
    }

    test("a program that prints no last newline, and one that looks like a marker", () =>
      on({ ...CHECK, scenario: { style } }, async (b) => {
        script(b, "printf '__NEURARCH_BRIDGE_END_0123__ exit=0\\nabc'; exit 3");
        await b.start();
        const { exit, out } = await b.evaluate(["accuracy"]);
        expect([exit, out.trimEnd()]).toEqual([1, "__NEURARCH_BRIDGE_END_0123__ exit=0\nabc"]);
      }));
  });
}

const clusterOf = (b: Bench) =>
  b.sky
    .calls()
    .find(({ command }) => command === "launch")!
    .argv.at(-2)!;

test("INIT is waited for, a stopped cluster is taken down and launched anew", () =>
  on({ scenario: { launchStatus: "INIT", initPolls: 2 } }, async (b) => {
    await b.start();
    expect((await b.evaluate(["accuracy"])).exit).toBe(0);
    b.sky.change({ do: "status", cluster: CLUSTER, status: "STOPPED" });
    expect((await b.evaluate(["accuracy"])).exit).toBe(0);
    expect(b.sky.commands().filter((name) => name === "launch" || name === "down")).toEqual([
      "launch",
      "down",
      "launch",
    ]);
  }));

describe("an allocation that waits in the cluster's queue", () => {
  test("for longer than a launch may go unseen: it is waited for, and its clients are told", () =>
    on({ scenario: { pendingS: 6 } }, async (b) => {
      const daemon = await b.start({ waitFor: "listening on", limits: { launchMs: 4000 } });
      const { exit, out, err } = await b.evaluate(["accuracy"]);
      expect([exit, out]).toEqual([0, "checked\n"]);
      expect(err).toContain("the cluster's own queue decides how long it takes");
      expect(b.sky.commands().filter((name) => name === "launch").length).toBe(1);
      expect(daemon.log()).toContain("serving run");
    }));

  test("an interrupt ends an evaluation that waits, not the launch; the next one joins in", () =>
    on({}, async (b) => {
      await b.start();
      b.sky.scenario({ pendingS: 3 });
      b.sky.change(ends("time-limit", true));
      const first = b.evaluating(["accuracy"]);
      await until(() => b.sky.slurm().some(({ state }) => state === "PENDING"));
      first.kill("SIGINT");
      const ran = await first.ran;
      expect([ran.exit, ran.out]).toEqual([130, ""]);
      expect(ran.err).toContain("Cancelled before it was started.");
      const next = await b.evaluate(["accuracy"]);
      expect([next.exit, next.out]).toEqual([0, "checked\n"]);
      expect(next.err).toContain("The allocation is still being made.");
      expect(b.sky.slurm().map(({ state }) => state)).toEqual(["TIMEOUT", "RUNNING"]);
    }));

  test("a client that leaves while it waits begins nothing, and the next call measures the workspace as it is", () =>
    on({ accuracy: "cat candidate.py" }, async (b) => {
      await b.start();
      b.sky.scenario({ pendingS: 2 });
      b.sky.change(ends("time-limit", true));
      const first = b.evaluating(["accuracy"]);
      await until(() => b.sky.slurm().some(({ state }) => state === "PENDING"));
      first.kill("SIGKILL");
      await first.ran;
      b.write("candidate.py", "edited\n");
      const next = await b.evaluate(["accuracy"]);
      expect([next.exit, next.out]).toEqual([0, "edited\n"]);
      expect(jobsRun(b)).toBe(1);
    }));

  test("longer than `launch_timeout`: a clear error, and nothing is left in the queue", () =>
    on({ more: "launch_timeout = 1\n" }, async (b) => {
      await b.start();
      b.sky.scenario({ pendingS: 1000 });
      b.sky.change(ends("time-limit", true));
      const { exit, err } = await b.evaluate(["accuracy"]);
      expect(exit).toBe(2);
      expect(err).toContain("was not ready within 1 s (`launch_timeout`); it is given up");
      expect(b.sky.running()).toEqual([]);
      b.sky.scenario({});
      expect((await b.evaluate(["accuracy"])).exit).toBe(0);
    }));

  test("a launch of which nothing is seen is given up", () =>
    on({ scenario: { rules: [{ on: "launch", hang: true }] } }, async (b) => {
      const daemon = await b.start({ limits: { launchMs: 700 } });
      expect(await daemon.ended).not.toBe(0);
      expect(daemon.log()).toContain("nothing is seen of it in the cluster's queue");
      expect(b.sky.running()).toEqual([]);
    }));

  test("a lost connection does not cost it its place", () =>
    on({ scenario: { pendingS: 3 } }, async (b) => {
      await b.start({ waitFor: "queue decides", limits: { launchMs: 1500 } });
      b.sky.change({ do: "flag", flag: "sshd-down", on: true });
      await Bun.sleep(1000);
      b.sky.change({ do: "flag", flag: "sshd-down", on: false });
      expect((await b.evaluate(["accuracy"])).exit).toBe(0);
      expect(b.sky.slurm().length).toBe(1);
    }));

  test("a daemon that is ended meanwhile leaves nothing in the queue", () =>
    on({ scenario: { pendingS: 1000 } }, async (b) => {
      const daemon = await b.start({ waitFor: "queue decides", limits: { closeMs: 400 } });
      expect(b.sky.running()).toEqual([1]);
      expect(await daemon.kill()).toBe(0);
      expect(b.sky.running()).toEqual([]);
      expect(existsSync(b.socket)).toBe(false);
    }));

  test("a daemon that is killed meanwhile: the next one waits for the same allocation", () =>
    on({ scenario: { pendingS: 3 } }, async (b) => {
      const first = await b.start({ waitFor: "queue decides" });
      await first.kill("SIGKILL");
      await b.start();
      expect((await b.evaluate(["accuracy"])).exit).toBe(0);
      expect(b.sky.slurm().length).toBe(1);
    }));
});

test("an allocation that ended a moment ago costs no attempt", () =>
  on({ more: "retries = 0\n" }, async (b) => {
    await b.start();
    expect((await b.evaluate(["accuracy"])).exit).toBe(0);
    // SkyPilot has not looked since.
    b.sky.change(ends("time-limit"));
    const { exit, out, err } = await b.evaluate(["accuracy"]);
    expect([exit, out]).toEqual([0, "checked\n"]);
    expect(err).toContain("The allocation had ended before the job was in it");
  }));

test("an allocation that ended while no daemon ran: another attempt under the next name", () =>
  on(CHECK, async (b) => {
    script(b, "echo one; sleep 0.6; echo two");
    await killedOnce(b, (out) => out === "one\n");
    b.sky.change(ends("time-limit", true));
    await b.start();
    const { exit, out } = await b.evaluate(["accuracy"]);
    expect([exit, out]).toEqual([0, "one\ntwo\n"]);
    const names = b.sky
      .calls()
      .flatMap(({ command, task }) => (command === "exec" ? [String(task?.name)] : []));
    expect(names.map((name) => name.slice(-3))).toEqual(["-a1", "-a2"]);
  }));

test("a job of a launch with other resources goes on where it is, and both allocations are given back", () =>
  on(CHECK, async (b) => {
    script(b, "echo one; sleep 1.5; echo two");
    await killedOnce(b, (out) => out === "one\n");
    const clusters = join(b.root, "clusters.toml");
    writeFileSync(clusters, readFileSync(clusters, "utf8").replace("08:00:00", "09:00:00"));
    const second = await b.start();
    const { exit, out } = await b.evaluate(["accuracy"]);
    expect([exit, out, counted(b)]).toEqual([0, "two\n", 1]);
    expect(b.sky.running().length).toBe(2);
    // Told to end twice, it gives each back once.
    void second.kill();
    expect(await second.kill()).toBe(0);
    expect(b.sky.commands().filter((name) => name === "down").length).toBe(2);
    expect(b.sky.running()).toEqual([]);
  }));

test.each(["the next daemon", "the operator"])(
  "the allocation that a killed daemon left idle under other resources is given back by %s",
  (who) =>
    on({}, async (b) => {
      const relaunched = async (from: string, to: string) => {
        const clusters = join(b.root, "clusters.toml");
        writeFileSync(clusters, readFileSync(clusters, "utf8").replace(from, to));
        return await b.start();
      };
      await (await b.start()).kill("SIGKILL");
      await (await relaunched("08:00:00", "09:00:00")).kill("SIGKILL");
      if (who === "the operator")
        expect((await b.cli(["bridge", "release", "--state", b.state])).exit).toBe(0);
      else expect(await (await relaunched("09:00:00", "10:00:00")).kill()).toBe(0);
      expect(b.sky.slurm().length).toBe(who === "the operator" ? 2 : 3);
      expect(b.sky.running()).toEqual([]);
    }),
);

test("a journal that lost an evaluation: its job is not run twice, and once it has ended the next call begins anew", () =>
  on(CHECK, async (b) => {
    script(b, "echo one; sleep 1.5; echo two");
    await killedOnce(b, (out) => out === "one\n");
    const journal = join(b.state, "journal");
    writeFileSync(journal, readFileSync(journal, "utf8").replaceAll('"accuracy"', '"accurAcy"'));
    await b.start();
    const refused = await b.evaluate(["accuracy"]);
    expect([refused.exit, refused.out, counted(b), jobsRun(b)]).toEqual([2, "", 1, 1]);
    expect(refused.err).toContain("nothing is submitted before it has ended");
    await Bun.sleep(1800);
    const next = await b.evaluate(["accuracy"]);
    expect([next.exit, next.out, counted(b)]).toEqual([0, "one\ntwo\n", 2]);
  }));

const BROKEN: readonly (readonly [string, (b: Bench) => void, string])[] = [
  [
    "fails",
    (b) => b.sky.scenario({ rules: [{ on: "status", exit: 1, stderr: "no, token=hf_abcdefghijk\n" }] }),
    "exit code 1",
  ],
  [
    "prints no JSON",
    (b) => b.sky.scenario({ rules: [{ on: "status", stdout: "hello\n", exit: 0 }] }),
    "no JSON",
  ],
  ["is not there", (b) => rmSync(b.sky.sky), "could not be started: ENOENT"],
  ["may not be run", (b) => chmodSync(b.sky.sky, 0o644), "could not be started: EACCES"],
  ["is killed", (b) => writeFileSync(b.sky.sky, "#!/bin/sh\nkill -9 $$\n"), "was killed"],
];
test.each(BROKEN)("a sky that %s ends the start at once, and nothing is left", (_, break_, words) =>
  on({}, async (b) => {
    break_(b);
    const daemon = await b.start();
    expect(await daemon.ended).not.toBe(0);
    expect(daemon.log()).toContain(words);
    expect(daemon.log()).not.toContain("hf_abcdefghijk");
    expect(b.sky.commands()).not.toContain("launch");
    expect(existsSync(b.socket)).toBe(false);
  }),
);

test("a daemon that is ended while sky hangs leaves no call behind", () =>
  on({ scenario: { rules: [{ on: "status", hang: true }] } }, async (b) => {
    const daemon = await b.start({ waitFor: "making the allocation ready" });
    await until(() => b.sky.calls().length > 0);
    expect(await daemon.kill()).toBe(0);
    await until(() => !existsSync(`/proc/${b.sky.calls()[0]!.pid}/stat`));
  }));

test("a launch that fails ends the start and is taken down", () =>
  on(
    { scenario: { rules: [{ on: "launch", exit: 1, stderr: "ResourcesUnavailableError: none\n" }] } },
    async (b) => {
      const daemon = await b.start();
      expect(await daemon.ended).not.toBe(0);
      expect(b.sky.commands().slice(-1)).toEqual(["down"]);
      expect(existsSync(b.socket)).toBe(false);
    },
  ));

test("a daemon that is ended while it launches leaves no allocation", () =>
  on({ scenario: { rules: [{ on: "launch", delayS: 1 }] } }, async (b) => {
    const daemon = await b.start({ waitFor: "launching" });
    expect(await daemon.kill()).toBe(0);
    expect(b.sky.running()).toEqual([]);
    // What was being made may come behind its release, so it is looked for once more.
    expect(b.sky.commands().slice(-2)).toEqual(["down", "status"]);
    expect(existsSync(b.socket)).toBe(false);
  }));

test("a daemon that is ended while it submits: the job comes behind nothing, and no allocation is left", () =>
  on({ ...CHECK, scenario: { rules: [{ on: "exec", delayS: 1.5 }] } }, async (b) => {
    script(b, "echo one; sleep 30");
    const daemon = await b.start({ limits: { closeMs: 300 } });
    const running = b.evaluating(["accuracy"]);
    await until(() => b.sky.commands().includes("exec"));
    expect(await daemon.kill()).toBe(0);
    await running.ran;
    expect(b.sky.running()).toEqual([]);
  }));

test("an existing cluster that does not fit is refused before anything is run on it", () =>
  on({}, async (b) => {
    const first = await b.start();
    await first.kill("SIGKILL");
    const name = clusterOf(b);
    const path = join(b.sky.root, "clusters", name, "cluster.json");
    const cluster = JSON.parse(readFileSync(path, "utf8")) as { resources: Record<string, unknown> };
    writeFileSync(
      path,
      JSON.stringify({ ...cluster, resources: { ...cluster.resources, accelerators: "A10G:1" } }),
    );
    const second = await b.start();
    expect(await second.ended).not.toBe(0);
    expect(second.log()).toContain("has A10G:1, not MI300A:4");
    expect(jobsRun(b)).toBe(0);
  }));

test("the campaign's timeout ends a run with exit code 124", () =>
  on({ ...CHECK, more: "timeout = 1\n" }, async (b) => {
    script(b, "echo one; sleep 20");
    await b.start();
    const { exit, out, err } = await b.evaluate(["accuracy"]);
    expect([exit, out]).toEqual([1, "one\n"]);
    expect(err).toContain("exit code 124");
    expect(b.sky.running().length).toBe(1);
  }));
