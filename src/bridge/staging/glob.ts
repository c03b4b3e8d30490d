/**
 * A glob over workspace paths: `*` and `?` stay inside one name, `**` goes over folders, and one without `/` is
 * matched against the name alone. Every other letter means itself.
 */
export function globMatcher(glob: string): (path: string) => boolean {
  const plain = glob.replace(/^(\.?\/)+/, "");
  let pattern = "";
  for (let at = 0; at < plain.length; at++) {
    const rest = plain.slice(at);
    if (rest.startsWith("**/")) {
      pattern += "(?:[^/]+/)*";
      at += 2;
    } else if (rest.startsWith("**")) {
      pattern += ".*";
      at += 1;
    } else if (rest[0] === "*") pattern += "[^/]*";
    else if (rest[0] === "?") pattern += "[^/]";
    else pattern += (rest[0] as string).replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  }
  const expression = new RegExp(`^${pattern}$`, "s");
  return plain.includes("/")
    ? (path) => expression.test(path)
    : (path) => expression.test(path.slice(path.lastIndexOf("/") + 1));
}
