import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Ajv from "ajv";
import addFormats from "ajv-formats";
import { readElf } from "../../packaging/elf.ts";
import { packagedFile } from "../../packaging/registry.ts";
import { releaseOfTree } from "../../packaging/release.ts";
import { run as shell } from "../../packaging/shell.ts";
import { ROOT } from "../acceptance/run.ts";

/**
 * A part of a release, built as `make dist` builds all of it: what a Debian login node is given, one target for another
 * libc, and the Python policy. `make dist-check` has the rest.
 */
const BASELINE = "linux-x64-baseline";
// It packs, unpacks and installs hundreds of megabytes, on a machine that may be busy.
setDefaultTimeout(300_000);
const { version } = releaseOfTree();
const KEPT = process.env.DIST_CACHE ?? join(ROOT, ".cache/dist");
const python = process.env.NEURARCH_TEST_SKY_PYTHON ?? "python3";
let work: string;
let out: string;
const at = (name: string) => join(out, name);
const executable = () => at(`neurarch-gate-${version}-${BASELINE}`);
const textOf = (path: string) => readFileSync(path, "utf8");

beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), "neurarch-dist-"));
  out = join(work, "release");
  const words = ["--targets", `${BASELINE},linux-x64-musl`, "--packages", "deb,python", "--out", out];
  shell(["node_modules/.bin/bun", "packaging/dist.ts", ...words]);
}, 600_000);
afterAll(() => rmSync(work, { recursive: true, force: true }));

describe("the files of a release", () => {
  test("each is listed with its digest, and none is left out", () => {
    const names = readdirSync(out).filter((name) => name !== "SHA256SUMS");
    const listed = textOf(at("SHA256SUMS")).trim().split("\n");
    expect(listed.map((line) => line.split("  ")[1]!)).toEqual(names.sort());
    for (const line of listed) {
      const [digest, name] = line.split("  ") as [string, string];
      expect(
        createHash("sha256")
          .update(readFileSync(at(name)))
          .digest("hex"),
      ).toBe(digest);
    }
    expect(names.sort()).toEqual(
      [
        `neurarch-gate-${version}-licences.txt`,
        `neurarch-gate-${version}-${BASELINE}`,
        `neurarch-gate-${version}-linux-x64-musl`,
        `neurarch-gate-${version}.cdx.json`,
        `neurarch-gate_${version}_amd64.deb`,
        `neurarch_gate-${version}-py3-none-any.whl`,
        `neurarch_gate-${version}.tar.gz`,
      ].sort(),
    );
  });
  test("the executable says its version, commit and target, and judges", () => {
    const { commit } = releaseOfTree();
    expect(shell([executable(), "--version"])).toBe(`neurarch-gate ${version} (${commit}, ${BASELINE})\n`);
    const judged = shell([
      executable(),
      "judge",
      "--model",
      "Qwen/Qwen3-0.6B",
      "--batch",
      "1",
      "--request",
      "H100:1",
    ]);
    expect(judged).toMatch(/^Warning: Qwen\/Qwen3-0\.6B on H100:1\n {2}needs {5}19\.3 GB /);
  });
  test("by hand, with the lines of docs/install.md: an old one is put aside, and comes back with those of going back", () => {
    const page = textOf(join(ROOT, "docs/install.md"));
    const bin = join(work, "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "neurarch-gate"), "#!/bin/sh\necho old\n", { mode: 0o755 });
    const linesOf = (heading: string, keep: RegExp) => {
      const block = new RegExp(`## ${heading}[\\s\\S]*?\`\`\`sh\\n([\\s\\S]*?)\`\`\``).exec(page)![1]!;
      const lines = block.split("\n").filter((line) => keep.test(line));
      return lines.join("\n").replaceAll("/usr/local/bin", bin).replaceAll("VERSION", version);
    };
    const does = (lines: string) => shell(["sh", "-euc", lines], { cwd: out, env: { HOME: work } });
    const says = () => shell([join(bin, "neurarch-gate"), "--version"]);
    does(linesOf("By hand", /./));
    expect(says()).toContain(`neurarch-gate ${version} (`);
    does(linesOf("Going back", /^mv /));
    expect(says()).toBe("old\n");
    expect(readdirSync(bin)).toEqual(["neurarch-gate"]);
  });
  test("the musl one is linked to musl", () => {
    const elf = readElf(at(`neurarch-gate-${version}-linux-x64-musl`))!;
    expect([elf.interpreter, ...elf.needed].join(" ")).toMatch(
      /^\/lib\/ld-musl-x86_64\.so\.1 libstdc\+\+\.so\.6 libc\.musl/,
    );
  });
  test("licences: our own, every library's own text, and the runtime's parts", () => {
    const text = textOf(at(`neurarch-gate-${version}-licences.txt`));
    for (const words of ["The neurarch-gate authors", "JavaScriptCore (WebKit)", "LGPL", "BoringSSL"])
      expect(text).toContain(words);
    for (const name of ["citty/LICENSE", "smol-toml/LICENSE", "valibot/LICENSE.md", "yaml/LICENSE"])
      expect(text).toContain(textOf(join(ROOT, "node_modules", name)).trim());
  });
  test("the bill of materials is valid CycloneDX 1.6 and names what is inside, with digests", () => {
    const library = ["@cyclonedx/cyclonedx-library", "10.3.0"] as const;
    const integrity =
      "sha512-RIT28sp1U0PCHaaeF3yNRwk6Jig/XJ8UsYAVOMYaHQ+0VVOvsjcp0PTWQFLUqJFF8XMud+Kdq6G+wtDAh+QJFA==";
    const schemaOf = (name: string) =>
      JSON.parse(textOf(packagedFile(...library, integrity, `res/schema/${name}.SNAPSHOT.schema.json`)));
    const ajv = new Ajv({ strict: false, validateFormats: true });
    addFormats(ajv);
    for (const format of ["iri-reference", "idn-email"]) ajv.addFormat(format, true);
    for (const name of ["spdx", "jsf-0.82", "cryptography-defs"])
      ajv.addSchema({ ...schemaOf(name), $id: `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json` });
    const validate = ajv.compile(schemaOf("bom-1.6"));
    const bom = JSON.parse(textOf(at(`neurarch-gate-${version}.cdx.json`)));
    validate(bom);
    expect(validate.errors).toBeNull();
    const names = bom.components.map(({ name }: { name: string }) => name);
    for (const name of ["citty", "smol-toml", "valibot", "yaml", `@oven/bun-${BASELINE}`])
      expect(names).toContain(name);
    const [file] = bom.metadata.component.components;
    expect(file.hashes[0].content).toBe(
      createHash("sha256").update(readFileSync(executable())).digest("hex"),
    );
    // The schema is not one that takes anything.
    expect(validate({ ...bom, components: [{ type: "library" }] })).toBe(false);
  });
  test("another folder, another time and another umask give the same executable, wheel and sdist", () => {
    // Below dist/, where the packages need not be copied: hard links do, and a link to their folder would change paths.
    const copy = join(ROOT, "dist/elsewhere/a folder");
    rmSync(join(ROOT, "dist/elsewhere"), { recursive: true, force: true });
    mkdirSync(copy, { recursive: true });
    try {
      for (const name of [".git", ".ci", "src", "lua", "python-shim", "packaging", "examples", "docs"])
        cpSync(join(ROOT, name), join(copy, name), { recursive: true });
      for (const name of [
        "Makefile",
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        "LICENSE",
        "README.md",
        "bunfig.toml",
      ])
        cpSync(join(ROOT, name), join(copy, name));
      shell(["cp", "-al", join(ROOT, "node_modules"), copy]);
      const again = join(work, "again");
      const words = ["--targets", BASELINE, "--packages", "python", "--out", again];
      const { epoch, commit } = releaseOfTree();
      shell(
        [
          "sh",
          "-c",
          'umask 077 && TZ=Pacific/Auckland exec node_modules/.bin/bun packaging/dist.ts "$@"',
          "sh",
          ...words,
        ],
        {
          cwd: copy,
          env: { SOURCE_DATE_EPOCH: String(epoch), DIST_COMMIT: commit, DIST_CACHE: KEPT },
        },
      );
      const sumsOf = (folder: string) => textOf(join(folder, "SHA256SUMS")).trim().split("\n");
      const [first, second] = [sumsOf(out), sumsOf(again)];
      const same = second.filter((line) => /baseline|\.whl|\.tar\.gz|licences/.test(line));
      expect(same.length).toBe(4);
      for (const line of same) expect(first).toContain(line);
    } finally {
      rmSync(join(ROOT, "dist/elsewhere"), { recursive: true, force: true });
    }
  }, 300_000);
});

describe("the Debian package", () => {
  const CONFIG = "etc/neurarch/gate.toml";
  let root: string;
  const dpkg = (...words: string[]) =>
    shell(
      ["dpkg", `--root=${root}`, "--force-script-chrootless,not-root,depends", "--log=/dev/null", ...words],
      {
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      },
    );
  const state = () => {
    const status = textOf(join(root, "var/lib/dpkg/status"));
    return /^Status: (.*)$/m.exec(status)?.[1] ?? "not known";
  };
  beforeAll(() => {
    root = join(work, "root");
    for (const name of ["updates", "info", "triggers"])
      mkdirSync(join(root, "var/lib/dpkg", name), { recursive: true });
    for (const name of ["status", "available"]) writeFileSync(join(root, "var/lib/dpkg", name), "");
  });

  /** The same package as a later version, with another default in its site file. */
  function later(): string {
    const folder = join(work, "later");
    shell(["dpkg-deb", "-R", at(`neurarch-gate_${version}_amd64.deb`), folder]);
    const control = join(folder, "DEBIAN/control");
    writeFileSync(control, textOf(control).replace(/^Version: .*$/m, "Version: 99.0.0"));
    appendFileSync(join(folder, CONFIG), "# a new key\n");
    const path = join(work, "neurarch-gate_99.0.0_amd64.deb");
    shell(["dpkg-deb", "--root-owner-group", "-Znone", "-b", folder, path]);
    return path;
  }

  test("it installs: executable, filter, man page, completions, units, site file; all of root's, none stripped", () => {
    dpkg("-i", at(`neurarch-gate_${version}_amd64.deb`));
    expect(state()).toBe("install ok installed");
    const installed = join(root, "usr/bin/neurarch-gate");
    expect(readFileSync(installed).equals(readFileSync(executable()))).toBe(true);
    expect(statSync(installed).mode & 0o7777).toBe(0o755);
    expect(statSync(join(root, CONFIG)).mode & 0o7777).toBe(0o644);
    expect(textOf(join(root, "usr/share/neurarch-gate/cli_filter.lua"))).toContain(
      'binary = "/usr/bin/neurarch-gate",',
    );
    shell(["sh", "-c", `gzip -dc ${root}/usr/share/man/man1/neurarch-gate.1.gz | mandoc -Tlint -Wwarning`]);
    shell(["bash", "-n", join(root, "usr/share/bash-completion/completions/neurarch-gate")]);
    shell(["zsh", "-n", join(root, "usr/share/zsh/vendor-completions/_neurarch-gate")]);
    shell(["fish", "-n", join(root, "usr/share/fish/vendor_completions.d/neurarch-gate.fish")]);
    const owners = shell(["dpkg-deb", "-c", at(`neurarch-gate_${version}_amd64.deb`)])
      .trim()
      .split("\n");
    for (const line of owners) expect(line).toMatch(/^[d-]rwxr-xr-x root\/root|^-rw-r--r-- root\/root/);
  });
  test("the units start the packaged executable with flags that it has; the bridge's is a template", () => {
    const service = textOf(join(root, "usr/lib/systemd/system/neurarch-gate.service"));
    expect(service).toContain("ExecStart=/usr/bin/neurarch-gate serve\n");
    const bridge = textOf(join(root, "usr/lib/systemd/user/neurarch-bridge@.service"));
    expect(bridge).toContain("ExecStart=/usr/bin/neurarch-gate bridge --campaign=%E/neurarch/%i.toml\n");
    expect(bridge).toContain("Environment=PATH=%h/.local/bin:/usr/local/bin:/usr/bin:/bin\n");
    expect(service + bridge).not.toMatch(/CAMPAIGN-NAME|HOME-FOLDER|CONFIG-FOLDER/);
  });
  test("the site file as installed sets nothing, and each of its lines is one that can be set", () => {
    const path = join(root, CONFIG);
    const cards = (...words: string[]) => shell([executable(), "cards", "--json", ...words]);
    expect(cards("--config", path)).toBe(cards());
    const whole = join(work, "whole.toml");
    writeFileSync(whole, textOf(path).replace(/^# ((?:\[\w+\]|\w+ = ).*)$/gm, "$1"));
    expect(textOf(whole)).toMatch(/^mode = "warn"/m);
    expect(cards("--config", whole)).not.toBe(cards());
  });
  test("an upgrade keeps a site file that was edited and takes a new one where it was not", () => {
    const next = later();
    dpkg("-i", next);
    expect(textOf(join(root, CONFIG))).toEndWith("# a new key\n");
    // Back, as a rollback does it; then edited, and forth again.
    dpkg("-i", at(`neurarch-gate_${version}_amd64.deb`));
    expect(textOf(join(root, CONFIG))).not.toContain("# a new key");
    writeFileSync(join(root, CONFIG), 'mode = "reject"\n');
    dpkg("--force-confdef,confold", "-i", next);
    expect(textOf(join(root, CONFIG))).toBe('mode = "reject"\n');
    expect(textOf(join(root, "var/lib/dpkg/status"))).toContain("Version: 99.0.0\n");
  });
  test("removal leaves the site file, purge takes it and the server's cache", () => {
    mkdirSync(join(root, "var/cache/private/neurarch"), { recursive: true });
    dpkg("-r", "neurarch-gate");
    expect(state()).toBe("deinstall ok config-files");
    expect(existsSync(join(root, "usr/bin/neurarch-gate"))).toBe(false);
    expect(existsSync(join(root, "usr/share/doc/neurarch-gate"))).toBe(false);
    expect(textOf(join(root, CONFIG))).toBe('mode = "reject"\n');
    dpkg("-P", "neurarch-gate");
    expect(existsSync(join(root, "etc/neurarch"))).toBe(false);
    expect(existsSync(join(root, "var/cache/private/neurarch"))).toBe(false);
  });
});

describe("the Python policy", () => {
  /** Lines that tell which version is installed, and where the module is from. */
  const ASK =
    "import importlib.metadata as m, neurarch_gate; print(m.version('neurarch-gate'), neurarch_gate.__file__)";
  test.each(["whl", "tar.gz"])("its %s installs with no index to ask, and is of this version", (kind) => {
    const name = readdirSync(out).find((entry) => entry.startsWith("neurarch_gate") && entry.endsWith(kind))!;
    const target = join(work, `target-${kind}`);
    const builders = join(KEPT, "python/bin/python");
    const words = [
      "--no-index",
      "--no-deps",
      "--no-build-isolation",
      "--no-compile",
      "--target",
      target,
      at(name),
    ];
    shell([builders, "-m", "pip", "install", "-q", "--disable-pip-version-check", ...words], {
      env: { PIP_NO_INDEX: "1" },
    });
    const said = shell([python, "-c", ASK], {
      env: { PYTHONPATH: target, HOME: work, PYTHONDONTWRITEBYTECODE: "1" },
    });
    expect(said).toBe(`${version} ${target}/neurarch_gate/__init__.py\n`);
    expect(existsSync(join(target, "neurarch_gate/py.typed"))).toBe(true);
  });
});
