import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../acceptance/run.ts";
import { type Server, serve } from "../serve/server.ts";
import { type ApiServer, SkyLab, type Told } from "./lab/lab.ts";
import { PLANTED, taskFile } from "./tasks.ts";

/**
 * The real `sky` and its real API server, with the policy as a class, over REST, and both. What a row expects a
 * user to read is what `judge --skypilot` says to the same file.
 */
const python = process.env.NEURARCH_TEST_SKY_PYTHON;

const POLICIES = `from neurarch_gate import NeurarchPolicy


class Plain(NeurarchPolicy):
    binary = BINARY


class Mutating(Plain):
    mutate = True


class Capped(Mutating):
    max_cost_usd = 1000000
`;

/** What is said of a size that the client sent. */
const SENT =
  /^Neurarch: judged by the size that the client sent: \.\/own-model \(structure [0-9a-f]{16}\) cannot be read here\.$/;

/** What the API server of the class policy is started with: over the class's own cap. */
const CAP = ["--max-cost-usd", "100"];

const service = (ports: string, train: string) =>
  taskFile("A100-80GB:8", {
    envs: train === "" ? {} : { NEURARCH_TASK: train },
    more: `  ports: ${ports}\nservice: {readiness_probe: /, replicas: 1}\n`,
  });

/** About as large as Qwen3-0.6B, and in no catalogue. */
const OWN_MODEL = JSON.stringify({
  model_type: "qwen3",
  hidden_size: 1000,
  num_hidden_layers: 28,
  num_attention_heads: 16,
  num_key_value_heads: 8,
  head_dim: 128,
  intermediate_size: 3000,
  vocab_size: 150_000,
  tie_word_embeddings: true,
});

const FILES = {
  fits: taskFile("L4:1"),
  // An over-request over several nodes is warned about and never rewritten.
  nodes: taskFile("H200:1", { more: "num_nodes: 2\n" }),
  over: taskFile("A100-80GB:8"),
  small: taskFile("T4:1"),
  list: taskFile("[T4:1, L4:1]"),
  dear: taskFile("L4:1", { envs: { NEURARCH_HOURS: "1000", NEURARCH_POLICY_MAX_COST_USD: "1000000" } }),
  held: taskFile("H200:1"),
  // A model that is a file of the user's: the server has none there.
  local: taskFile("L4:1", { envs: { NEURARCH_MODEL: "./own-model", NEURARCH_HOURS: "10" } }),
  "local over": taskFile("A100-80GB:8", { envs: { NEURARCH_MODEL: "./own-model", NEURARCH_HOURS: "1" } }),
  "local dear": taskFile("L4:1", { envs: { NEURARCH_MODEL: "./own-model", NEURARCH_HOURS: "1000" } }),
  pipeline: `name: pipe\n---\n${taskFile("L4:1")}---\n${taskFile("T4:1").replace("name: t", "name: second")}`,
  serves: service("8080", ""),
  trains: service("8080", "train"),
  "trains small": service("8080", "train").replace("A100-80GB:8", "T4:1"),
} as const;
type File = keyof typeof FILES;

type Command = "launch" | "exec" | "jobs" | "serve";
const WORDS: Readonly<Record<Command, readonly string[]>> = {
  launch: ["launch", "-y", "--dryrun", "-c", "mine"],
  exec: ["exec"],
  // These have no dry run; their question is answered with "n".
  jobs: ["jobs", "launch"],
  serve: ["serve", "up"],
};

interface Row {
  readonly what: string;
  /** The policy that the API server applies. */
  readonly server: "class" | "rest";
  readonly client?: "Plain" | "Mutating" | "rest";
  readonly command: Command;
  readonly file: File;
  /** The cluster of an `exec`, `held` unless named. */
  readonly cluster?: string;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Which sides say that they apply a policy, and the sentences between: those of a file judged plainly or with `--mutate`. */
  readonly terminal: readonly ("client" | "server" | "plain" | "mutate" | "sent" | "unfound")[];
  /** The machine in SkyPilot's own table. */
  readonly table?: string;
  /** Refused, with the sentence of the file judged with these flags. */
  readonly refused?: readonly string[];
  /** What else ends it, where nothing more can happen without a cloud. */
  readonly ends?: string;
}

const DRY = "Dryrun finished.";
const ASKED = "Proceed? [Y/n]: Aborted!";

const ROWS: readonly Row[] = [
  // The class at the server only, at both sides, and at the client in a mind of its own.
  {
    what: "a request that fits",
    server: "class",
    command: "launch",
    file: "fits",
    terminal: ["server"],
    table: "L4:1",
    ends: DRY,
  },
  {
    what: "a warning of the server",
    server: "class",
    command: "launch",
    file: "nodes",
    terminal: ["server", "mutate"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a warning of both sides, told once",
    server: "class",
    client: "Mutating",
    command: "launch",
    file: "nodes",
    terminal: ["client", "mutate", "server"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a rewrite by the server",
    server: "class",
    command: "launch",
    file: "over",
    terminal: ["server", "mutate"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a rewrite by the client, which the server leaves alone",
    server: "class",
    client: "Mutating",
    command: "launch",
    file: "over",
    terminal: ["client", "mutate", "server"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a client that warns and a server that rewrites",
    server: "class",
    client: "Plain",
    command: "launch",
    file: "over",
    terminal: ["client", "plain", "server", "mutate"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a dropped candidate",
    server: "class",
    client: "Mutating",
    command: "launch",
    file: "list",
    terminal: ["client", "mutate", "server"],
    table: "L4:1",
    ends: DRY,
  },
  {
    what: "a refusal by the client",
    server: "class",
    client: "Mutating",
    command: "launch",
    file: "small",
    terminal: ["client"],
    refused: [],
  },
  {
    what: "a refusal by the server",
    server: "class",
    command: "launch",
    file: "small",
    terminal: [],
    refused: [],
  },
  {
    what: "a refusal of what --env made of it",
    server: "class",
    command: "launch",
    file: "fits",
    flags: ["--env", "NEURARCH_BATCH=64"],
    terminal: [],
    refused: ["--env", "NEURARCH_BATCH=64"],
  },
  {
    what: "a refusal of what --gpus made of it",
    server: "class",
    client: "Plain",
    command: "launch",
    file: "fits",
    flags: ["--gpus", "T4:1"],
    terminal: ["client"],
    refused: ["--gpus", "T4:1"],
  },
  {
    what: "a cap of the server's start, which neither its class nor a client's variables loosen",
    server: "class",
    command: "launch",
    file: "dear",
    env: {
      NEURARCH_POLICY_MAX_COST_USD: "1000000",
      NEURARCH_POLICY_CONFIG: "/nowhere",
      SKYPILOT_NEURARCH_TOLD: "x",
    },
    terminal: [],
    refused: CAP,
  },
  { what: "a refusal", server: "class", command: "exec", file: "small", terminal: [], refused: [] },
  // A rewrite would not match the one cluster, and the task as it is not the other. Both end where the machine would be reached.
  {
    what: "a warning on a cluster with the cards asked for",
    server: "class",
    command: "exec",
    file: "held",
    terminal: ["server", "plain"],
    ends: "using: <Cloud>({'H200': 1})",
  },
  {
    what: "a warning on a cluster that a rewrite made",
    server: "class",
    command: "exec",
    file: "held",
    cluster: "rewritten",
    terminal: ["server", "plain"],
    ends: "using: <Cloud>({'L4': 1})",
  },
  {
    what: "a warning before the question",
    server: "class",
    client: "Mutating",
    command: "jobs",
    file: "nodes",
    terminal: ["client", "mutate", "server"],
    table: "H200:1",
    ends: ASKED,
  },
  {
    what: "a rewrite by the server, told before the question",
    server: "class",
    command: "jobs",
    file: "over",
    terminal: ["server", "mutate"],
    table: "H200:1",
    ends: ASKED,
  },
  {
    what: "a refusal of a pipeline's second task",
    server: "class",
    command: "jobs",
    file: "pipeline",
    terminal: [],
    refused: [],
  },
  {
    what: "a service",
    server: "class",
    client: "Mutating",
    command: "serve",
    file: "serves",
    terminal: ["client", "server"],
    table: "A100-80GB:8",
    ends: ASKED,
  },
  {
    what: "a service that says it trains",
    server: "class",
    client: "Mutating",
    command: "serve",
    file: "trains",
    terminal: ["client", "mutate", "server"],
    table: "H200:1",
    ends: ASKED,
  },
  {
    what: "a refusal of a service that says it trains",
    server: "class",
    command: "serve",
    file: "trains small",
    terminal: [],
    refused: [],
  },

  {
    what: "a file of the user's, whose size goes along",
    server: "class",
    client: "Plain",
    command: "launch",
    file: "local",
    terminal: ["client", "server", "sent"],
    table: "L4:1",
    ends: DRY,
  },
  {
    what: "a file of the user's, warned about by the client and rewritten by the server",
    server: "class",
    client: "Plain",
    command: "launch",
    file: "local over",
    terminal: ["client", "plain", "server", "mutate", "sent"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a file of the user's, rewritten by the client, which the server leaves alone",
    server: "class",
    client: "Mutating",
    command: "launch",
    file: "local over",
    terminal: ["client", "mutate", "server", "sent"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a file of the user's, refused by the server's cap",
    server: "class",
    client: "Plain",
    command: "launch",
    file: "local dear",
    terminal: ["client"],
    refused: [...CAP, "sent"],
  },
  {
    what: "a file of the user's, whose size goes along",
    server: "class",
    client: "Plain",
    command: "jobs",
    file: "local",
    terminal: ["client", "server"],
    table: "L4:1",
    ends: ASKED,
  },
  {
    what: "a file of the user's without a policy at the client's side",
    server: "class",
    command: "launch",
    file: "local",
    terminal: ["server", "unfound"],
    table: "L4:1",
    ends: DRY,
  },
  {
    what: "a request that fits",
    server: "rest",
    command: "launch",
    file: "fits",
    terminal: ["server"],
    table: "L4:1",
    ends: DRY,
  },
  {
    what: "a warning, which no terminal shows",
    server: "rest",
    command: "launch",
    file: "nodes",
    terminal: ["server"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a rewrite, which no terminal shows",
    server: "rest",
    command: "launch",
    file: "over",
    terminal: ["server"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a refusal by the server",
    server: "rest",
    command: "launch",
    file: "small",
    terminal: [],
    refused: [],
  },
  {
    what: "a refusal by the client",
    server: "rest",
    client: "rest",
    command: "launch",
    file: "small",
    terminal: ["client"],
    refused: [],
  },
  { what: "a refusal", server: "rest", command: "exec", file: "small", terminal: [], refused: [] },
  { what: "a refusal", server: "rest", command: "jobs", file: "small", terminal: [], refused: [] },
  {
    what: "a rewrite, in the table only",
    server: "rest",
    client: "rest",
    command: "jobs",
    file: "over",
    terminal: ["client", "server"],
    table: "H200:1",
    ends: ASKED,
  },
  {
    what: "a refusal of a service that says it trains",
    server: "rest",
    command: "serve",
    file: "trains small",
    terminal: [],
    refused: [],
  },
  {
    what: "a warning of the client's class",
    server: "rest",
    client: "Mutating",
    command: "launch",
    file: "nodes",
    terminal: ["client", "mutate", "server"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a rewrite by the client's class, which REST leaves alone",
    server: "rest",
    client: "Mutating",
    command: "launch",
    file: "over",
    terminal: ["client", "mutate", "server"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a file of the user's, rewritten by REST at the size of the client's class",
    server: "rest",
    client: "Plain",
    command: "launch",
    file: "local over",
    terminal: ["client", "plain", "server"],
    table: "H200:1",
    ends: DRY,
  },
  {
    what: "a refusal by the client's class",
    server: "rest",
    client: "Plain",
    command: "jobs",
    file: "small",
    terminal: ["client"],
    refused: [],
  },
];

const clusterOf = ({ command, cluster = "held" }: Row) => (command === "exec" ? [cluster] : []);

const nameOf = (row: Row) =>
  `${row.command}, ${row.server} at the server${row.client === undefined ? "" : `, ${row.client} at the client`}: ${row.what}`;

if (python === undefined) {
  test.skipIf(process.env.CI !== "true")(
    "NEURARCH_TEST_SKY_PYTHON names a Python with skypilot 0.13.0",
    () => {
      expect(python).toBeDefined();
    },
  );
} else {
  const lab = new SkyLab(python, POLICIES);
  const ledger = join(lab.folder, "ledger");
  const classLedger = join(lab.folder, "class-ledger");
  const said = new Map<Row, Told>();
  const servers = new Map<Row["server"], ApiServer>();
  let rest: Server;
  let unreachable: Told;
  let forged: string;

  const paths = new Map<File, string>();
  const homes = new Map<Row["client"], string>();
  const sky = (row: Row) =>
    lab.sky(
      homes.get(row.client)!,
      [...WORDS[row.command], ...clusterOf(row), paths.get(row.file)!, ...(row.flags ?? [])],
      {
        SKYPILOT_API_SERVER_ENDPOINT: servers.get(row.server)!.url,
        ...row.env,
      },
    );

  beforeAll(async () => {
    for (const [name, text] of Object.entries(FILES))
      paths.set(name as File, lab.file(`${name.replace(" ", "-")}.yaml`, text));
    mkdirSync(join(lab.folder, "own-model"));
    writeFileSync(join(lab.folder, "own-model/config.json"), OWN_MODEL);
    rest = await serve(["--mutate", "--ledger", ledger], {
      HOME: lab.folder,
      XDG_CACHE_HOME: join(lab.folder, "cache"),
    });
    const url = `${rest.address}/policy`;
    homes.set(undefined, lab.home("user", ""));
    homes.set("rest", lab.home("user-rest", `admin_policy: ${url}\n`));
    for (const name of ["Plain", "Mutating"] as const)
      homes.set(name, lab.home(`user-${name}`, `admin_policy: site_policies.${name}\n`));
    const classHome = lab.home("server-class", "admin_policy: site_policies.Capped\n");
    await lab.script(join(import.meta.dir, "lab/cluster.py"), ["held=H200:1", "rewritten=L4:1"], classHome);
    const [ofClass, ofRest] = await Promise.all([
      lab.server(classHome, {
        NEURARCH_POLICY_MAX_COST_USD: CAP[1]!,
        NEURARCH_POLICY_LEDGER: classLedger,
      }),
      lab.server(lab.home("server-rest", `admin_policy: ${url}\n`)),
    ]);
    servers.set("class", ofClass).set("rest", ofRest);
    const waiting = [...ROWS];
    const worker = async () => {
      for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) said.set(row, await sky(row));
    };
    await Promise.all([worker(), worker(), worker()]);
    forged = await forge(ofClass.url, homes.get(undefined)!);
  }, 900_000);
  afterAll(async () => {
    await rest?.stop();
    await lab.close();
  }, 30_000);

  /** A client of one's own, which sends the server variables that SkyPilot's never would. */
  async function forge(url: string, home: string): Promise<string> {
    return await lab.script(join(import.meta.dir, "lab/forge.py"), [paths.get("dear")!], home, {
      SKYPILOT_API_SERVER_ENDPOINT: url,
    });
  }

  /** What the file itself is told, joined as a policy joins it. */
  async function judged(file: File, flags: readonly string[]): Promise<string[]> {
    const { out } = await run(["judge", "--skypilot", paths.get(file)!, "--json", ...flags], {
      cwd: lab.folder,
    });
    return JSON.parse(out).messages;
  }

  describe("on a real terminal", () => {
    for (const row of ROWS) {
      test(nameOf(row), async () => {
        const { out, err, exit } = said.get(row)!;
        const policy = { class: "Capped", rest: "RestfulAdminPolicy" };
        const expected: string[] = [];
        for (const one of row.terminal) {
          if (one === "client")
            expected.push(
              `Applying client admin policy: ${row.client === "rest" ? "RestfulAdminPolicy" : row.client}`,
            );
          else if (one === "server") expected.push(`Applying server admin policy: ${policy[row.server]}`);
          else if (one === "sent") expected.push(expect.stringMatching(SENT));
          else if (one === "unfound")
            expected.push(
              "Neurarch: ./own-model not judged: /own-model does not exist. Allowed unchecked (fail open).",
            );
          else expected.push(...(await judged(row.file, one === "mutate" ? ["--mutate"] : [])));
        }
        const lines = out.split("\n").filter((line) => /^(?:Applying|Neurarch)/.test(line));
        expect(lines).toEqual(expected);
        if (row.table !== undefined) expect(out).toMatch(new RegExp(` ${row.table} .*✔`));
        if (row.ends !== undefined) expect(`${out}${err}`).toContain(row.ends);
        if (row.refused === undefined) {
          expect(exit).toBe(row.ends === DRY ? 0 : 1);
          expect(err).not.toContain("Neurarch");
          return;
        }
        const flags = row.refused.filter((flag) => flag !== "sent");
        const reason = (await judged(row.file, flags)).join("\n");
        expect(reason).toMatch(/^Neurarch: .*\bresubmit\b|^Neurarch: .*over the cap/);
        const byRest =
          row.client === "rest" || (row.server === "rest" && row.client === undefined)
            ? `User request is rejected by admin policy ${rest.address}/policy: `
            : "";
        const told = err.trim().split("\n");
        if (row.refused.includes("sent")) expect(told.pop()).toMatch(SENT);
        expect(told.join("\n")).toBe(`sky.exceptions.UserRequestRejectedByPolicy: ${byRest}${reason}`);
        expect(exit).toBe(1);
        expect(out).not.toContain(DRY);
      });
    }

    test("variables that a hand-made request sends along loosen nothing", async () => {
      const reason = (await judged("dear", CAP)).join("\n");
      expect(forged).toContain(`UserRequestRejectedByPolicy: ${reason}`);
    });
  });

  describe("what the policy leaves behind", () => {
    interface Entry {
      readonly decision: string;
      readonly request: string;
      readonly model: string | null;
      readonly source: string | null;
    }
    const lines = (folder: string) =>
      readdirSync(folder).flatMap((name) =>
        readFileSync(join(folder, name), "utf8")
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line) as Entry),
      );
    const counted = (folder: string) => {
      const counts: Record<string, number> = {};
      for (const { decision, request } of lines(folder))
        counts[`${decision} ${request}`] = (counts[`${decision} ${request}`] ?? 0) + 1;
      return counts;
    };

    test("over REST the ledger has the warnings and rewrites that no terminal shows", () => {
      expect(counted(ledger)).toMatchObject({
        "warn H200:1 x 2 nodes": 2,
        "rewrite A100-80GB:8": 3,
        "refuse T4:1": 5,
      });
    });

    test("and whose word a size was", () => {
      const bySource = (folder: string) =>
        lines(folder)
          .filter(({ model }) => model === "./own-model")
          .map(({ source }) => source);
      expect(new Set(bySource(ledger))).toEqual(new Set(["client"]));
      expect(new Set(bySource(classLedger))).toEqual(new Set(["client", null]));
    });

    test("and so have its metrics and its log", async () => {
      const metrics = await (await fetch(`${rest.address}/metrics`)).text();
      const count = (decision: string) =>
        Number(
          new RegExp(`judgements_total\\{adapter="skypilot",decision="${decision}"\\} (\\d+)`).exec(
            metrics,
          )?.[1],
        );
      expect(count("refuse")).toBe(5);
      expect(count("warn")).toBeGreaterThanOrEqual(4);
      expect(count("rewrite")).toBeGreaterThanOrEqual(3);
      expect(metrics).not.toContain('decision="error"');
      expect(rest.log()).toContain("Neurarch: rewrote A100-80GB:8 to H200:1");
    });

    test("the class's ledger has the server's verdicts", () => {
      const counts = counted(classLedger);
      expect(counts["rewrite A100-80GB:8"]).toBeGreaterThanOrEqual(2);
      expect(counts["refuse T4:1"]).toBeGreaterThanOrEqual(3);
    });

    test("and nothing that a task keeps to itself", async () => {
      const metrics = await (await fetch(`${rest.address}/metrics`)).text();
      const texts = [
        ...[...said.values()].flatMap(({ out, err }) => [out, err]),
        rest.log(),
        metrics,
        forged,
        ...filesOf(ledger),
        ...filesOf(classLedger),
      ].join("\n");
      for (const planted of PLANTED) expect(texts).not.toContain(planted);
    });
  });

  describe("a REST policy that is not there", () => {
    test("is refused by SkyPilot itself, in its own words", async () => {
      await rest.stop();
      unreachable = await sky(ROWS.find((row) => row.server === "rest")!);
      const { hostname, port } = new URL(rest.address);
      expect(unreachable.exit).toBe(1);
      expect(unreachable.err).toStartWith(
        `sky.exceptions.UserRequestRejectedByPolicy: User request rejected by policy RestfulAdminPolicy(policy_url=${rest.address}/policy): ` +
          `[sky.exceptions.RestfulPolicyError] Failed to call admin policy URL ${rest.address}/policy: ` +
          `HTTPConnectionPool(host='${hostname}', port=${port}): Max retries exceeded`,
      );
    }, 60_000);
  });
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => `${one.name}\n${readFileSync(join(one.parentPath, one.name), "latin1")}`);
}
