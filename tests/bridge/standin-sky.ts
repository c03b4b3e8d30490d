/**
 * A stand-in for the `sky` command line: the seven sub-commands that the bridge uses, with the shapes of SkyPilot 0.13
 * on Slurm. `STANDIN_SKY_WORLD` names its world (see `standin-sky-world.ts`); `standin-sky-kit.ts` makes one for a test.
 * `ctl JSON` changes the world in mid-run.
 */
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodeOf, say, streamLogs } from "./standin-sky-logs.ts";
import {
  ACTIVE,
  type Change,
  type Cluster,
  type Job,
  killGroup,
  type Rule,
  World,
} from "./standin-sky-world.ts";

const ROOT = process.env.STANDIN_SKY_WORLD ?? "/tmp/standin-sky";
const REFUSED = "ssh: connect to host 127.0.0.1 port 22: Connection refused\n";
const EXPIRED =
  "tester@login: Permission denied (publickey).\nssh: Certificate invalid: expired\nCertificate has expired: valid until 2026-11-30T08:00:00\n";

/** Leaves a sub-command with an exit code. */
class Leave extends Error {
  constructor(readonly exit: number) {
    super(String(exit));
  }
}

type Task = {
  name?: string;
  run?: string;
  workdir?: string;
  num_nodes?: number;
  resources?: Record<string, unknown>;
  setup?: string;
};

let muted = false;
const out = (text: string) => {
  if (!muted) say(text);
};

function fail(text: string, exit = 1): never {
  if (!muted) say(`${text}\n`, 2);
  throw new Leave(exit);
}

/** Words that are not options; `valued` options take the next word with them. */
function words(argv: readonly string[], valued: readonly string[]): string[] {
  return argv.filter((word, at) => !word.startsWith("-") && !valued.includes(argv[at - 1] ?? ""));
}

/** What keeps sky from reaching the cluster at all, as the text of a failed command. */
function unreachable(world: World): string | null {
  if (world.flag("certificate-expired"))
    return `ValueError: Failed to get remote home directory: \n${EXPIRED}`;
  if (world.flag("sshd-down")) return `ValueError: Failed to get remote home directory: \n${REFUSED}`;
  return null;
}

function gone(cluster: Cluster): string {
  return `srun: error: Slurm job ${cluster.slurmJob} has expired\n`;
}

function doStatus(world: World, argv: readonly string[]): void {
  const names = words(argv, ["--output", "-o"]);
  const refresh = argv.includes("--refresh") || argv.includes("-r");
  const notices: string[] = [];
  const shown: unknown[] = [];
  for (const name of names.length > 0 ? names : world.names()) {
    const cluster = world.cluster(name);
    if (cluster === null) {
      notices.push(`Cluster(s) not found: \x1b[1m${name}\x1b[0m.`);
      continue;
    }
    const blocked = unreachable(world);
    let updatedAt = 0;
    if (refresh && blocked !== null) {
      notices.push(
        `\x1b[33mFailed to refresh status for 1 cluster:\x1b[0m\n  \x1b[1m${name}\x1b[0m: Failed to query Slurm cluster '${name}' status: [sky.exceptions.CommandError] Command squeue failed with return code 255.\n${blocked}`,
      );
    } else if (refresh && cluster.ended !== null && cluster.status === "UP") {
      world.forget(name);
      notices.push("", `\x1b[33mCluster terminated on the cloud: \x1b[0m\x1b[1m${name}\x1b[0m`);
      continue;
    } else if (refresh) {
      updatedAt = Math.floor(Date.now() / 1000);
      if (cluster.pendingUntil !== undefined) {
        Object.assign(cluster, world.admit(cluster));
        // Its launch has the lock: sky gives the old record without a word.
        if (cluster.status === "INIT") updatedAt = Math.floor(cluster.launchedAt) - 60;
      } else if (cluster.status === "INIT") {
        cluster.polls++;
        if (cluster.polls > (world.scenario.initPolls ?? 2)) cluster.status = "UP";
        world.save(cluster);
      }
      notices.push("");
    }
    shown.push(recordOf(world, cluster, refresh && blocked === null, updatedAt));
  }
  for (const line of [...notices, ...(world.scenario.banner ?? [])]) out(`${line}\n`);
  out(`${JSON.stringify(shown, null, 2)}\n`);
}

function recordOf(world: World, cluster: Cluster, refreshed: boolean, updatedAt: number) {
  const { resources, numNodes } = cluster;
  const [type, count] = String(resources.accelerators ?? "").split(":");
  const region = String(resources.infra ?? "").split("/")[1] ?? null;
  const named = !refreshed && cluster.status === "UP" && world.scenario.nodeNames !== false;
  return {
    name: cluster.name,
    launched_at: Math.floor(cluster.launchedAt),
    last_use: refreshed ? `sky launch -c ${cluster.name} task.yaml` : "",
    status: cluster.status,
    autostop: -1,
    to_down: false,
    owner: null,
    metadata: refreshed ? {} : null,
    cluster_hash: "00000000-0000-4000-8000-000000000000",
    cluster_ever_up: true,
    status_updated_at: updatedAt,
    user_hash: "0000abcd",
    user_name: "tester",
    workspace: "default",
    is_managed: false,
    last_event: null,
    init_status_reason: cluster.status === "INIT" ? `Provisioning on slurm in ${region}` : null,
    resources_str: `${numNodes}x(gpus=${type}:${count}, ...)`,
    resources_str_full: `${numNodes}x(gpus=${type}:${count}, cpus=4, mem=16, disk=256)`,
    nodes: numNodes,
    cloud: "Slurm",
    region,
    cpus: "4.0",
    memory: "16.0",
    accelerators: type ? `{'${type}': ${count}}` : null,
    labels: {},
    node_names: named ? `job${cluster.slurmJob}-${nodeOf(cluster)}` : null,
  };
}

function doQueue(world: World, argv: readonly string[]): void {
  const names = words(argv, ["--output", "-o"]);
  out(`Fetching job queue for: ${names.join(", ")}\n`);
  const answer: Record<string, unknown[]> = {};
  for (const name of names) {
    const cluster = world.cluster(name);
    const blocked = unreachable(world);
    let why: string | null = null;
    let first = "";
    if (cluster === null) why = `sky.exceptions.ClusterDoesNotExist: Cluster '${name}' does not exist.`;
    else if (cluster.status !== "UP") why = `sky.exceptions.ClusterNotUpError: Cluster '${name}' is not up.`;
    else if (blocked !== null) why = blocked;
    else if (world.flag("controller-down"))
      first = `srun: error: Unable to confirm allocation for job ${cluster.slurmJob}: Unable to contact slurm controller (connect failure)\n`;
    else if (cluster.ended !== null) first = gone(cluster);
    if (first !== "")
      why = `sky.exceptions.CommandError: Command source failed with return code 1.\nFailed to get job queue on cluster ${name}.\n${first}`;
    if (why !== null) {
      if (world.scenario.queueMissing === "error") fail(why);
      out(`${first}\nFailed to get the job queue for cluster '${name}'.\n  ${why}\n`);
      continue;
    }
    answer[name] = world
      .jobs(name)
      .filter((job) => !isHidden(world, name, job))
      .map((job) => rowOf(world, name, job));
  }
  for (const line of world.scenario.banner ?? []) out(`${line}\n`);
  out(`${JSON.stringify(answer, null, 2)}\n`);
}

function isHidden(world: World, cluster: string, job: Job): boolean {
  if (job.hidden <= 0) return false;
  const path = join(world.jobFolder(cluster, job.id), "job.json");
  writeFileSync(path, JSON.stringify({ ...job, hidden: job.hidden - 1 }));
  return true;
}

function rowOf(world: World, cluster: string, job: Job) {
  const status = world.status(cluster, job.id);
  return {
    job_id: job.id,
    job_name: job.name,
    username: "tester",
    user_hash: "0000abcd",
    submitted_at: job.submittedAt,
    start_at: status === "PENDING" || status === "FAILED_SETUP" ? null : job.submittedAt + 0.01,
    end_at: ACTIVE.includes(status) ? null : Date.now() / 1000,
    resources: job.resources,
    status,
    log_path: `~/sky_logs/${job.id}`,
    metadata: {},
  };
}

function readTask(argv: readonly string[]): Task {
  const path = words(argv, ["-c", "--cluster"]).at(-1) ?? "";
  const text = readFileSync(path, "utf8");
  call.taskText = text;
  call.task = Bun.YAML.parse(text);
  return call.task as Task;
}

function doLaunch(world: World, argv: readonly string[]): void {
  const task = readTask(argv);
  const name = argv[argv.indexOf("-c") + 1] ?? "";
  const blocked = unreachable(world);
  if (blocked !== null) fail(blocked);
  let cluster = world.cluster(name);
  out(`YAML to run: task.yaml\nRunning on cluster: ${name}\n`);
  if (cluster !== null && cluster.ended === null && ["UP", "INIT"].includes(cluster.status)) {
    sameResources(world, cluster, task);
  } else {
    // A job that was running when its allocation ended shows up as FAILED in the next one.
    cluster = world.newCluster(
      name,
      task.resources ?? {},
      task.num_nodes ?? 1,
      world.scenario.launchStatus ?? "UP",
    );
    const { pendingS } = world.scenario;
    if (pendingS !== undefined) cluster = waitForTurn(world, cluster, pendingS);
  }
  out("\x1b[0m⚙︎ Launching on Slurm lab\x1b[0m (gpu).\n\x1b[2m└── \x1b[0m\x1b[2mInstance is up.\x1b[0m\n");
  out(`\x1b[0m\x1b[32m✓ Cluster launched: ${name}.\x1b[0m\x1b[0m\n`);
  submit(world, cluster, task);
  out(`\n\n📋 Useful Commands\n├── To stream job logs:\t\tsky logs ${name} 1\n`);
}

/** As long as its launch is pending, a cluster is INIT; whoever takes it down ends the launch. */
function waitForTurn(world: World, made: Cluster, seconds: number): Cluster {
  world.slurm(made.slurmJob, "PENDING", made.name);
  world.save({ ...made, status: "INIT", pendingUntil: Date.now() / 1000 + seconds });
  for (;;) {
    Bun.sleepSync(20);
    const now = world.cluster(made.name);
    if (now === null || now.slurmJob !== made.slurmJob)
      fail("sky.exceptions.ClusterDoesNotExist: the cluster was terminated while it was being launched.");
    const admitted = world.admit(now);
    if (admitted.status === "UP") return admitted;
  }
}

function doExec(world: World, argv: readonly string[]): void {
  const task = readTask(argv);
  const name = words(argv, [])[0] ?? "";
  out(`YAML to run: task.yaml\nSubmitting job to cluster: ${name}\n`);
  const cluster = world.cluster(name);
  if (cluster === null)
    fail(`sky.exceptions.ClusterDoesNotExist: \x1b[33mCluster '${name}' does not exist.\x1b[0m`);
  if (cluster.status !== "UP")
    fail(`sky.exceptions.ClusterNotUpError: Cluster '${name}' is not up (${cluster.status}).`);
  const blocked = unreachable(world);
  if (blocked !== null) fail(blocked);
  if (cluster.ended !== null)
    fail(
      `sky.exceptions.CommandError: Command rsync failed with return code 12.\n\x1b[31mFailed to rsync up.\x1b[0m\n${gone(cluster)}`,
    );
  sameResources(world, cluster, task);
  submit(world, cluster, task);
}

function sameResources(world: World, cluster: Cluster, task: Task): void {
  if (world.scenario.strictResources === false) return;
  for (const key of ["infra", "accelerators", "cpus", "memory", "image_id"]) {
    const [wanted, has] = [task.resources?.[key], cluster.resources[key]];
    if (wanted !== undefined && has !== undefined && wanted !== has)
      fail(
        `sky.exceptions.ResourcesMismatchError: task needs ${key}=${wanted}, cluster ${cluster.name} has ${has}.`,
      );
  }
}

/** Runs the job under a shell that outlives us and writes its exit code down. */
function submit(world: World, cluster: Cluster, task: Task): void {
  const { name } = cluster;
  const home = join(world.folder(name), "home");
  const workdir = join(home, "sky_workdir");
  mkdirSync(workdir, { recursive: true });
  if (task.workdir !== undefined) cpSync(task.workdir, workdir, { recursive: true, verbatimSymlinks: true });
  let id = (world.jobs(name)[0]?.id ?? 0) + 1;
  for (; ; id++) {
    try {
      mkdirSync(join(world.folder(name), "jobs"), { recursive: true });
      mkdirSync(world.jobFolder(name, id));
      break;
    } catch (error) {
      if ((error as { code?: string }).code !== "EEXIST") throw error;
    }
  }
  const folder = world.jobFolder(name, id);
  let script = task.run ?? "true";
  if (world.scenario.privateTmp !== false) {
    const tmp = join(world.folder(name), "tmp");
    mkdirSync(tmp, { recursive: true });
    script = script.replaceAll("/tmp/vibesys-framework-benchmark-", `${tmp}/vibesys-framework-benchmark-`);
  }
  writeFileSync(join(folder, "script"), script);
  const log = openSync(join(folder, "log"), "a");
  const child = spawn("sh", ["-c", 'bash "$0/script"; echo $? >"$0/exit"', folder], {
    detached: true,
    stdio: ["ignore", log, log],
    cwd: workdir,
    env: {
      ...process.env,
      HOME: home,
      SKYPILOT_TASK_ID: `standin-${name}-${id}`,
      SKYPILOT_NODE_RANK: "0",
      SKYPILOT_NUM_NODES: String(cluster.numNodes),
      SLURM_JOB_ID: String(cluster.slurmJob),
    },
  });
  child.unref();
  const job: Job = {
    id,
    name: task.name ?? "-",
    pid: child.pid ?? 0,
    submittedAt: Date.now() / 1000,
    slurmJob: cluster.slurmJob,
    resources: `${task.num_nodes ?? 1}x[${task.resources?.accelerators ?? "CPU:1+"}]`,
    hidden: world.scenario.visibleAfter ?? 0,
  };
  writeFileSync(join(folder, "job.json"), JSON.stringify(job));
  out("\x1b[0m⚙︎ Syncing files.\n");
  out(`\x1b[0m⚙︎ Job submitted, ID: ${id}\n\n`);
}

function doLogs(world: World, argv: readonly string[], rule: Rule): number {
  const [name = "", id = ""] = words(argv, ["--tail"]);
  const cluster = world.cluster(name);
  const tailing = `\x1b[33mTailing logs of job ${id} on cluster '${name}'...\x1b[0m\n`;
  const stop = (text: string, exit: number): number => {
    if (world.scenario.style !== "plain") say(tailing);
    say(text, exit === 102 ? 1 : 2);
    return exit;
  };
  if (cluster === null)
    return stop(`sky.exceptions.ClusterDoesNotExist: \x1b[33mCluster '${name}' does not exist.\x1b[0m\n`, 1);
  if (cluster.status !== "UP")
    return stop(`sky.exceptions.ClusterNotUpError: Cluster '${name}' is not up.\n`, 1);
  const blocked = unreachable(world);
  if (blocked !== null) return stop(`${blocked}\n`, 1);
  if (cluster.ended !== null) return stop(gone(cluster), 1);
  const job = world.jobs(name).find((each) => String(each.id) === id);
  if (job === undefined) return stop(`Job ${id} not found (see \`sky queue\`).\n`, 102);
  if (job.slurmJob !== cluster.slurmJob) {
    // Of an earlier allocation: the record is there, its log is not.
    say(`${tailing}\x1b[31mERROR: Logs for job ${id} (status: FAILED) does not exist.\x1b[0m\n`);
    return 100;
  }
  return streamLogs(world, cluster, job, rule);
}

function doCancel(world: World, argv: readonly string[]): void {
  const [name = "", ...ids] = words(argv, []);
  const cluster = world.cluster(name);
  if (cluster === null)
    fail(
      `Usage: sky cancel [OPTIONS] CLUSTER [JOBS]...\nTry 'sky cancel -h' for help.\n\nError: Cluster '${name}' does not exist.`,
      2,
    );
  const blocked = unreachable(world);
  if (blocked !== null) fail(blocked);
  if (cluster.status === "INIT")
    fail(`sky.exceptions.ClusterNotUpError: Cluster '${name}' is not up (INIT).`);
  if (cluster.ended !== null)
    fail(`sky.exceptions.CommandError: failed with return code 1.\n${gone(cluster)}`);
  const all = argv.includes("-a") || argv.includes("--all");
  const hit = world
    .jobs(name)
    .filter((job) => (all || ids.includes(String(job.id))) && ACTIVE.includes(world.status(name, job.id)));
  for (const job of hit) {
    world.setStatus(name, job.id, "CANCELLED");
    killGroup(job.pid, "SIGKILL");
  }
  out(
    hit.length > 0
      ? `Cancelled job ID(s): ${hit.map((job) => job.id).join(", ")}\n`
      : "No jobs cancelled. They may be in terminal states.\n",
  );
}

/** Forgets the cluster. With a job still running the allocation lives on, as a real one does. */
function doDown(world: World, argv: readonly string[]): void {
  for (const name of words(argv, [])) {
    const cluster = world.cluster(name);
    if (cluster === null) {
      out(`Cluster(s) not found: \x1b[1m${name}\x1b[0m.\nCluster(s) not found (tip: see \`sky status\`).\n`);
      continue;
    }
    const blocked = unreachable(world);
    if (blocked !== null) fail(blocked);
    const busy =
      cluster.ended === null && world.jobs(name).some((job) => ACTIVE.includes(world.status(name, job.id)));
    world.forget(name);
    if (!busy) {
      const state = cluster.pendingUntil === undefined ? "COMPLETED" : "CANCELLED";
      if (cluster.ended === null) world.slurm(cluster.slurmJob, state, name);
      rmSync(world.folder(name), { recursive: true, force: true });
    }
    out(`\n\n\nTerminating cluster ${name}...done.\n`);
  }
}

function pickRule(world: World, command: string, argv: readonly string[]): Rule {
  const nth = world.claim(command);
  const found = (world.scenario.rules ?? []).find(
    (rule) =>
      (rule.on === "*" || rule.on === command) &&
      (rule.nth === undefined || rule.nth === nth) &&
      (rule.match === undefined || new RegExp(rule.match).test(argv.join(" "))),
  );
  return found ?? { on: command };
}

const COMMANDS: Record<string, (world: World, argv: readonly string[]) => void> = {
  status: doStatus,
  queue: doQueue,
  launch: doLaunch,
  exec: doExec,
  cancel: doCancel,
  down: doDown,
};

const call: Record<string, unknown> = {};

function work(world: World, argv: readonly string[]): number {
  const [command = "", ...rest] = argv;
  if (!(command in COMMANDS) && command !== "logs") fail(`Error: No such command '${command}'.`, 2);
  const rule = pickRule(world, command, argv);
  const started = Date.now();
  const record = () => world.record("calls.jsonl", call);
  const number = world.claim("call");
  Object.assign(call, { n: number, command, at: started, pid: process.pid, argv });
  call.env = Object.keys(process.env).sort();
  call.cwd = process.cwd();
  if (command === "exec" || command === "launch") readTask(rest);
  record();
  let exit = 0;
  try {
    Bun.sleepSync(((rule.delayS ?? 0) + (world.scenario.delayS ?? 0)) * 1000);
    if (rule.hangChild === true) spawn("sh", ["-c", "trap '' TERM INT; sleep 600"], { stdio: "inherit" });
    if (rule.hang === true || rule.hangChild === true) for (;;) Bun.sleepSync(60_000);
    if (rule.flood !== undefined)
      for (let sent = 0; sent < rule.flood; sent += 1 << 16) say("x".repeat((1 << 16) - 1).concat("\n"));
    if (rule.stdout !== undefined) say(rule.stdout);
    if (rule.stderr !== undefined) say(rule.stderr, 2);
    world.change(rule.before);
    if (rule.exit !== undefined) exit = rule.exit;
    else if (command === "logs") exit = doLogs(world, rest, rule);
    else {
      muted = rule.mute === true;
      COMMANDS[command]?.(world, rest);
      world.change(rule.after);
      exit = rule.exitAfter ?? 0;
    }
  } catch (error) {
    if (!(error instanceof Leave)) throw error;
    exit = error.exit;
  }
  world.record("exits.jsonl", { n: number, exit, seconds: (Date.now() - started) / 1000 });
  return exit;
}

const argv = process.argv.slice(2);
if (argv[0] === "--version") {
  say("skypilot, version 0.13.0\n");
} else if (argv[0] === "ctl") {
  new World(ROOT).change([JSON.parse(argv[1] ?? "{}") as Change]);
} else if (existsSync(ROOT)) {
  try {
    process.exitCode = work(new World(ROOT), argv);
  } catch (error) {
    if (!(error instanceof Leave)) throw error;
    process.exitCode = error.exit;
  }
} else {
  say(`The world ${ROOT} is missing.\n`, 2);
  process.exitCode = 70;
}
