import { join, resolve } from "../host/paths.ts";

interface Home {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Names that can only be paths: a config's own name, or one that starts as a path does. */
export function isCertainlyPath(model: string): boolean {
  return /^(\/|\.\.?(\/|$)|~(\/|$))/.test(model) || model.endsWith(".json");
}

/** The path that a name stands for; null for none (a name that no file has, `~` without a home). */
export function pathOf(model: string, host: Home): string | null {
  if (model.includes("\0")) return null;
  if (model !== "~" && !model.startsWith("~/")) return resolve(host.cwd, model);
  const home = host.env.HOME;
  return home === undefined || home === "" ? null : join(home, model.slice(1));
}

/** `org/name` or `name` as the hub allows them; a page's address is taken for the id in it. */
export function hubId(model: string): string | null {
  const id = model
    .replace(/^(https?:\/\/)?(www\.)?(huggingface\.co|hf\.co)\//, "")
    .replace(/\/(tree|blob|resolve)\/.*$|\/$/, "");
  const part = "[A-Za-z0-9][A-Za-z0-9._-]*";
  return new RegExp(`^${part}(/${part})?$`).test(id) && id.length <= 200 ? id : null;
}
