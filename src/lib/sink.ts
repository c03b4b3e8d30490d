/** Where verdicts go: a folder, or a server that collects them. */
export type Sink =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "http"; readonly url: string }
  | { readonly kind: "invalid"; readonly why: string };

/** Whether a ledger's name is an address rather than a folder. Costs a submit nothing. */
export function isAddress(ledger: string): boolean {
  return ledger.startsWith("unix:") || /^https?:\/\//i.test(ledger);
}

/** Reads `/PATH`, `unix:/PATH` or `http(s)://HOST[:PORT][/PREFIX]`. Keys have no place in an address. */
export function sinkOf(ledger: string): Sink {
  if (!isAddress(ledger)) return { kind: "folder", path: ledger };
  if (ledger.startsWith("unix:")) {
    const path = ledger.slice("unix:".length);
    if (!path.startsWith("/")) return { kind: "invalid", why: "its socket is no whole path" };
    // `sun_path` of unix(7).
    if (new TextEncoder().encode(path).length > 107)
      return { kind: "invalid", why: "its socket's path is longer than 107 bytes" };
    return { kind: "unix", path };
  }
  if (!URL.canParse(ledger)) return { kind: "invalid", why: "it is no address" };
  const url = new URL(ledger);
  if (url.username !== "" || url.password !== "")
    return {
      kind: "invalid",
      why: "it holds a key, which everyone could read; `ledger_token_file` names a file for it",
    };
  if (url.search !== "" || url.hash !== "") return { kind: "invalid", why: "it has a query" };
  return { kind: "http", url: `${url.origin}${url.pathname.replace(/\/+$/, "")}` };
}

/** An address as it may be shown: without what can be a key. */
export function shownAddress(ledger: string): string {
  return ledger.replace(/\/\/[^/@]*@/, "//").replace(/[?#].*$/s, "");
}
