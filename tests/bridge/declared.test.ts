/** Files that a call declares: from the job's folder to the caller's, whole or named as left out. */
import { afterEach, describe, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  ack,
  type Bench,
  type BenchOptions,
  bench,
  newId,
  rawClient,
  request,
  sha256,
} from "./bridge-kit.ts";

const USER = execFileSync("id", ["-un"], { encoding: "utf8" }).trim();
const benches: Bench[] = [];
const folders: string[] = [];
const made = (options: BenchOptions = {}) => {
  const kit = bench(options);
  benches.push(kit);
  return kit;
};
const temporary = () => {
  const folder = mkdtempSync(join(tmpdir(), "declared-"));
  folders.push(folder);
  return folder;
};
afterEach(async () => {
  await Promise.all(benches.splice(0).map((kit) => kit.remove()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const listed = (folder: string, below = ""): string[] =>
  readdirSync(join(folder, below), { withFileTypes: true })
    .flatMap((entry) => {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      return entry.isDirectory() ? listed(folder, path) : [path];
    })
    .sort();
const asks = (kit: Bench, globs: readonly string[], ...more: string[]) => [
  "accuracy",
  ...globs.flatMap((glob) => ["--artifact", glob]),
  "--artifact-dir",
  join(kit.root, "returned"),
  ...more,
];

describe("in the log itself", () => {
  test("what the evaluation wrote and what matches comes, byte for byte, and nothing else", async () => {
    const kit = made({ accuracy: "sh check.sh" });
    kit.write(
      "check.sh",
      "mkdir -p out/deep 'out/a b'\nprintf 'one' >out/one.json\nhead -c 100000 /dev/urandom >out/deep/two.json\nprintf 'x' >'out/a b/é #1.json'\n: >out/empty.json\nprintf 'no' >out/three.txt\nsha256sum out/deep/two.json\n",
    );
    const daemon = await kit.start();
    const ran = await kit.evaluate(asks(kit, ["out/*.json", "out/deep/*.json", "out/a ?/*.json"]));
    expect(ran).toMatchObject({ exit: 0, err: "" });
    const back = join(kit.root, "returned");
    expect(listed(back).sort()).toEqual(
      ["out/a b/é #1.json", "out/deep/two.json", "out/empty.json", "out/one.json"].sort(),
    );
    expect(readFileSync(join(back, "out/one.json"), "utf8")).toBe("one");
    expect(ran.out.split(" ")[0]).toBe(sha256(readFileSync(join(back, "out/deep/two.json"))));
    expect(statSync(join(back, "out/one.json")).mode & 0o777).toBe(0o600);
    await daemon.kill();
  });

  test("what the evaluation before left behind is no result of this one, a rewritten file is", async () => {
    const kit = made({ accuracy: "sh check.sh" });
    kit.write("check.sh", "mkdir -p out\necho first >out/old.json\necho same >out/same.json\n");
    await kit.start();
    expect((await kit.evaluate(asks(kit, ["out/*.json"]))).exit).toBe(0);
    rmSync(join(kit.root, "returned"), { recursive: true });
    kit.write("check.sh", "echo second >out/new.json\necho same >out/same.json\n");
    const second = await kit.evaluate(asks(kit, ["out/*.json"]));
    expect(second).toMatchObject({ exit: 0, err: "" });
    expect(listed(join(kit.root, "returned"))).toEqual(["out/new.json", "out/same.json"]);
  });

  test("they come back of a program that failed as well, and its exit code stays", async () => {
    const kit = made({ accuracy: "sh check.sh" });
    kit.write("check.sh", "echo why >trace.txt\nexit 3\n");
    await kit.start();
    const ran = await kit.evaluate(asks(kit, ["trace.txt", "core.*"]));
    expect(ran.exit).toBe(1);
    expect(readFileSync(join(kit.root, "returned/trace.txt"), "utf8")).toBe("why\n");
    expect(ran.err).toContain("core.* is left out: the evaluation wrote no such file.");
  });

  test("links are refused by name, in the file's place and on the way to it", async () => {
    const kit = made({ accuracy: "sh check.sh" });
    kit.write(
      "check.sh",
      "mkdir -p out\necho fine >out/fine.json\nln -s /etc/hostname out/link.json\nln -s /etc etc\n",
    );
    await kit.start();
    const ran = await kit.evaluate(asks(kit, ["out/*.json", "etc/host*"]));
    expect(ran.exit).toBe(0);
    expect(listed(join(kit.root, "returned"))).toEqual(["out/fine.json"]);
    expect(ran.err).toContain("out/link.json is left out: it is a link, or lies behind one.");
    expect(ran.err).toContain("etc is left out: it is a link, or lies behind one.");
  });

  test("beyond the call's limits files are left out by name, in the order of their paths", async () => {
    const kit = made({ accuracy: "sh check.sh" });
    kit.write("check.sh", "mkdir out\nfor n in 1 2 3 4; do head -c 1000 /dev/zero >out/$n.bin; done\n");
    await kit.start();
    const few = await kit.evaluate(asks(kit, ["out/*.bin"], "--artifact-files", "3"));
    expect(listed(join(kit.root, "returned"))).toEqual(["out/1.bin", "out/2.bin", "out/3.bin"]);
    expect(few.err).toContain("out/4.bin is left out: it is beyond the most files of the call.");
    rmSync(join(kit.root, "returned"), { recursive: true });
    kit.write(
      "check.sh",
      "rm -r out\nmkdir out\nfor n in 1 2 3 4; do head -c 1000 /dev/zero >out/$n.bin; done\n",
    );
    const small = await kit.evaluate(asks(kit, ["out/*.bin"], "--artifact-bytes", "2500"));
    expect(listed(join(kit.root, "returned"))).toEqual(["out/1.bin", "out/2.bin"]);
    expect(small.err).toContain("out/3.bin is left out: with it the files have more than the most bytes");
  });

  test("the caller's own links are not followed", async () => {
    const kit = made({ accuracy: "sh check.sh" });
    kit.write("check.sh", "mkdir -p out\necho new >out/a.json\n");
    await kit.start();
    const elsewhere = temporary();
    mkdirSync(join(kit.root, "returned"));
    symlinkSync(elsewhere, join(kit.root, "returned/out"));
    const ran = await kit.evaluate(asks(kit, ["out/*.json"]));
    expect(ran.exit).toBe(2);
    expect(ran.err).toContain("is a link, which is not followed");
    expect(readdirSync(elsewhere)).toEqual([]);
    rmSync(join(kit.root, "returned/out"));
    mkdirSync(join(kit.root, "returned/out"));
    symlinkSync(join(elsewhere, "target"), join(kit.root, "returned/out/a.json"));
    // The next call collects the same evaluation, and replaces the link instead of writing through it.
    expect((await kit.evaluate(asks(kit, ["out/*.json"]))).exit).toBe(0);
    expect(lstatSync(join(kit.root, "returned/out/a.json")).isFile()).toBe(true);
    expect(existsSync(join(elsewhere, "target"))).toBe(false);
    expect(kit.sky.commands().filter((name) => name === "exec")).toHaveLength(1);
  });
});

describe("below the persistent folder", () => {
  const withRoot = (root: string, options: BenchOptions = {}) =>
    made({
      accuracy: "sh check.sh",
      profile: `remote_artifact_root = ${JSON.stringify(`${root}/$USER/vibesys`)}\n`,
      ...options,
    });
  const own = (root: string) => join(root, USER, "vibesys/neurarch-artifacts");
  const BIG =
    "mkdir -p out\nhead -c 3000000 /dev/urandom >out/big.bin\necho small >out/small.txt\nsha256sum out/big.bin\n";

  test("a large file goes by way of it, which is made where it is missing, and comes whole", async () => {
    const root = temporary();
    const kit = withRoot(root);
    kit.write("check.sh", BIG);
    await kit.start();
    const ran = await kit.evaluate(asks(kit, ["out/*"]));
    expect(ran).toMatchObject({ exit: 0, err: "" });
    const back = join(kit.root, "returned");
    expect(listed(back)).toEqual(["out/big.bin", "out/small.txt"]);
    expect(sha256(readFileSync(join(back, "out/big.bin")))).toBe(ran.out.split(" ")[0]!);
    const [attempt] = readdirSync(own(root));
    expect(attempt).toMatch(/^vibesys-inv-[0-9a-f]{12}-a1-[0-9a-f]{12}$/);
    expect(statSync(own(root)).mode & 0o777).toBe(0o700);
    // The fetch is a job of its own on the same allocation, without the candidate.
    const execs = kit.sky.calls().filter(({ command }) => command === "exec");
    expect(execs.map(({ task }) => Object.keys(task!).includes("workdir"))).toEqual([true, false]);
    expect(kit.sky.commands().filter((name) => name === "launch")).toHaveLength(1);
  });

  test("a job is told of the folder, also where it declares nothing", async () => {
    const root = temporary();
    const kit = withRoot(root, { accuracy: "sh -c 'printf %s \"$VIBESYS_REMOTE_ARTIFACT_ROOT\"'" });
    await kit.start();
    const ran = await kit.evaluate(["accuracy"]);
    expect(ran.out).toBe(`${join(root, USER, "vibesys")}\n`);
    expect(statSync(ran.out.trim()).isDirectory()).toBe(true);
  });

  test("what lies there longer than the campaign says is removed, and nothing else", async () => {
    const root = temporary();
    const kit = withRoot(root, { more: "artifact_days = 2\n" });
    kit.write("check.sh", "echo done\n");
    const age = (name: string, days: number) => {
      mkdirSync(join(own(root), name), { recursive: true });
      writeFileSync(join(own(root), name, "0"), "x");
      const then = Date.now() / 1000 - days * 86_400;
      utimesSync(join(own(root), name), then, then);
    };
    age("vibesys-inv-000000000001-a1-0000", 3);
    age("vibesys-inv-000000000002-a1-0000", 1);
    age("mine", 9);
    await kit.start();
    expect((await kit.evaluate(asks(kit, ["none"]))).exit).toBe(0);
    expect(readdirSync(own(root)).sort()).toEqual(["mine", "vibesys-inv-000000000002-a1-0000"]);
  });

  test("without such a folder, or where it cannot be made, a large file is left out by name", async () => {
    const none = made({ accuracy: "sh check.sh" });
    none.write("check.sh", BIG);
    await none.start();
    const ran = await none.evaluate(asks(none, ["out/*"]));
    expect(ran.exit).toBe(0);
    expect(listed(join(none.root, "returned"))).toEqual(["out/small.txt"]);
    expect(ran.err).toContain("out/big.bin is left out: it does not fit into the 512 KiB");
    const file = join(temporary(), "file");
    writeFileSync(file, "");
    const blocked = withRoot(file);
    blocked.write("check.sh", BIG);
    await blocked.start();
    const second = await blocked.evaluate(asks(blocked, ["out/*"]));
    expect(second.exit).toBe(0);
    expect(second.err).toContain("out/big.bin is left out: it could not be copied below");
  });

  test("a connection that is lost on the way is gone on from where it was, and the program runs once", async () => {
    const root = temporary();
    const kit = withRoot(root, {
      scenario: {
        rules: [
          { on: "logs", nth: 2, cutBytes: 900_000 },
          { on: "logs", nth: 3, cutBytes: 900_000 },
        ],
      },
    });
    kit.write("check.sh", BIG);
    await kit.start();
    const ran = await kit.evaluate(asks(kit, ["out/*"]));
    expect(ran.exit).toBe(0);
    expect(sha256(readFileSync(join(kit.root, "returned/out/big.bin")))).toBe(ran.out.split(" ")[0]!);
    const runs = kit.sky.calls().filter(({ command }) => command === "exec");
    expect(runs).toHaveLength(4);
    const offsets = runs.slice(1).map(({ task }) => /piece 0 (\d+)/.exec(String(task!.run))![1]);
    expect(offsets[0]).toBe("0");
    // How much of a cut stream still arrives is the system's affair; none of it is asked for again.
    expect(Number(offsets[1])).toBeGreaterThan(100_000);
    expect(Number(offsets[2])).toBeGreaterThan(Number(offsets[1]) + 100_000);
  });

  test("a file that is not what was announced is found out, fetched anew, and in the end left out", async () => {
    const root = temporary();
    const kit = withRoot(root);
    kit.write(
      "check.sh",
      // The job's own copy is damaged behind its back before it is fetched.
      `${BIG}(while ! [ -e ${own(root)}/*/0 ]; do sleep 0.01; done; sleep 0.3; printf X | dd of=$(echo ${own(root)}/*/0) conv=notrunc 2>/dev/null) >/dev/null 2>&1 &\n`,
    );
    kit.sky.scenario({ rules: [{ on: "exec", nth: 2, delayS: 0.6 }] });
    await kit.start();
    const ran = await kit.evaluate(asks(kit, ["out/*"]));
    expect(ran.exit).toBe(0);
    expect(ran.err).toContain("out/big.bin is left out: it did not arrive whole.");
    expect(listed(join(kit.root, "returned"))).toEqual(["out/small.txt"]);
    expect(kit.sky.commands().filter((name) => name === "exec")).toHaveLength(4);
  });

  test("an allocation that ends before the file is fetched: the next one fetches it, the program runs once", async () => {
    const root = temporary();
    const kit = withRoot(root);
    kit.write("check.sh", BIG);
    kit.sky.scenario({
      rules: [{ on: "logs", nth: 1, after: [{ do: "end", cluster: "*", cause: "time-limit" }] }],
    });
    await kit.start();
    const ran = await kit.evaluate(asks(kit, ["out/*"]));
    expect(ran.exit).toBe(0);
    expect(sha256(readFileSync(join(kit.root, "returned/out/big.bin")))).toBe(ran.out.split(" ")[0]!);
    expect(kit.sky.commands().filter((name) => name === "launch")).toHaveLength(2);
    expect(ran.out.split("\n").filter((line) => line.endsWith("out/big.bin"))).toHaveLength(1);
  });

  test("kill -9 while a file is fetched: the next daemon goes on with it, the program runs once", async () => {
    const root = temporary();
    const kit = withRoot(root);
    kit.write("check.sh", BIG);
    kit.sky.scenario({ rules: [{ on: "logs", nth: 2, cutBytes: 900_000, exitAfter: 255 }] });
    const first = await kit.start({ limits: { reconnectMs: 60_000 } });
    const asked = kit.evaluating(asks(kit, ["out/*"]));
    const parts = () => {
      const store = join(kit.state, "files");
      return existsSync(store) ? readdirSync(store).filter((name) => name.endsWith(".part")) : [];
    };
    while (parts().length === 0) await Bun.sleep(20);
    await first.kill("SIGKILL");
    expect((await asked.ran).exit).toBe(2);
    await kit.start();
    const ran = await kit.evaluate(asks(kit, ["out/*"]));
    expect(ran.exit).toBe(0);
    const out = `${asked.out()}${ran.out}`;
    expect(out.split("\n").filter((line) => line.endsWith("out/big.bin"))).toHaveLength(1);
    expect(sha256(readFileSync(join(kit.root, "returned/out/big.bin")))).toBe(out.split(" ")[0]!);
    const runs = kit.sky.calls().filter(({ task }) => String(task?.run).includes("check.sh"));
    expect(runs).toHaveLength(1);
  });
});

describe("on the wire", () => {
  test("a client that declares nothing gets the same bytes as ever, whatever others declare", async () => {
    const kit = made({ accuracy: "sh check.sh" });
    kit.write("check.sh", "echo text\necho more >out.txt\n");
    await kit.start();
    const id = newId();
    const client = await rawClient(kit.socket);
    client.send(request(id));
    await client.until((one) => one.frame("result") !== undefined);
    client.send(ack(id));
    await client.until((one) => one.frame("acked") !== undefined);
    expect(client.text).toBe(
      [
        `{"version":2,"type":"stdout","data":"text\\n"}`,
        `{"version":2,"type":"result","status":"COMPLETED","sky_exit_code":0,"remote_job_id":2}`,
        `{"version":2,"type":"acked","invocation_id":"${id}"}`,
        "",
      ].join("\n"),
    );
    const other = await rawClient(kit.socket);
    const second = newId();
    other.send({ ...request(second), declared: { globs: ["out.txt"], max_files: 1, max_bytes: 100 } });
    await other.until((one) => one.frame("result") !== undefined);
    expect(other.frames.map(({ type }) => type)).toEqual(["stdout", "file", "file_data", "files", "result"]);
    expect(other.frame("file")).toEqual({
      version: 2,
      type: "file",
      path: "out.txt",
      size: 5,
      sha256: sha256("more\n"),
    });
    other.socket.destroy();
    // Another declaration under the same id is another request.
    const third = await rawClient(kit.socket);
    third.send({ ...request(second), declared: { globs: ["*"], max_files: 1, max_bytes: 100 } });
    await third.until((one) => one.closed);
    expect(third.output("stderr")).toContain("was used for another request before");
  });

  const good = { globs: ["a"], max_files: 1, max_bytes: 1 };
  test.each([
    ["a pattern that goes up", { ...good, globs: ["../secret"] }, "has a .. part"],
    ["one that goes up in its middle", { ...good, globs: ["a/../../b"] }, "has a .. part"],
    ["an absolute one", { ...good, globs: ["/etc/passwd"] }, "is absolute"],
    ["an empty one", { ...good, globs: [""] }, "is empty"],
    ["one with a line end", { ...good, globs: ["a\nb"] }, "control character"],
    ["a part without a name", { ...good, globs: ["a//b"] }, "an empty part"],
    ["too many patterns", { ...good, globs: Array.from({ length: 17 }, () => "a") }, "more than 16"],
    ["no pattern", { ...good, globs: [] }, "no pattern"],
    ["more files than may be", { ...good, max_files: 1001 }, "from 1 to 1000"],
    ["more bytes than may be", { ...good, max_bytes: 2_000_000_000 }, "from 1 to 1073741824"],
    ["a number that is text", { ...good, max_files: "1" }, "not whole numbers"],
    ["a further key", { ...good, root: "/etc" }, 'unknown key "root"'],
    ["a list", ["a"], "not an object"],
  ])("%s is refused by name", async (_, declared, said) => {
    const { parseRequest } = await import("../../src/bridge/wire/request.ts");
    const line = new TextEncoder().encode(`${JSON.stringify({ ...request(newId()), declared })}\n`);
    const read = parseRequest(line, "--output-json");
    expect(read).toMatchObject({ ok: false });
    expect((read as { error: { message: string } }).error.message).toContain(said);
  });

  test.each([
    ["without a folder", ["--artifact", "a"], "--artifact-dir DIR"],
    ["a pattern that goes up", ["--artifact", "../a", "--artifact-dir", "x"], "has a .. part"],
    ["a limit alone", ["--artifact-files", "3"], "no --artifact"],
    ["a limit that is none", ["--artifact", "a", "--artifact-dir", "x", "--artifact-files", "0"], "above 0"],
  ])("evaluate refuses %s", async (_, words, said) => {
    const kit = made();
    const ran = await kit.evaluate(["accuracy", ...words]);
    expect(ran.exit).toBe(2);
    expect(ran.err).toContain(said);
  });
});
