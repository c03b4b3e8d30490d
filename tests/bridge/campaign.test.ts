// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the tokens are written like that
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { joinCampaign } from "../../src/bridge/campaign/campaign.ts";
import { type CampaignFlags, draftCampaign } from "../../src/bridge/campaign/draft.ts";
import { readClusters, readResources, resolveResources } from "../../src/bridge/campaign/profiles.ts";
import { readRunRecord, runRecordText } from "../../src/bridge/campaign/run-record.ts";
import { digest } from "../../src/host/private-files.ts";
import { GateError } from "../../src/lib/errors.ts";

const PROFILE = `
runner = "skypilot"
infra = " slurm/one/part "
accelerator_backend = "rocm"
accelerator_type = "MI300A"
accelerators_per_node = 4
cpus_per_node = 192
command_prefix = ["srun", "--overlap"]
allocation_time = "08:00:00"
remote_artifact_root = "/scratch/$USER/\${HOME}"
`;
const CLUSTERS = `[profiles.one]${PROFILE}\n[profiles.two]${PROFILE.replace("/one/", "/two/")}`;
const RESOURCES = '[resources]\nnodes = 1\naccelerators_per_node = 4\naccelerator_backend = "rocm"\n';
const CAMPAIGN = `
run_id = "run-1"
workspace = "ws"
socket = "s/bridge.sock"
state = "~/state"
clusters = "c.toml"
profile = "one"
request = "r.toml"
accuracy = "sh \${PROJECT_ROOT}/check.sh 'a b'"
benchmark = ["python", "/workspace/bench.py"]
benchmark_output_flag = "--output-json"
hide = ["private", "./a/../b"]
timeout = 60
launch_timeout = 7200
[environment]
allow = ["HF_TOKEN"]
set = { A = "s3cr3t" }
[job]
model = "a/b"
batch = 8
padding-mask = true
`;
const NO_FLAGS: CampaignFlags = { values: {}, lists: {}, switches: {} };
const PLACE = { cwd: "/cwd", environment: { HOME: "/home/me", USER: "me" } };
const names = { USER: "me", HOME: "home/me" };

const draft = (text: string | null, flags: Partial<CampaignFlags> = {}) =>
  draftCampaign(
    { ...NO_FLAGS, ...flags },
    text === null ? null : { path: "/conf/campaign.toml", text },
    PLACE,
  );
const joined = (
  options: {
    file?: string;
    flags?: Partial<CampaignFlags>;
    clusters?: string;
    request?: string;
    record?: string;
  } = {},
) => {
  const made = draft(options.file ?? CAMPAIGN, options.flags);
  return joinCampaign(
    made,
    {
      clusters: { path: "c.toml", text: options.clusters ?? CLUSTERS },
      request: "portable" in made.request ? null : { path: "r.toml", text: options.request ?? RESOURCES },
      record: { path: "state/run.json", text: options.record ?? null },
    },
    { names, sha256Hex: digest, now: "2026-11-30T12:00:00.000Z", program: "neurarch-gate dev" },
  );
};
/** The error that something ends in: message and hint, and its code. */
function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (!(error instanceof GateError)) throw error;
    expect(error.message).not.toContain("\n");
    expect(error.hint).toBeTruthy();
    expect(["usage", "input-invalid", "settings-invalid"]).toContain(error.code);
    return `${error.message}. ${error.hint}`;
  }
  throw new Error("it was accepted");
}

describe("a campaign", () => {
  test("is what file and flags say together", () => {
    const { campaign } = joined({
      flags: {
        values: { workspace: "other", retries: "3", setup: "true" },
        lists: { hide: ["c"] },
        switches: { keep: true },
      },
    });
    expect(campaign).toMatchObject({
      runId: "run-1",
      workspaceId: "other",
      workspace: "/cwd/other",
      socketPath: "/conf/s/bridge.sock",
      stateDir: "/home/me/state",
      skyPath: "sky",
      commands: { accuracy: ["sh", "./check.sh", "a b"], benchmark: ["python", "./bench.py"] },
      hide: ["private", "b", "c"],
      retries: 3,
      keep: true,
      setup: "true",
      errorFrames: "mainline",
      timeoutS: 60,
      launchTimeoutS: 7200,
      environment: { allow: ["HF_TOKEN"], set: { A: "s3cr3t" } },
      job: { model: "a/b", batch: "8", "padding-mask": "on" },
      resources: {
        profileName: "one",
        infra: "slurm/one/part",
        nodes: 1,
        cpusPerNode: 192,
        exclusive: true,
        commandPrefix: ["srun", "--overlap"],
        remoteArtifactRoot: "/scratch/me/home/me",
      },
    });
    expect(campaign).not.toHaveProperty("clustersPath");
  });
  test("can hold the request itself", () => {
    const file = `${CAMPAIGN.replace('request = "r.toml"\n', "")}\n${RESOURCES}`;
    expect(joined({ file }).campaign.portable).toEqual({
      nodes: 1,
      acceleratorsPerNode: 4,
      acceleratorBackend: "rocm",
      cpusPerNode: null,
    });
  });

  const rows: readonly (readonly [string, () => unknown, readonly string[]])[] = [
    ["an unknown key", () => draft(`${CAMPAIGN}\n[zz]`), ["/conf/campaign.toml", "unknown key `zz`"]],
    [
      "a misspelled key",
      () => draft("workspce = 'x'"),
      ["unknown key `workspce`", "Did you mean `workspace`"],
    ],
    ["a list for a table", () => draft("job = []"), ["`job` in /conf/campaign.toml is a list", "[job]"]],
    ["a list deeper down", () => draft("[environment]\nset = []"), ["`environment.set` in", "is a list"]],
    ["no TOML", () => draft("a = "), ["/conf/campaign.toml:1:", "is not TOML"]],
    ["a wrong type", () => draft("retries = '1'"), ["`retries` in /conf/campaign.toml", "whole number"]],
    [
      "a missing key",
      () => draft("run_id = 'r'"),
      ["/conf/campaign.toml has no `workspace`", "Write workspace ="],
    ],
    [
      "a missing flag",
      () => draft(null, { values: { "run-id": "r" } }),
      ["--workspace is missing", "--campaign"],
    ],
    ["two requests", () => draft(`${CAMPAIGN}\n${RESOURCES}`), ["both `request` and `resources`"]],
    [
      "a run id that is a path",
      () => draft(CAMPAIGN.replace("run-1", "../x")),
      ["`run_id` in /conf", "slash"],
    ],
    [
      "a long socket",
      () => draft(CAMPAIGN.replace("s/bridge", "s".repeat(120))),
      ["`socket`", "sun_path", "107", "/tmp"],
    ],
    [
      "a hidden path outside",
      () => draft(CAMPAIGN.replace("private", "../x")),
      ["../x", "within the workspace"],
    ],
    [
      "a variable twice",
      () => draft(CAMPAIGN.replace("A =", "HF_TOKEN =")),
      ["both allows and sets HF_TOKEN"],
    ],
    ["a variable of the shell", () => draft(CAMPAIGN.replace("A =", "UID =")), ["names UID"]],
    [
      "a variable with a dash",
      () => draft(CAMPAIGN.replace("A =", "A-B =")),
      ["environment.set.A-B", "name of a variable"],
    ],
    [
      "a value that is no text",
      () => draft(CAMPAIGN.replace('"s3cr3t"', "1234567")),
      ["environment.set.A", "quotes"],
    ],
    [
      "a command with a pipe",
      () => joined({ flags: { values: { accuracy: "a | b" } } }),
      ["--accuracy holds `|`", "sh -c"],
    ],
    [
      "a token in source text",
      () => joined({ file: CAMPAIGN.replace("'a b'\"", '"').replace("sh ", "sh -c ") }),
      ["`accuracy` in", "source text"],
    ],
    [
      "an unknown profile",
      () => joined({ flags: { values: { profile: "tow" } } }),
      ["one, two", "--profile two"],
    ],
    [
      "no profile at all",
      () => joined({ file: CAMPAIGN.replace('profile = "one"', "") }),
      ["no `profile`", "--profile"],
    ],
    [
      "a timeout above the wall time",
      () => joined({ file: CAMPAIGN.replace("= 60", "= 30000") }),
      ["`timeout`", "08:00:00"],
    ],
    [
      "another backend",
      () => joined({ request: RESOURCES.replace("rocm", "cuda") }),
      ["accelerator_backend", "r.toml", "c.toml", "--profile"],
    ],
    [
      "too many nodes",
      () => joined({ request: RESOURCES.replace("= 1", "= 2") }),
      ["resources.nodes", "max_nodes 1"],
    ],
    [
      "too many accelerators",
      () => joined({ request: RESOURCES.replace("= 4", "= 8") }),
      ["resources.accelerators_per_node"],
    ],
    [
      "too many CPUs",
      () => joined({ request: `${RESOURCES}cpus_per_node = 193\n` }),
      ["resources.cpus_per_node` in /conf/r.toml is 193", "192"],
    ],
    [
      "no CPUs",
      () => joined({ request: `${RESOURCES}cpus_per_node = 0\n` }),
      ["resources.cpus_per_node", "whole number"],
    ],
    [
      "a request with a cluster",
      () => joined({ request: `${RESOURCES}infra = "x"\n` }),
      ["r.toml", "unknown key `resources.infra`"],
    ],
  ];
  test.each(rows)("%s is refused", (_, work, parts) => {
    const said = refusal(work);
    for (const part of parts) expect(said).toContain(part);
    expect(said).not.toMatch(/s3cr3t|1234567/);
  });
});

describe("the operator's profiles", () => {
  const read = (text: string) => readClusters({ path: "c.toml", text }, names);
  const change = (from: string, to: string) => `[profiles.one]${PROFILE.replace(from, to)}`;
  const refused: readonly (readonly [string, string, readonly string[]])[] = [
    ["none", "profiles = {}", ["`profiles` in c.toml", "at least one"]],
    ["nothing", "", ["c.toml has no `profiles`"]],
    ["no TOML", "a = ", ["c.toml:1:", "is not TOML"]],
    ["a list for a table", "profiles = []", ["`profiles` in c.toml", "is a list"]],
    ["an unknown key", `[profiles.one]${PROFILE}color = 1\n`, ["c.toml", "unknown key `profiles.one.color`"]],
    ["an unsafe name", `[profiles."a/b"]${PROFILE}`, ["profiles.a/b", "lower-case"]],
    ["a name in capitals", `[profiles.One]${PROFILE}`, ["profiles.One"]],
    ["another version", `schema_version = 2\n${CLUSTERS}`, ["schema_version"]],
    ["another runner", change('"skypilot"', '"slurm"'), ["profiles.one.runner", "skypilot"]],
    ["a blank infra", change(" slurm/one/part ", " "), ["profiles.one.infra"]],
    ["no accelerator", change('accelerator_type = "MI300A"\n', ""), ["no `profiles.one.accelerator_type`"]],
    ["an accelerator with a count", change("MI300A", "MI300A:4"), ["accelerator_type", "without a count"]],
    [
      "a fraction of one",
      change("per_node = 4", "per_node = 0.5"),
      ["accelerators_per_node", "whole number"],
    ],
    ["a count as true", change("per_node = 4", "per_node = true"), ["accelerators_per_node"]],
    ["an empty prefix", change('["srun", "--overlap"]', "[]"), ["command_prefix"]],
    ["an empty word in it", change('"--overlap"', '""'), ["command_prefix"]],
    ["a length in words", change("08:00:00", "8 hours"), ["allocation_time", "[D-]HH:MM:SS"]],
    ["24 hours behind days", change("08:00:00", "1-24:00:00"), ["allocation_time"]],
    ["60 minutes", change("08:00:00", "08:60:00"), ["allocation_time"]],
    ["no time at all", change("08:00:00", "00:00:00"), ["allocation_time"]],
    ["a time without quotes", change('"08:00:00"', "08:00:00"), ["allocation_time", "in quotes"]],
    ["a relative root", change("/scratch/$USER/${HOME}", "scratch"), ["remote_artifact_root", "absolute"]],
    ["a root with dots", change("/scratch/$USER/${HOME}", "/a/../b"), ["remote_artifact_root", "absolute"]],
    ["another variable", change("$USER", "$SCRATCH"), ["names $SCRATCH", "$USER and $HOME"]],
  ];
  test.each(refused)("%s is refused", (_, text, parts) => {
    const said = refusal(() => read(text));
    for (const part of parts) expect(said).toContain(part);
  });
  test.each(["00:00:01", "100:00:00", "1-00:00:00", "7-23:59:59", "8:00:00"])("%s is a wall time", (time) => {
    expect(read(change("08:00:00", time))[0]!.allocationTime).toBe(time);
  });
  test("a variable that is not set is said", () => {
    expect(refusal(() => readClusters({ path: "c.toml", text: CLUSTERS }, {}))).toContain("Set USER");
  });
  test("CPUs are the request's, or the profile's", () => {
    const [profile] = read(CLUSTERS);
    const request = (more: string) => readResources({ path: "r.toml", text: `${RESOURCES}${more}` });
    const cpus = (more: string) =>
      resolveResources(request(more), profile!, { request: "r", clusters: "c" }).cpusPerNode;
    expect([cpus(""), cpus("cpus_per_node = 8\n")]).toEqual([192, 8]);
  });
});

describe("a run's record", () => {
  const first = joined().record;
  const text = runRecordText(first);
  test("is read as it is written, without a secret", () => {
    expect(readRunRecord({ path: "run.json", text })).toEqual(first);
    expect(text).not.toContain("s3cr3t");
    expect(JSON.parse(text)).toMatchObject({ version: 1, environment: "skypilot", profile: "one" });
  });
  test("a resumed run takes the stored profile, and the same launch is not told twice", () => {
    const again = joined({ file: CAMPAIGN.replace('profile = "one"', ""), record: text });
    expect(again.campaign.profile.name).toBe("one");
    expect(again.record).toEqual(first);
  });
  test("another profile is taken and appended, and then it is the stored one", () => {
    const { record } = joined({ flags: { values: { profile: "two" } }, record: text });
    expect(record.profile).toBe("two");
    expect(record.launches.map(({ profile, infra }) => [profile, infra])).toEqual([
      ["one", "slurm/one/part"],
      ["two", "slurm/two/part"],
    ]);
    const back = joined({ file: CAMPAIGN.replace('profile = "one"', ""), record: runRecordText(record) });
    expect(back.campaign.profile.name).toBe("two");
  });
  test("a profile whose content changed is appended as well", () => {
    const { record } = joined({ clusters: CLUSTERS.replaceAll("08:00:00", "09:00:00"), record: text });
    expect(record.launches.length).toBe(2);
  });
  const refused: readonly (readonly [string, () => unknown, readonly string[]])[] = [
    [
      "fewer accelerators",
      () => joined({ request: RESOURCES.replace("= 4", "= 2"), record: text }),
      ["resources.accelerators_per_node` in /conf/r.toml is 2", "begun with 4", "--state"],
    ],
    [
      "CPUs where there were none",
      () => joined({ request: `${RESOURCES}cpus_per_node = 8\n`, record: text }),
      ["resources.cpus_per_node", "is 8", "none"],
    ],
    [
      "another run",
      () => joined({ flags: { values: { "run-id": "run-2" } }, record: text }),
      ["`run_id` is run-2", "run-1", "--state"],
    ],
    [
      "a profile that does not satisfy it",
      () => joined({ clusters: CLUSTERS.replaceAll("per_node = 4", "per_node = 2"), record: text }),
      ["accelerators_per_node"],
    ],
    [
      "a later version",
      () => joined({ record: text.replace('"version": 1', '"version": 2') }),
      ["state/run.json", "version"],
    ],
    ["no JSON", () => joined({ record: text.slice(0, 50) }), ["state/run.json is not JSON"]],
    [
      "an unknown key",
      () => joined({ record: text.replace('"profile"', '"job_id": 1, "profile"') }),
      ["unknown key `job_id`"],
    ],
  ];
  test.each(refused)("%s is refused", (_, work, parts) => {
    const said = refusal(work);
    for (const part of parts) expect(said).toContain(part);
  });
});

test("the example is in order", () => {
  const folder = join(import.meta.dir, "../../examples/model-serving-rocm");
  const file = (name: string) => ({
    path: join(folder, name),
    text: readFileSync(join(folder, name), "utf8"),
  });
  const made = draftCampaign(NO_FLAGS, file("campaign.toml"), PLACE);
  const { campaign } = joinCampaign(
    made,
    {
      clusters: file("clusters.toml"),
      request: file("resources.toml"),
      record: { path: "run.json", text: null },
    },
    { names, sha256Hex: digest, now: "2026-11-30T12:00:00.000Z", program: "neurarch-gate dev" },
  );
  expect(campaign.workspace).toBe(join(folder, "workspace"));
  expect(campaign.commands.benchmark).toEqual(["python3", "evaluate.py", "benchmark"]);
  expect(campaign.resources).toMatchObject({
    infra: "slurm/example-cluster/example-partition",
    acceleratorsPerNode: 4,
  });
});
