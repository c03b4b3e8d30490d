import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BINARY, exec, filtered, LUAS, REFUSED, SCRIPT, Scratch, shell } from "./kit.ts";

const scratch = new Scratch();
afterAll(() => scratch.remove());

/** Lines of bash after which a submit is judged as ever: exit 0 and the refusal, nothing on stderr. */
const JUDGED: Readonly<Record<string, string>> = {
  "8 descriptors": "ulimit -n 8; exec $SUBMIT",
  "1 GB of addresses": "ulimit -v 1000000; exec $SUBMIT",
  "no file may be written": "ulimit -f 0; $SUBMIT | cat",
  "a second of processor time": "ulimit -t 1; exec $SUBMIT",
  "no core, no locked memory, no queues": "ulimit -c 0 -l 0 -q 0; exec $SUBMIT",
  "a stack of 256 kB": "ulimit -s 256; exec $SUBMIT",
  "no HOME": "unset HOME; exec $SUBMIT",
  "an empty HOME": "HOME= exec $SUBMIT",
  "a HOME that is a file": "HOME=/etc/passwd exec $SUBMIT",
  "a HOME that is a device": "HOME=/dev/full exec $SUBMIT",
  "closed standard input": "exec $SUBMIT <&-",
  "closed standard error": "exec $SUBMIT 2>&-",
  both: "exec $SUBMIT <&- 2>&-",
  "standard error is full": "exec $SUBMIT 2>/dev/full",
  "standard input is endless": "exec $SUBMIT </dev/zero",
  "standard input is a folder": "exec $SUBMIT </",
  "all signals ignored": "trap '' HUP INT QUIT PIPE TERM XFSZ XCPU USR1 USR2 CHLD; exec $SUBMIT",
  "umask 0777": "umask 0777; exec $SUBMIT",
  "nice and idle": "exec nice -n 19 $SUBMIT",
  "a ledger on a full device": "exec $SUBMIT --ledger /dev/full",
  "a ledger in /proc": "exec $SUBMIT --ledger /proc/self/x",
  "a working directory that is gone": "d=$(mktemp -d); cd $d; rmdir $d; exec $SUBMIT",
  "no shell variables at all": "exec env -i $SUBMIT",
};

describe("a submit is judged", () => {
  for (const [name, line] of Object.entries(JUDGED)) {
    test(name, async () => {
      const { exit, out, err } = await shell(line);
      expect({ exit, out, err }).toEqual({ exit: 0, out: expect.stringMatching(REFUSED), err: "" });
    });
  }

  const isRoot = process.getuid?.() === 0;
  const ALONE: Readonly<Record<string, string>> = {
    "a read-only root": "mount -o remount,bind,ro / /; exec $SUBMIT --ledger /var/log/neurarch-none",
    "no /tmp, no /dev/shm":
      "mount -t tmpfs -o size=4k,ro none /tmp; mount -t tmpfs -o size=4k,ro none /dev/shm; exec $HERE",
    "no /sys, no /etc": "mount -t tmpfs none /sys; mount -t tmpfs none /etc; exec $SUBMIT",
    "a home without room": "mount -t tmpfs -o size=4k none /mnt; HOME=/mnt exec $SUBMIT --ledger /mnt",
    "a home without inodes":
      "mount -t tmpfs -o size=1m,nr_inodes=1 none /mnt; HOME=/mnt exec $SUBMIT --ledger /mnt",
    "no network": "exec unshare -n $SUBMIT",
  };
  for (const [name, line] of Object.entries(ALONE)) {
    test.skipIf(!isRoot && process.env.CI === undefined)(name, async () => {
      // A mount of its own: the executable and the script stay reachable where /tmp is taken away.
      const prelude =
        'mkdir -p /run/gate-hard && mount -t tmpfs none /run/gate-hard && cp "$GATE" "$SCRIPT" /run/gate-hard/;';
      const here =
        "/run/gate-hard/neurarch-gate slurm --script /run/gate-hard/finetune-qwen3-8b.sbatch --gres gpu:a10g:1 --nodes 1";
      const own = line.includes("$HERE") ? prelude : "";
      const { exit, out, err } = await exec(["unshare", "-m", "bash", "-c", `${own} ${line}`], {
        env: {
          GATE: BINARY,
          SCRIPT,
          HERE: here,
          SUBMIT: `${BINARY} slurm --script ${SCRIPT} --gres gpu:a10g:1 --nodes 1`,
        },
      });
      expect({ exit, out, err }).toEqual({ exit: 0, out: expect.stringMatching(REFUSED), err: "" });
    });
  }

  test.skipIf(!isRoot && process.env.CI === undefined)("a full disk leaves no half of a file", async () => {
    const line =
      "mount -t tmpfs -o size=16k none /mnt; for i in $(seq 40); do HOME=/mnt $SUBMIT --ledger /mnt/ledger >/dev/null || echo failed; done; find /mnt -name '.*' -type f; cat /mnt/ledger/*.jsonl";
    const { exit, out, err } = await exec(["unshare", "-m", "bash", "-c", line], {
      env: { SUBMIT: `${BINARY} slurm --script ${SCRIPT} --gres gpu:a10g:1 --nodes 1` },
    });
    expect({ exit, err }).toEqual({ exit: 0, err: "" });
    const lines = out.split("\n").filter(Boolean);
    expect(lines.length).toBeGreaterThan(0);
    for (const one of lines) if (one.endsWith("}")) JSON.parse(one);
    expect(out).not.toContain("failed");
    expect(out).not.toMatch(/^\/mnt/m);
  });
});

describe("the answer has nowhere to go", () => {
  const rows: Readonly<Record<string, string>> = {
    "a full device": "$SUBMIT >/dev/full",
    "a closed descriptor": "$SUBMIT >&-",
    "a reader that is gone": "set -o pipefail; $SUBMIT | true",
    "a file above its limit": "ulimit -f 0; $SUBMIT >$(mktemp)",
    "all three closed": "$SUBMIT <&- >&- 2>&-",
  };
  for (const [name, line] of Object.entries(rows)) {
    test(name, async () => expect(await shell(line)).toEqual({ exit: 0, out: "", err: "" }));
  }

  test("other commands say so and end with 70", async () => {
    for (const command of [
      "cards",
      "size gpt2",
      "print-lua",
      "judge --model gpt2 --request T4:1 --batch 1",
      "--help",
      "schema --list",
    ]) {
      const { exit, err } = await shell(`$GATE ${command} >/dev/full`);
      expect({ command, exit, err }).toEqual({
        command,
        exit: 70,
        err: "neurarch-gate: the answer could not be written: ENOSPC.\n",
      });
    }
  });

  test("a descriptor of the caller's is not written to in the place of a closed one", async () => {
    const file = scratch.put("callers", "");
    // With 1 and 2 closed, the next file that is opened would be one of them.
    const { exit } = await shell(`exec 3<>${file}; exec $SUBMIT >&- 2>&- 3>&-`);
    expect(exit).toBe(0);
    expect(readFileSync(file, "utf8")).toBe("");
    const home = scratch.fresh();
    mkdirSync(home, { mode: 0o700 });
    await shell("exec $SUBMIT --ledger $HOME/ledger >&- 2>&-", { env: { HOME: home } });
    for (const name of readdirSync(join(home, "ledger"))) {
      const text = readFileSync(join(home, "ledger", name), "utf8");
      expect(text).not.toContain("decision=");
      JSON.parse(text);
    }
  });
});

for (const version of LUAS) {
  test(`where the executable cannot start, the filter lets the job in, Lua ${version}`, async () => {
    const submit = { argv: [SCRIPT], set: { gres: "gpu:a10g:1" } };
    const lines = [
      ...["-v 300000", "-d 20000", "-n 4", "-s 32"].map((limit) => `ulimit ${limit}; exec`),
      ...(process.getuid?.() === 0 ? ['exec unshare -m sh -c \'umount -l /proc; exec "$0" "$@"\''] : []),
    ];
    for (const line of lines) {
      const gate = scratch.put(`limited-${version}`, `#!/bin/bash\n${line} ${BINARY} "$@"\n`);
      Bun.spawnSync(["chmod", "755", gate]);
      const { out, exit } = await filtered(version, scratch, { ...submit, settings: { binary: gate } });
      expect(exit).toBe(0);
      // Judged, or said in one line not to be.
      expect({ line, out }).toEqual({
        line,
        out: expect.stringMatching(
          /^log info Neurarch: .*(?:Submitted unchecked\.|Submitted anyway\.|fail open\).*)\nreturn 0\n$/,
        ),
      });
    }
  });
}
