import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { shellWords } from "../../src/bridge/shell-words.ts";
import { bridgeUnit } from "../../src/bridge/unit.ts";
import { runApp } from "../../src/cli/app.ts";
import { loadCampaign } from "../../src/daemon/campaign-files.ts";
import { readRunText, writeRunRecord } from "../../src/daemon/run-record.ts";
import { writeDurably } from "../../src/host/durable-file.ts";

const ROOT = mkdtempSync(join(tmpdir(), "bridge-files-"));
afterAll(() => rmSync(ROOT, { recursive: true, force: true }));

let folders = 0;
/** A campaign of its own, from the example; `edit` changes its file. */
function campaign(edit: (text: string) => string = (text) => text): {
  readonly folder: string;
  readonly file: string;
} {
  const folder = join(ROOT, String(folders++));
  cpSync(join(import.meta.dir, "../../examples/model-serving-rocm"), folder, { recursive: true });
  const file = join(folder, "campaign.toml");
  writeFileSync(
    file,
    edit(readFileSync(file, "utf8")).replace("[environment]", '[environment]\nset = { KEY = "s3cr3t" }'),
  );
  return { folder, file };
}
const load = (file: string) =>
  loadCampaign({ values: {}, lists: {}, switches: {} }, file, {
    cwd: ROOT,
    environment: { HOME: ROOT },
    program: "neurarch-gate dev",
  });

describe("bridge check", () => {
  test("ends with 0 and says what will run, never a value", async () => {
    const { file } = campaign();
    const human = await runApp(["bridge", "check", "--campaign", file]);
    expect(human.exit).toBe(0);
    expect(human.out).toContain("Benchmark: python3 evaluate.py benchmark --output-json PATH");
    expect(human.out).toEndWith("The campaign is in order.\n");
    const json = await runApp(["bridge", "check", "--campaign", file, "--json"]);
    const document = JSON.parse(json.out!);
    expect(document).toMatchObject({ schema: "neurarch-gate/bridge-check", version: 1, resumed: false });
    expect(document.environment).toEqual({ allow: ["HF_TOKEN"], set: ["KEY"] });
    expect(`${human.out}${json.out}`).not.toContain("s3cr3t");
  });
  const rows: readonly (readonly [string, (folder: string) => void, readonly string[]])[] = [
    [
      "no campaign file",
      (folder) => rmSync(join(folder, "campaign.toml")),
      ["campaign.toml does not exist", "--campaign"],
    ],
    [
      "no profiles",
      (folder) => rmSync(join(folder, "clusters.toml")),
      ["clusters.toml does not exist", "--clusters"],
    ],
    [
      "no request",
      (folder) => rmSync(join(folder, "resources.toml")),
      ["resources.toml does not exist", "--request"],
    ],
    [
      "no workspace",
      (folder) => rmSync(join(folder, "workspace"), { recursive: true }),
      ["workspace", "is not a folder"],
    ],
    [
      "a file that is no text",
      (folder) => writeFileSync(join(folder, "resources.toml"), new Uint8Array([0xff])),
      ["not UTF-8"],
    ],
    [
      "an unknown fact",
      (folder) => append(folder, "[job]\nmodle = 'x'\n"),
      ["unknown key `job.modle`", "Did you mean `model`"],
    ],
    [
      "a fact that is none",
      (folder) => append(folder, "[job]\nmodel = 'x'\nbatch = 0\n"),
      ["`job.batch` in"],
    ],
    [
      "a sky that is not there",
      (folder) => append(folder, "", 'sky = "bin/sky"\n'),
      ["there is no such program", "--sky"],
    ],
    [
      "a record of another run",
      (folder) => {
        mkdirSync(join(folder, "state"));
        writeFileSync(join(folder, "state/run.json"), "{}");
      },
      ["run.json has no `version`"],
    ],
  ];
  const append = (folder: string, more: string, before = "") => {
    const file = join(folder, "campaign.toml");
    writeFileSync(file, `${before}${readFileSync(file, "utf8")}\n${more}`);
  };
  test.each(rows)("%s ends with 4", async (_, spoil, parts) => {
    const { folder, file } = campaign();
    spoil(folder);
    const { exit, err } = await runApp(["bridge", "check", "--campaign", file]);
    expect(exit).toBe(4);
    for (const part of parts) expect(err).toContain(part);
    expect(err!.trimEnd()).not.toContain("\n");
  });
  test("a flag's value may look like a flag", async () => {
    const { file } = campaign();
    const { out } = await runApp([
      "bridge",
      "check",
      "--campaign",
      file,
      "--benchmark-output-flag",
      "--result",
    ]);
    expect(out).toContain("benchmark --result PATH");
  });
});

describe("a run's record on disk", () => {
  test("is written for us alone, once, and a resumed run reads it", () => {
    const { folder, file } = campaign();
    const first = load(file);
    expect(first.resumed).toBe(false);
    writeRunRecord(first.campaign.stateDir, first.record);
    const path = join(folder, "state/run.json");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, "state")).mode & 0o777).toBe(0o700);
    const again = load(file);
    expect([again.resumed, again.record]).toEqual([true, first.record]);
    const { ino } = statSync(path);
    writeRunRecord(again.campaign.stateDir, again.record);
    expect(statSync(path).ino).toBe(ino);
    expect(readRunText(join(folder, "none")).text).toBeNull();
  });
  test("a file is replaced whole, and a folder that cannot be made is said", () => {
    const folder = join(ROOT, "durable/a/b");
    expect(writeDurably(folder, "x", "one")).toBeNull();
    expect(writeDurably(folder, "x", "two")).toBeNull();
    expect(readFileSync(join(folder, "x"), "utf8")).toBe("two");
    expect(writeDurably(join(folder, "x"), "y", "z")).toMatch(/^E/);
  });
});

describe("the editor's sandbox", () => {
  const withFormat = async (file: string, format: string) =>
    (await runApp(["bridge", "mounts", "--campaign", file, "--format", format])).out!;
  test("what is mounted is there, and the notes are the printed ones", async () => {
    const { folder, file } = campaign();
    await withFormat(file, "docker");
    expect(statSync(join(folder, "state/caller")).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, "run")).mode & 0o777).toBe(0o700);
    const notes = (await runApp(["bridge", "notes", "--campaign", file])).out!;
    expect(readFileSync(join(folder, "state/environment.md"), "utf8")).toBe(notes);
    expect(notes).toContain("- Accelerators per node: 4 x MI300A (rocm)");
    expect(notes).toContain("- Profile: example-rocm");
    expect(notes).toContain("There is no remote profiler");
    expect(notes).toContain("KEY");
    expect(notes).not.toContain("s3cr3t");
  });
  test.each(["docker", "podman", "apptainer"])(
    "%s gets five mounts, no device and no home",
    async (format) => {
      const { folder, file } = campaign();
      const out = await withFormat(file, format);
      const words = shellWords(out);
      if (!words.ok) throw new Error(words.error.message);
      const mounts = words.value.filter((_, index) => words.value[index - 1] === "--mount");
      expect(mounts.length).toBe(5);
      expect(mounts[0]).toBe(
        `type=bind,source=${folder}/workspace,${format === "apptainer" ? "destination" : "target"}=/workspace`,
      );
      expect(mounts.filter((mount) => /,(?:readonly|ro)(?:=true)?$/.test(mount)).length).toBe(3);
      expect(out).not.toMatch(/--gpus|--device|--nv\b|--rocm|\/dev\/|s3cr3t/);
      expect(words.value).toContain("NVIDIA_VISIBLE_DEVICES=void");
      expect(words.value).toContain("VIBESYS_SKYPILOT_CALLER_STATE=/opt/vibesys-skypilot-caller");
    },
  );
  test("a path with a comma, a blank and a quote is one field and one word", async () => {
    const { folder } = campaign();
    const odd = join(ROOT, "o,d d'");
    cpSync(folder, odd, { recursive: true });
    const words = shellWords(await withFormat(join(odd, "campaign.toml"), "docker"));
    expect(words.ok && words.value[1]).toBe(`type=bind,"source=${odd}/workspace",target=/workspace`);
  });
  test("the environment alone is read by a shell", async () => {
    const { folder, file } = campaign();
    const script = `${await withFormat(file, "env")}printf '%s|%s' "$VIBESYS_SKYPILOT_CALLER_STATE" "\${CUDA_VISIBLE_DEVICES-unset}"`;
    expect(Bun.spawnSync(["sh", "-c", script]).stdout.toString()).toBe(`${folder}/state/caller|`);
  });
  test("a socket's folder that others see is not mounted", async () => {
    const { folder, file } = campaign();
    mkdirSync(join(folder, "run"));
    chmodSync(join(folder, "run"), 0o755);
    const { exit, err } = await runApp(["bridge", "mounts", "--campaign", file]);
    expect(exit).toBe(4);
    expect(err).toContain("is not private");
    expect(existsSync(join(folder, "state"))).toBe(false);
  });
});

describe("as a service", () => {
  test("the flags come back, every path whole", async () => {
    const { file } = campaign();
    const { out } = await runApp([
      "bridge",
      "--print-unit",
      "--campaign",
      file,
      "--hide",
      "a b",
      "--hide",
      "c",
      "--keep",
    ]);
    const line = /^ExecStart=(.*)$/m.exec(out!)![1]!;
    expect(line).toEndWith(` bridge --campaign=${file} "--hide=a b" --hide=c --keep`);
    // A call of sky's outlives a killed daemon, and so does the API server it may have started.
    expect(out).toContain("KillMode=process");
  });
  test("what systemd would expand is doubled", () => {
    const unit = bridgeUnit("/bin/gate", ["--setup=echo $HOME 50%"], {
      runId: "50%",
      path: "/a b:$x",
      allow: ["HF_TOKEN"],
    });
    expect(unit).toContain("systemctl --user import-environment HF_TOKEN\n");
    expect(unit).toContain('ExecStart=/bin/gate bridge "--setup=echo $$HOME 50%%"');
    expect(unit).toContain("run 50%%\n");
    expect(unit).toContain('Environment="PATH=/a b:$x"');
  });
  test.skipIf(Bun.which("systemd-analyze") === null && process.env.CI !== "true")(
    "systemd finds nothing to say about it",
    () => {
      const folder = mkdtempSync(join(tmpdir(), "unit-"));
      const words = ["--campaign=/a b/100%.toml", `--accuracy=sh -c "a; b" 'c' \\x`, "--setup=a\nb $HOME"];
      const unit = bridgeUnit("/bin/true", words, { runId: "r 50%", path: "/a b", allow: ["A"] });
      writeFileSync(join(folder, "bridge.service"), unit);
      const { exitCode, stderr } = Bun.spawnSync([
        "systemd-analyze",
        "verify",
        join(folder, "bridge.service"),
      ]);
      rmSync(folder, { recursive: true });
      expect([exitCode, stderr.toString()]).toEqual([0, ""]);
    },
  );
});

describe("small commands", () => {
  test("bridge capabilities", async () => {
    const { out } = await runApp(["bridge", "capabilities", "--json"]);
    expect(JSON.parse(out!)).toMatchObject({
      protocolVersion: 2,
      kinds: ["accuracy", "benchmark"],
      parallelCandidates: { supported: false },
      remoteProfiler: { supported: false, kinds: ["auto", "none"], supportPath: null },
    });
  });
  test("bridge rewrite", async () => {
    const line = "python /workspace/x.py 'a b'";
    expect(await runApp(["bridge", "rewrite", line])).toEqual({ out: "python ./x.py 'a b'\n", exit: 0 });
    expect((await runApp(["bridge", "rewrite", "--json", line])).out).toBe('["python","./x.py","a b"]\n');
    expect((await runApp(["bridge", "rewrite", "sh -c 'cd /workspace'"])).exit).toBe(4);
  });
});
