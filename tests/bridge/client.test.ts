/** `evaluate` inside the sandbox and `bridge run` around the editor. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { type Bench, type BenchOptions, bench, RESULT_PATH } from "./bridge-kit.ts";

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
const tokens = (b: Bench) => (existsSync(b.caller) ? readdirSync(b.caller) : []);

test("no bridge: exit 1, one line, and the token stays under the public client's name", () =>
  on({}, async (b) => {
    const { exit, err } = await b.evaluate(["accuracy"]);
    expect([exit, err.split("\n").length]).toEqual([1, 2]);
    expect(err).toContain(`no bridge answers on ${b.socket}`);
    expect(tokens(b)).toEqual(["pending-bf6db404e30a6528"]);
    expect((statSync(join(b.caller, tokens(b)[0]!)).mode & 0o777).toString(8)).toBe("600");
  }));

const USAGE: readonly (readonly [string, readonly string[], RegExp])[] = [
  ["profile", ["profile"], /no remote profiler/],
  ["an unknown kind", ["acuracy"], /Did you mean accuracy\?/],
  [
    "arguments that no bridge takes",
    ["benchmark", "--output-json", "/etc/passwd"],
    /unsupported evaluator arguments/,
  ],
  ["a timeout that is none", ["accuracy", "--timeout", "0"], /--timeout/],
];
test.each(USAGE)("usage: %s ends with 2 and makes no token", (_, words, message) =>
  on({}, async (b) => {
    const { exit, err } = await b.evaluate(words);
    expect([exit, message.test(err)]).toEqual([2, true]);
    expect(tokens(b)).toEqual([]);
  }),
);

describe("a bridge that misbehaves", () => {
  const head = '{"version":2,"type":';
  const cases: readonly (readonly [string, string, number])[] = [
    ["nothing at all", "", 2],
    ["output and no end", `${head}"stdout","data":"x"}\n`, 2],
    ["no newline", `${head}"stdout","data":"x"}`, 2],
    ["not JSON", "hello\n", 2],
    ["another version", '{"version":1,"type":"stdout","data":"x"}\n', 2],
    ["an unknown type", `${head}"progress","data":"x"}\n`, 2],
    ["an extra key", `${head}"stdout","data":"x","y":1}\n`, 2],
    ["more than 1 MiB", `${head}"stdout","data":"${"x".repeat(1_100_000)}"}\n`, 2],
    ["a status that is unknown", `${head}"result","status":"DONE","sky_exit_code":0,"remote_job_id":1}\n`, 2],
    [
      "a number that is true",
      `${head}"result","status":"COMPLETED","sky_exit_code":true,"remote_job_id":1}\n`,
      2,
    ],
    [
      "an artifact that nobody asked for",
      `${head}"artifact","path":"/tmp/x","size":1,"sha256":"","data_base64":"eA=="}\n`,
      2,
    ],
    ["an error with a message", `${head}"error","error":"E","message":"why"}\n`, 2],
    ["an error without", `${head}"error","error":"E"}\n`, 2],
    ["no acknowledgement", `${head}"result","status":"COMPLETED","sky_exit_code":0,"remote_job_id":1}\n`, 2],
  ];
  test.each(cases)("%s: exit 2, the token stays", (_, answer, exit) =>
    on({}, async (b) => {
      mkdirSync(join(b.root, "s"));
      const server = createServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => socket.end(answer));
      }).listen(b.socket);
      await until(() => existsSync(b.socket));
      const ran = await b.evaluate(["accuracy"]);
      server.close();
      expect(ran.exit).toBe(exit);
      expect(tokens(b).length).toBe(1);
    }),
  );
});

test("a token that cannot be read is replaced; after the acknowledgement there is none", () =>
  on({}, async (b) => {
    await b.start();
    mkdirSync(b.caller);
    writeFileSync(join(b.caller, "pending-bf6db404e30a6528"), "torn");
    expect((await b.evaluate(["accuracy"])).exit).toBe(0);
    expect(tokens(b)).toEqual([]);
  }));

test("a result file is written whole and for its owner alone; a link at its place is replaced", () =>
  on({}, async (b) => {
    await b.start();
    const target = join(b.root, "target");
    writeFileSync(target, "untouched");
    Bun.spawnSync(["ln", "-sf", target, RESULT_PATH]);
    expect((await b.evaluate(["benchmark", "--output-json", RESULT_PATH])).exit).toBe(0);
    expect(readFileSync(target, "utf8")).toBe("untouched");
    expect(readFileSync(RESULT_PATH, "utf8")).toBe('{"score": 1}');
    expect((statSync(RESULT_PATH).mode & 0o777).toString(8)).toBe("600");
  }));

test("a result file that cannot be written: exit 2, the token stays, and the next call hands it out", () =>
  on({}, async (b) => {
    await b.start();
    mkdirSync(join(RESULT_PATH, "in the way"), { recursive: true });
    const { exit, err } = await b.evaluate(["benchmark", "--output-json", RESULT_PATH]);
    rmSync(RESULT_PATH, { recursive: true });
    expect([exit, err.includes(RESULT_PATH), tokens(b).length]).toEqual([2, true, 1]);
    expect((await b.evaluate(["benchmark", "--output-json", RESULT_PATH])).exit).toBe(0);
    expect(readFileSync(RESULT_PATH, "utf8")).toBe('{"score": 1}');
    expect(b.sky.commands().filter((name) => name === "exec").length).toBe(1);
    expect(tokens(b)).toEqual([]);
  }));

const LONG = { accuracy: "sh check.sh" };
const long = (b: Bench) => b.write("check.sh", "echo one; sleep 1.2; echo two");

test("the first interrupt cancels: the job stops, the allocation stays, exit 130", () =>
  on(LONG, async (b) => {
    b.write("check.sh", "echo one; sleep 20");
    await b.start();
    const running = b.evaluating(["accuracy"]);
    await until(() => running.out() === "one\n");
    running.kill("SIGINT");
    const { exit, err } = await running.ran;
    expect([exit, tokens(b)]).toEqual([130, []]);
    expect(err).toContain("Interrupt once more to leave it alone");
    expect(b.sky.running().length).toBe(1);
  }));

test("the second interrupt leaves, and the next call gets the result", () =>
  on({ ...LONG, scenario: { rules: [{ on: "cancel", nth: 1, delayS: 2, exit: 1 }] } }, async (b) => {
    long(b);
    await b.start();
    const running = b.evaluating(["accuracy"]);
    await until(() => running.out() === "one\n");
    running.kill("SIGINT");
    await Bun.sleep(200);
    running.kill("SIGINT");
    expect((await running.ran).exit).toBe(130);
    expect(tokens(b).length).toBe(1);
    const { exit, out } = await b.evaluate(["accuracy"]);
    expect([exit, out]).toEqual([0, "two\n"]);
  }));

test("--timeout cancels", () =>
  on(LONG, async (b) => {
    b.write("check.sh", "echo one; sleep 20");
    await b.start();
    const { exit, err } = await b.evaluate(["accuracy", "--timeout", "0.8"]);
    expect([exit, err.includes("The timeout of 0.8 s is over")]).toEqual([130, true]);
  }));

describe("bridge run", () => {
  const under = (b: Bench, ...words: string[]) =>
    b.cli(["bridge", "run", "--campaign", join(b.root, "campaign.toml"), "--", ...words]);
  const main = join(import.meta.dir, "../../src/main.ts");
  const gone = (b: Bench) => {
    expect(b.sky.running()).toEqual([]);
    expect(existsSync(b.socket)).toBe(false);
  };

  test("the command's clients find everything in its environment, and its code is ours", () =>
    on({}, async (b) => {
      const client = `${process.execPath} ${main} evaluate accuracy`;
      const { exit, out } = await under(
        b,
        "sh",
        "-c",
        `${client} && test -s "$NEURARCH_BRIDGE_NOTES" && exit 7`,
      );
      expect([exit, out]).toEqual([7, "checked\n"]);
      gone(b);
    }));

  const ENDS: readonly (readonly [string, readonly string[], number])[] = [
    ["a command that is killed", ["sh", "-c", "kill -9 $$"], 137],
    ["a command that is not there", ["/no/such/command"], 127],
    ["a command that leaves something behind", ["sh", "-c", "sleep 300 & exit 3"], 3],
  ];
  test.each(ENDS)("%s", (_, words, code) =>
    on({}, async (b) => {
      const { exit } = await under(b, ...words);
      expect(exit).toBe(code);
      gone(b);
    }),
  );

  test("a signal is handed on, and everything is taken down", () =>
    on({}, async (b) => {
      const child = Bun.spawn(
        [
          process.execPath,
          main,
          "bridge",
          "run",
          "--campaign",
          join(b.root, "campaign.toml"),
          "--",
          "sh",
          "-c",
          "trap 'exit 5' TERM; echo up; sleep 300 & wait",
        ],
        { stdout: "pipe", stderr: "ignore", stdin: "ignore" },
      );
      for await (const chunk of child.stdout) if (new TextDecoder().decode(chunk).includes("up")) break;
      child.kill("SIGTERM");
      expect(await child.exited).toBe(5);
      gone(b);
    }));

  test("killed itself: the command and its children are ended, the allocation and the sockets are gone", () =>
    on({}, async (b) => {
      const marker = join(b.root, "alive");
      const child = Bun.spawn(
        [process.execPath, main, "bridge", "run", "--campaign", join(b.root, "campaign.toml"), "--"].concat(
          "sh",
          "-c",
          `touch ${marker}; echo up; while :; do touch ${marker}; sleep 0.1; done`,
        ),
        { stdout: "pipe", stderr: "ignore", stdin: "ignore" },
      );
      for await (const chunk of child.stdout) if (new TextDecoder().decode(chunk).includes("up")) break;
      child.kill("SIGKILL");
      await until(() => b.sky.running().length === 0 && !existsSync(b.socket));
      await Bun.sleep(200);
      const last = statSync(marker).mtimeMs;
      await Bun.sleep(500);
      expect(statSync(marker).mtimeMs).toBe(last);
      expect(readdirSync(join(b.state, "operator"))).toEqual([]);
    }));

  test("a start that fails runs no command and leaves nothing", () =>
    on({ scenario: { rules: [{ on: "launch", exit: 1 }] } }, async (b) => {
      const { exit } = await under(b, "touch", join(b.root, "ran"));
      expect([exit, existsSync(join(b.root, "ran"))]).toEqual([5, false]);
      gone(b);
    }));

  test("no command", () =>
    on({}, async (b) => {
      const { exit, err } = await b.cli(["bridge", "run", "--campaign", join(b.root, "campaign.toml")]);
      expect([exit, err.includes("no command is given")]).toEqual([2, true]);
    }));
});
