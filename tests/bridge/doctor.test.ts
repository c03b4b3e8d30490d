import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { certificateEnd, sshSettings } from "../../src/daemon/doctor-ssh.ts";
import { bench } from "./bridge-kit.ts";

const VALID: readonly (readonly [string, string, number | "forever" | null])[] = [
  [
    "from and to",
    "        Valid: from 2026-11-29T10:00:00 to 2026-11-30T10:00:00\n",
    new Date("2026-11-30T10:00:00").getTime(),
  ],
  ["for ever", "        Valid: forever\n", "forever"],
  ["before", "        Valid: before 2026-11-30T10:00:00\n", new Date("2026-11-30T10:00:00").getTime()],
  ["after", "        Valid: after 2026-11-30T10:00:00\n", "forever"],
  ["nothing", "        Serial: 0\n", null],
];
test.each(VALID)("a certificate's end: %s", (_, text, end) => {
  expect(certificateEnd(text)).toBe(end as never);
});

test("the settings of ssh -G", () => {
  const text =
    "host lab\nhostname login.lab\nidentityfile ~/.ssh/id_lab\ncertificatefile /keys/lab-cert.pub\n";
  expect(sshSettings(text, "/home/me")).toEqual({
    host: "login.lab",
    certificates: ["/keys/lab-cert.pub", "/home/me/.ssh/id_lab-cert.pub"],
  });
});

test("an expired certificate, an open folder and a missing sky are said with what to do", async () => {
  const b = bench();
  const home = mkdtempSync(join(tmpdir(), "doctor-home-"));
  try {
    const key = join(home, "id");
    const keygen = (...words: string[]) =>
      expect(Bun.spawnSync(["ssh-keygen", "-q", ...words]).exitCode).toBe(0);
    keygen("-t", "ed25519", "-N", "", "-f", key);
    keygen("-t", "ed25519", "-N", "", "-f", join(home, "ca"));
    keygen("-s", join(home, "ca"), "-I", "me", "-n", "me", "-V", "20200101:20200102", `${key}.pub`);
    mkdirSync(join(home, ".slurm"));
    writeFileSync(
      join(home, ".slurm", "config"),
      `Host lab\n  HostName 127.0.0.1\n  User me\n  Port 1\n  IdentityFile ${key}\n`,
    );
    const main = join(import.meta.dir, "../../src/main.ts");
    const words = ["doctor", "bridge", "--campaign", join(b.root, "campaign.toml"), "--json"];
    const run = (more: string[] = []) => {
      const ran = Bun.spawnSync([process.execPath, main, ...words, ...more], {
        env: { ...process.env, HOME: home },
      });
      const { checks } = JSON.parse(ran.stdout.toString()) as {
        checks: { check: string; status: string; message: string }[];
      };
      return { exit: ran.exitCode, checks: Object.fromEntries(checks.map((one) => [one.check, one])) };
    };
    const first = run();
    expect(first.exit).toBe(4);
    expect(first.checks.sky).toMatchObject({ status: "ok", message: `${b.sky.sky} is SkyPilot 0.13.0` });
    expect(first.checks.socket?.status).toBe("ok");
    expect(first.checks.certificate?.status).toBe("fail");
    expect(first.checks.certificate?.message).toMatch(/expired \d+\.\d h ago/);
    expect(first.checks.ssh?.status).toBe("skipped");
    rmSync(`${key}-cert.pub`);
    const second = run(["--sky", "/no/sky"]);
    expect(second.checks.sky?.status).toBe("fail");
    expect(second.checks.ssh?.message).toContain("cannot be reached");
  } finally {
    rmSync(home, { recursive: true, force: true });
    await b.remove();
  }
});
