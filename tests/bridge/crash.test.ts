/** kill -9 of the daemon: at every phase of the journal, and at random moments of a run with output and an artifact. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Bench, bench, newId, RESULT_PATH, rawClient, request } from "./bridge-kit.ts";

const LINES = 40;
const SEEN_ID = newId();
const WANTED = Array.from({ length: LINES }, (_, line) => `line ${line} of the run\n`).join("");

function prepared(): Bench {
  const b = bench({ scenario: { style: "decorated" } });
  b.write(
    "bench.sh",
    `printf x >>${join(b.root, "runs")}
i=0
while [ $i -lt ${LINES} ]; do echo "line $i of the run"; i=$((i+1)); sleep 0.01; done
head -c 3000 /dev/zero | tr '\\0' a >"$2"\n`,
  );
  rmSync(RESULT_PATH, { force: true });
  return b;
}

/** Starts daemons and clients until one client has its result; everything that clients were given, together. */
async function driven(b: Bench, first: { crashAt?: string; killAfterMs?: number }): Promise<string> {
  let out = "";
  for (let tries = 0; tries < 6; tries++) {
    const daemon = await b.start(
      tries === 0 && first.crashAt !== undefined ? { crashAt: first.crashAt } : {},
    );
    const client = b.evaluating(["benchmark", "--output-json", RESULT_PATH]);
    if (tries === 0 && first.killAfterMs !== undefined) {
      await Bun.sleep(first.killAfterMs);
      await daemon.kill("SIGKILL");
    }
    const ran = await client.ran;
    out += ran.out;
    if (ran.exit === 0) {
      // A killed daemon leaves its allocation; the next one gives it back.
      if ((await daemon.kill()) !== 0) await (await b.start()).kill();
      return out;
    }
    // 1: it was gone before the client came.
    expect([1, 2]).toContain(ran.exit);
    await daemon.kill("SIGKILL");
  }
  throw new Error("no client got its result");
}

async function expectOnce(first: { crashAt?: string; killAfterMs?: number }): Promise<void> {
  const b = prepared();
  try {
    expect(await driven(b, first)).toBe(WANTED);
    expect(readFileSync(RESULT_PATH, "utf8")).toBe("a".repeat(3000));
    expect(readFileSync(join(b.root, "runs"), "utf8")).toBe("x");
    expect(b.sky.running()).toEqual([]);
    expect(existsSync(b.socket)).toBe(false);
  } finally {
    await b.remove();
  }
}

for (const phase of ["PREPARED", "SUBMITTING", "SUBMITTED", "RUNNING", "COMPLETED"]) {
  test(`killed when ${phase} is durable: each line once, the artifact whole, the job run once`, () =>
    expectOnce({ crashAt: phase }));
}

test("killed when ACKNOWLEDGED is durable, before the client is told so", async () => {
  const b = prepared();
  try {
    await b.start({ crashAt: "ACKNOWLEDGED" });
    const first = await b.evaluate(["benchmark", "--output-json", RESULT_PATH]);
    expect([first.exit, first.out]).toEqual([2, WANTED]);
    await b.start();
    const second = await b.evaluate(["benchmark", "--output-json", RESULT_PATH]);
    expect([second.exit, second.out]).toEqual([0, ""]);
    expect(readFileSync(join(b.root, "runs"), "utf8")).toBe("x");
  } finally {
    await b.remove();
  }
});

test("killed in the moment in which a line is seen: no line twice, none lost", async () => {
  const b = bench({ accuracy: "sh check.sh", scenario: { style: "decorated" } });
  try {
    b.write("check.sh", "i=0; while [ $i -lt 8 ]; do echo $i; i=$((i+1)); sleep 0.5; done");
    let out = "";
    for (;;) {
      const daemon = await b.start();
      const client = await rawClient(b.socket);
      client.send(request(SEEN_ID));
      await client.until((it) => it.output() !== "" || it.frame("result") !== undefined);
      daemon.kill("SIGKILL");
      await client.until(() => false);
      out += client.output();
      if (client.frame("result") !== undefined) break;
    }
    expect(out).toBe("0\n1\n2\n3\n4\n5\n6\n7\n");
  } finally {
    await b.remove();
  }
}, 120_000);

/** How many random moments: more by hand (`CRASH_MOMENTS=50`). */
const MOMENTS = Number(process.env.CRASH_MOMENTS ?? 6);
test(`killed at ${MOMENTS} moments of a run`, async () => {
  for (let moment = 0; moment < MOMENTS; moment++) {
    // Spread over the run, at another place within each part.
    const killAfterMs = ((moment + Math.random()) / MOMENTS) * 1000;
    await expectOnce({ killAfterMs });
  }
}, 600_000);
