/** What a path is, as far as a link's way goes through it: a link's target, or anything else. */
export type LinkAt = (absolutePath: string) => string | null;

/**
 * Where a link of the workspace leads: `inside` also when nothing stands there. The way is walked name by name, with
 * `targetAt` asked for each, so that a link through another link is followed to its end.
 */
export function linkLeads(
  workspace: string,
  linkPath: string,
  target: string,
  targetAt: LinkAt,
): "inside" | "outside" | "round" {
  const folder = linkPath.slice(0, Math.max(0, linkPath.lastIndexOf("/")));
  const rest = (target.startsWith("/") ? target : `${folder}/${target}`).split("/").reverse();
  let at: string[] = [];
  for (let links = 0; rest.length > 0; ) {
    const name = rest.pop() as string;
    if (name === "" || name === ".") continue;
    if (name === "..") {
      at.pop();
      continue;
    }
    const further = targetAt(`/${[...at, name].join("/")}`);
    if (further === null) {
      at.push(name);
      continue;
    }
    if (++links > MOST_LINKS) return "round";
    if (further.startsWith("/")) at = [];
    rest.push(...further.split("/").reverse());
  }
  const end = `/${at.join("/")}`;
  return end === workspace || end.startsWith(`${workspace}/`) ? "inside" : "outside";
}

/** As many as Linux follows. */
const MOST_LINKS = 40;
