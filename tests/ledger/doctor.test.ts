import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { checkBinary } from "../../src/slurm/doctor-binary.ts";
import { run } from "../acceptance/run.ts";

const CI = process.env.CI === "true";
const ROOT_USER = process.getuid?.() === 0;

let root = "";
let made = 0;
const mounted: string[] = [];
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "gate-doctor-"));
});
afterAll(() => {
  for (const folder of mounted) Bun.spawnSync(["umount", folder]);
  rmSync(root, { recursive: true, force: true });
});
const place = (mode = 0o1777) => {
  const folder = join(root, String(++made));
  mkdirSync(folder);
  chmodSync(folder, mode);
  return folder;
};
const mount = (folder: string, options: string) => {
  mounted.push(folder);
  return Bun.spawnSync(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]).exitCode === 0;
};
/** A container may be root without being able to mount. */
const CAN_MOUNT = ROOT_USER && Bun.spawnSync(["unshare", "-m", "true"]).exitCode === 0;
const own = (user: string) => `${user}@${hostname()}.jsonl`;

describe.skipIf(!CI && !ROOT_USER)("doctor ledger, of what the site file names", () => {
  const ROWS: readonly (readonly [string, () => string, number, RegExp])[] = [
    ["a folder as it should be", () => place(), 0, /^verdicts are recorded in /],
    ["nothing there", () => join(root, "nowhere"), 4, /is no folder on this host/],
    ["without the sticky bit", () => place(0o777), 4, /has no sticky bit/],
    ["root's alone", () => place(0o700), 4, /users cannot write into/],
    [
      "a full disk",
      () => {
        const folder = place();
        expect(mount(folder, "size=64k,mode=1777")).toBe(true);
        Bun.spawnSync(["sh", "-c", `cat /dev/zero >${join(folder, "fill")}`]);
        return folder;
      },
      4,
      /^the disk of .* is full/,
    ],
    [
      "a read-only file system",
      () => {
        const folder = place();
        expect(mount(folder, "size=1m,mode=1777")).toBe(true);
        Bun.spawnSync(["mount", "-o", "remount,ro", folder]);
        return folder;
      },
      4,
      /is read-only/,
    ],
    [
      "someone else's file in a user's place",
      () => {
        const folder = place();
        writeFileSync(join(folder, own("root")), "", { mode: 0o600 });
        chownSync(join(folder, own("root")), 65534, 65534);
        return folder;
      },
      4,
      /belongs to user 65534, not to root/,
    ],
    [
      "a link in a user's place",
      () => {
        const folder = place();
        symlinkSync("/etc/passwd", join(folder, own("nobody")));
        return folder;
      },
      4,
      /is no regular file/,
    ],
    [
      "a second name of another file",
      () => {
        const folder = place();
        writeFileSync(join(folder, "other"), "", { mode: 0o600 });
        linkSync(join(folder, "other"), join(folder, own("root")));
        return folder;
      },
      4,
      /has a second name/,
    ],
    [
      "a file of a user of another host",
      () => {
        const folder = place();
        writeFileSync(join(folder, "ada@elsewhere.jsonl"), "");
        return folder;
      },
      0,
      /^verdicts are recorded in /,
    ],
  ];
  for (const [name, make, exit, message] of ROWS)
    test.skipIf(!CI && !CAN_MOUNT && /disk|file system/.test(name))(name, async () => {
      writeFileSync(join(root, "gate.toml"), `ledger = "${make()}"\n`);
      const told = await run(["doctor", "ledger", "--config", join(root, "gate.toml"), "--json"]);
      expect(told.exit).toBe(exit as 0);
      expect(JSON.parse(told.out).checks).toEqual([
        expect.objectContaining({ check: "ledger", message: expect.stringMatching(message) }),
      ]);
    });

  test("a site without one", async () => {
    writeFileSync(join(root, "gate.toml"), "");
    const told = await run(["doctor", "ledger", "--config", join(root, "gate.toml")]);
    expect([told.exit, told.out.includes("keeps no ledger")]).toEqual([0, true]);
  });
});

test("doctor slurm tells the same of the site file's ledger, which the filter does not name", async () => {
  const gate = { kind: "file", uid: 0, gid: 0, mode: 0o755, size: 1 } as const;
  const asked: unknown[] = [];
  const checks = await checkBinary(
    { binary: "/opt/gate/neurarch-gate", config: "/etc/gate.toml" },
    {
      env: { PATH: "/bin" },
      version: "1.0.0",
      read: () => null,
      info: (path) =>
        /gate$|toml$/.test(path) && path !== "/opt/gate" ? gate : { ...gate, kind: "directory" },
      real: (path) => path,
      list: () => [],
      find: (program) => `/bin/${program}`,
      run: async () => ({ exit: 0, out: "neurarch-gate 1.0.0 (x)\n", err: "", timedOut: false }),
      settingsProblem: async () => null,
      ledger: async (flags) => {
        asked.push(flags);
        return [{ problem: true, message: "the disk of /srv is full", fix: "Make room." }];
      },
    },
  );
  expect(asked).toEqual([{ config: "/etc/gate.toml" }]);
  expect(checks.find(({ check }) => check === "ledger")).toMatchObject({
    status: "warn",
    message: "the disk of /srv is full",
    fix: "Make room.",
  });
});
