import { bootId } from "../host/copy.ts";
import { diskFault } from "../host/disk-fault.ts";
import { namesIn, privateFolder, removeFile } from "../host/durable.ts";
import { isThere, moveTo, putText, removeTree, textOf } from "../host/snapshot-files.ts";
import { openTree, realPath, UnreadableError } from "../host/tree.ts";
import { GateError } from "../lib/errors.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import { buildSnapshot, digestOf, type Former, isSame, OWN_NAMES } from "./staging-build.ts";
import { type Manifest, readManifest } from "./staging-manifest.ts";
import { type StagingRules, scanWorkspace } from "./staging-scan.ts";
import type { BridgeProblem, ExtraFile, Snapshot, Staging } from "./types.ts";

/** Which snapshot an invocation has. */
interface Claim {
  readonly name: string;
  readonly leftOut: Snapshot["leftOut"];
}

/**
 * Opens the snapshots in a folder of our own (made 0700), and throws away what a killed daemon left half-made. Only
 * one daemon may have the folder open: the journal's lock sees to that. Throws a GateError when it cannot be used.
 */
export async function openStaging(folder: string, rules: StagingRules): Promise<Staging> {
  privateFolder(folder);
  privateFolder(`${folder}/ids`);
  let workspace: string;
  try {
    workspace = realPath(rules.workspace);
  } catch (error) {
    throw diskFault(error, "read the workspace", rules.workspace);
  }
  // Our own folder may lie in the workspace, also by another name.
  const hide = [...rules.hide, folder, realPath(folder), ...OWN_NAMES];
  const store = new Snapshots(folder, { ...rules, workspace, hide });
  await store.tidy();
  return store;
}

class Snapshots implements Staging {
  readonly #folder: string;
  readonly #rules: StagingRules;
  readonly #boot = bootId();
  #former: (Former & { readonly name: string }) | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(folder: string, rules: StagingRules) {
    this.#folder = folder;
    this.#rules = rules;
  }

  /** Removes what is no finished snapshot, and takes up the newest of this start of the machine. */
  async tidy(): Promise<void> {
    const manifests: { name: string; manifest: Manifest }[] = [];
    const names = namesIn(this.#folder);
    for (const name of names) {
      const path = `${this.#folder}/${name}`;
      if (name === "ids") continue;
      if (name.endsWith(".json")) {
        if (!isThere(`${path.slice(0, -".json".length)}/.ready`)) removeFile(path);
      } else if (name.startsWith(".") || !isThere(`${path}/.ready`) || !names.includes(`${name}.json`)) {
        await removeTree(path);
        removeFile(path);
        removeFile(`${path}.json`);
      } else {
        const manifest = readManifest(textOf(`${path}.json`));
        if (manifest !== null) manifests.push({ name, manifest });
      }
    }
    manifests.sort((a, b) => b.manifest.madeMs - a.manifest.madeMs);
    const newest = manifests.find(({ manifest }) => manifest.boot === this.#boot);
    if (newest !== undefined) this.#former = { ...newest, path: `${this.#folder}/${newest.name}` };
  }

  snapshot(invocationId: string, extra: readonly ExtraFile[] = []): Promise<Result<Snapshot, BridgeProblem>> {
    return this.#inTurn(async () => {
      try {
        return (await this.#finished(invocationId, extra)) ?? (await this.#make(invocationId, extra));
      } catch (error) {
        if (error instanceof UnreadableError) return fail(this.#unreadable(error));
        const fault = diskFault(error, "stage into", this.#folder);
        const hint = fault.hint === null ? "" : `. ${fault.hint}`;
        return fail({ error: "OSError", message: shown(`${fault.message}${hint}`, 480) });
      }
    });
  }

  prune(keep: ReadonlySet<string>): Promise<void> {
    return this.#inTurn(async () => {
      const used = new Set<string>();
      if (this.#former !== null) used.add(this.#former.name);
      for (const id of namesIn(`${this.#folder}/ids`)) {
        const claim = keep.has(id) ? this.#claim(id) : null;
        if (claim === null) removeFile(`${this.#folder}/ids/${id}`);
        else used.add(claim.name);
      }
      const trash: string[] = [];
      for (const name of namesIn(this.#folder)) {
        if (name === "ids" || name.startsWith(".") || name.endsWith(".json") || used.has(name)) continue;
        // Gone at once for us; its thousands of files go in another thread.
        const away = `${this.#folder}/.trash-${name}`;
        removeFile(`${this.#folder}/${name}.json`);
        moveTo(`${this.#folder}/${name}`, away);
        trash.push(away);
      }
      for (const away of trash) await removeTree(away);
    });
  }

  #unreadable({ path, code }: UnreadableError): BridgeProblem {
    const why = code === "EACCES" || code === "EPERM" ? "the daemon's user may not" : code;
    const message =
      path === ""
        ? `the workspace ${this.#rules.workspace} cannot be read: ${code === "ENOENT" ? "it is gone" : why}`
        : `workspace has something that cannot be read (${why}): ${shown(path, 300)}; make it readable, or leave it out with --hide`;
    return { error: "ValueError", message: shown(message, 480) };
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work, work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** The snapshot that the invocation has; null where it has none, or where a power cut took some of it. */
  async #finished(
    invocationId: string,
    extra: readonly ExtraFile[],
  ): Promise<Result<Snapshot, BridgeProblem> | null> {
    const claim = this.#claim(invocationId);
    if (claim === null) return null;
    const path = `${this.#folder}/${claim.name}`;
    const known = this.#former?.name === claim.name ? this.#former.manifest : null;
    const manifest = known ?? readManifest(textOf(`${path}.json`));
    if (manifest === null || !isThere(`${path}/.ready`)) return null;
    if (manifest.boot !== this.#boot && (await digestOf(path, manifest)) !== manifest.sha256) return null;
    return ok(this.#claimed(invocationId, claim.name, manifest, claim.leftOut, extra));
  }

  async #make(invocationId: string, extra: readonly ExtraFile[]): Promise<Result<Snapshot, BridgeProblem>> {
    const tree = openTree(this.#rules.workspace);
    try {
      const hide = [...this.#rules.hide, ...extra.map(({ name }) => name)];
      const scan = await scanWorkspace(tree, { ...this.#rules, hide });
      if (!scan.ok) return fail({ error: "ValueError", message: scan.error });
      const former = this.#former;
      if (former !== null && isSame(scan.value, former.manifest))
        return ok(this.#claimed(invocationId, former.name, former.manifest, scan.value.leftOut, extra));
      const temporary = `${this.#folder}/.staging-${crypto.randomUUID()}`;
      try {
        const built = await buildSnapshot(tree, scan.value, temporary, former);
        if (!built.ok) return fail({ error: "ValueError", message: built.error });
        const name = `${built.value.sha256.slice(0, 16)}-${crypto.randomUUID().slice(0, 8)}`;
        putText(`${this.#folder}/${name}.json`, JSON.stringify(built.value), 0o600);
        moveTo(temporary, `${this.#folder}/${name}`);
        this.#former = { name, path: `${this.#folder}/${name}`, manifest: built.value };
        return ok(this.#claimed(invocationId, name, built.value, scan.value.leftOut, extra));
      } finally {
        if (isThere(temporary)) await removeTree(temporary);
      }
    } finally {
      tree.close();
    }
  }

  /** Puts the extra files in place, and notes that the invocation has this snapshot. */
  #claimed(
    invocationId: string,
    name: string,
    manifest: Manifest,
    leftOut: Snapshot["leftOut"],
    extra: readonly ExtraFile[],
  ): Snapshot {
    const path = `${this.#folder}/${name}`;
    const wanted = new Set([
      ...manifest.entries.map((entry) => entry.path),
      ...extra.map((file) => file.name),
    ]);
    for (const old of namesIn(path)) if (!wanted.has(old)) removeFile(`${path}/${old}`);
    for (const file of extra) {
      if (!/^[A-Za-z0-9._-]+$/.test(file.name) || OWN_NAMES.includes(file.name) || /^\.+$/.test(file.name))
        throw new GateError("internal", `No file can be added to a snapshot as ${shown(file.name)}`);
      putText(`${path}/${file.name}`, file.text, file.mode);
    }
    const claim: Claim = { name, leftOut };
    putText(`${this.#folder}/ids/${invocationId}`, JSON.stringify(claim), 0o600);
    const all = [...leftOut, ...manifest.leftByContent.map(({ path, reason }) => ({ path, reason }))];
    const { sha256, files, bytes } = manifest;
    return { path, sha256, files, bytes, leftOut: all };
  }

  #claim(invocationId: string): Claim | null {
    if (!/^[0-9a-f]{32}$/.test(invocationId)) return null;
    try {
      const claim = JSON.parse(textOf(`${this.#folder}/ids/${invocationId}`) ?? "null") as Claim | null;
      return typeof claim?.name === "string" && /^[0-9a-f]{16}-[0-9a-f]{8}$/.test(claim.name) ? claim : null;
    } catch {
      return null;
    }
  }
}
