/** One `Key=value` of slurm.conf and where it stands. */
export interface ConfLine {
  readonly value: string;
  readonly file: string;
  /** 1-based. */
  readonly line: number;
}

/** Files that one slurm.conf may include, and how deep; more is a loop. */
const MAX_FILES = 50;

/**
 * The values of slurm.conf by key in small letters, in order, as `s_p_parse_file` in Slurm's `src/common/parse_config.c`
 * reads them: keys in any case, `#` begins a comment unless escaped, `\` at the end of a line continues it, and
 * `Include FILE` reads another file, from the folder of slurm.conf when it is no whole path. Of a key given twice the
 * last one holds. `read` gives a file's text, null when it cannot be read.
 */
export function readSlurmConf(
  path: string,
  read: (path: string) => string | null,
): ReadonlyMap<string, readonly ConfLine[]> {
  const values = new Map<string, ConfLine[]>();
  const folder = path.slice(0, path.lastIndexOf("/"));
  let files = 0;
  const visit = (file: string) => {
    const text = files++ < MAX_FILES ? read(file) : null;
    if (text === null) return;
    for (const { content, line } of contentLines(text)) {
      const include = /^include\s+(\S+)$/i.exec(content);
      if (include !== null) {
        visit(include[1]!.startsWith("/") ? include[1]! : `${folder}/${include[1]}`);
        continue;
      }
      // Lines of nodes and partitions hold several pairs; only the first key is asked for here.
      const pair = /^(\w+)\s*=\s*(?:"([^"]*)"|(\S+))/.exec(content);
      if (pair === null) continue;
      const key = pair[1]!.toLowerCase();
      const one = { value: pair[2] ?? pair[3] ?? "", file, line };
      // A large cluster has thousands of lines of one key.
      const known = values.get(key);
      if (known === undefined) values.set(key, [one]);
      else known.push(one);
    }
  };
  visit(path);
  return values;
}

function contentLines(text: string): { content: string; line: number }[] {
  const found: { content: string; line: number }[] = [];
  let carried = "";
  let first = 1;
  text.split("\n").forEach((raw, index) => {
    if (carried === "") first = index + 1;
    const bare = raw.replace(/\r$/, "").replace(/(^|[^\\])#.*$/, "$1");
    if (/\\\s*$/.test(bare)) {
      carried += bare.replace(/\\\s*$/, " ");
      return;
    }
    const content = (carried + bare).trim();
    carried = "";
    if (content !== "") found.push({ content, line: first });
  });
  return found;
}

/** The plugins of `CliFilterPlugins`, without the prefix: `cli_filter/lua,user_defaults` is `lua`, `user_defaults`. */
export function pluginNames(value: string): string[] {
  return value
    .split(",")
    .map((name) => name.trim().replace(/^cli_filter\//, ""))
    .filter((name) => name !== "" && name !== "(null)");
}
