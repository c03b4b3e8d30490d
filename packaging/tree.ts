import {
  chmodSync,
  copyFileSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { bridgeUnit } from "../src/bridge/unit.ts";
import { systemdUnit } from "../src/serve/unit.ts";
import type { Release } from "./release.ts";
import { ROOT, run } from "./shell.ts";

/** Where a package puts the executable; the filter, the units and the man page of the package say so. */
export const INSTALLED = "/usr/bin/neurarch-gate";
const DOCS = "usr/share/doc/neurarch-gate";
/** The one file that an administrator edits. */
export const SITE_FILE = "etc/neurarch/gate.toml";
/** Where each shell looks for completions; zsh's place is the distribution's own choice. */
export const ZSH_COMPLETIONS = {
  deb: "usr/share/zsh/vendor-completions",
  rpm: "usr/share/zsh/site-functions",
};

/**
 * Lays out the files of a Debian or RPM package below `root`. Texts are printed by `printer`, an executable of the same
 * release that runs here; `executable` is the one that is packed.
 */
export function layOut(
  root: string,
  kind: "deb" | "rpm",
  from: { readonly executable: string; readonly printer: string; readonly licences: string },
  { epoch }: Release,
): void {
  rmSync(root, { recursive: true, force: true });
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const printed = (...words: string[]) => run([from.printer, ...words], { env: { HOME: "/nonexistent" } });
  mkdirSync(join(root, "usr/bin"), { recursive: true });
  copyFileSync(from.executable, join(root, INSTALLED));
  put(SITE_FILE, siteFile());
  put("usr/share/neurarch-gate/cli_filter.lua", printed("print-lua", "--binary", INSTALLED));
  put("usr/share/man/man1/neurarch-gate.1", printed("man"));
  run(["gzip", "-9n", join(root, "usr/share/man/man1/neurarch-gate.1")]);
  put("usr/share/bash-completion/completions/neurarch-gate", printed("completion", "bash"));
  put(`${ZSH_COMPLETIONS[kind]}/_neurarch-gate`, printed("completion", "zsh"));
  put("usr/share/fish/vendor_completions.d/neurarch-gate.fish", printed("completion", "fish"));
  put("usr/lib/systemd/system/neurarch-gate.service", systemdUnit(INSTALLED, []));
  put("usr/lib/systemd/user/neurarch-bridge@.service", bridgeTemplate());
  put(`${DOCS}/copyright`, readFileSync(from.licences, "utf8"));
  for (const name of ["README.md", "docs", "examples"])
    cpSync(join(ROOT, name), join(root, DOCS, name), { recursive: true });
  settle(root, epoch);
}

/** A unit that stands for every campaign: `systemctl --user start neurarch-bridge@NAME` reads NAME.toml. */
function bridgeTemplate(): string {
  const path = "HOME-FOLDER/.local/bin:/usr/local/bin:/usr/bin:/bin";
  const place = { runId: "CAMPAIGN-NAME", path, allow: [] };
  return bridgeUnit(INSTALLED, ["--campaign=CONFIG-FOLDER/neurarch/CAMPAIGN-NAME.toml"], place)
    .replaceAll("CAMPAIGN-NAME", "%i")
    .replaceAll("HOME-FOLDER", "%h")
    .replaceAll("CONFIG-FOLDER", "%E");
}

/** The site file as it is installed: every line of the example, none of them in force. */
function siteFile(): string {
  const example = readFileSync(join(ROOT, "examples/gate.toml"), "utf8");
  const lines = example.split("\n").filter((line) => !line.startsWith("#:schema"));
  return lines.map((line) => (line === "" || line.startsWith("#") ? line : `# ${line}`)).join("\n");
}

/** Modes and times that do not depend on who builds where. */
function settle(path: string, epoch: number): void {
  const info = lstatSync(path);
  if (info.isSymbolicLink()) return;
  if (info.isDirectory()) for (const name of readdirSync(path)) settle(join(path, name), epoch);
  const program = info.isDirectory() || /\/usr\/bin\/[^/]+$|\.sh$/.test(path);
  chmodSync(path, program ? 0o755 : 0o644);
  utimesSync(path, epoch, epoch);
}

/** Every file below `root`, as paths from `/`, sorted. */
export function filesOf(root: string): readonly string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .sort();
}
