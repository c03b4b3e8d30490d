/** What `ssh -G HOST` says that matters here. */
export interface SshSettings {
  readonly host: string;
  /** Certificates that ssh may show: those that are named, and those beside the identities. */
  readonly certificates: readonly string[];
}

/** Reads `ssh -G` (one `key value` a line, ssh_config(5)); `~` is `home`. */
export function sshSettings(text: string, home: string): SshSettings {
  const valuesOf = (key: string) =>
    text
      .split("\n")
      .filter((line) => line.startsWith(`${key} `))
      .map((line) =>
        line
          .slice(key.length + 1)
          .trim()
          .replace(/^~\//, `${home}/`),
      );
  const beside = valuesOf("identityfile").map((path) => `${path}-cert.pub`);
  return {
    host: valuesOf("hostname")[0] ?? "",
    certificates: [...new Set([...valuesOf("certificatefile"), ...beside])].filter((path) => path !== "none"),
  };
}

/** When a certificate ends, by `ssh-keygen -L` (local time); `forever` where it does not, null where nothing is said. */
export function certificateEnd(text: string): number | "forever" | null {
  const valid = /^\s*Valid:\s*(.+)$/m.exec(text)?.[1]?.trim();
  if (valid === undefined) return null;
  if (valid === "forever") return "forever";
  const to = /\bto (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)/.exec(valid)?.[1] ?? /^before (\S+)/.exec(valid)?.[1];
  if (to === undefined) return /^after /.test(valid) ? "forever" : null;
  const ms = new Date(to).getTime();
  return Number.isNaN(ms) ? null : ms;
}
