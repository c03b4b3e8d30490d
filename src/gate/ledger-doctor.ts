import { accountUid, hostName, ownName } from "../host/append.ts";
import { userId } from "../host/env.ts";
import { entryInfo, freeBytes, listing, pathInfo } from "../host/fs.ts";
import { join } from "../host/paths.ts";
import { spoolFolder, waiting } from "../host/spool.ts";
import { shownAddress, sinkOf } from "../lib/sink.ts";
import { counted } from "../render/text.ts";
import { type Collector, post } from "./ledger-send.ts";

/** What stands in the way of a ledger, or that nothing does. */
export interface LedgerState {
  readonly problem: boolean;
  readonly message: string;
  readonly fix: string | null;
}

/** Room below which a disk counts as full: some hundred lines. */
const LEAST_BYTES = 262_144;
/** Milliseconds that a collector gets to answer a look at it. */
const PATIENCE_MS = 5000;

const good = (message: string): LedgerState => ({ problem: false, message, fix: null });
const bad = (message: string, fix: string): LedgerState => ({ problem: true, message, fix });

/** Looks at where verdicts go, as this user and on this host. `shared` = every user writes there. */
export async function ledgerState(collector: Collector, shared: boolean): Promise<readonly LedgerState[]> {
  const sink = sinkOf(collector.ledger);
  if (sink.kind === "invalid")
    return [
      bad(`the ledger ${shownAddress(collector.ledger)} is not used: ${sink.why}`, "Correct `ledger`."),
    ];
  if (sink.kind === "folder") return folderState(sink.path, shared, collector.env);
  return [await collectorState(collector), ...spoolState(collector)];
}

function folderState(path: string, shared: boolean, env: Collector["env"]): readonly LedgerState[] {
  const make = `install -d -m ${shared ? "1733" : "0700"} ${path}`;
  const info = pathInfo(path);
  if (info?.kind !== "directory")
    return [bad(`${path} is no folder on this host, so verdicts are not recorded`, make)];
  if ((info.mode & 0o022) !== 0 && (info.mode & 0o1000) === 0)
    return [bad(`${path} has no sticky bit, so nothing is recorded there`, `chmod +t ${path}`)];
  if (shared && (info.mode & 0o003) !== 0o003)
    return [bad(`users cannot write into ${path}, so verdicts are not recorded`, make)];
  const room = freeBytes(path);
  if (room?.readOnly === true)
    return [
      bad(
        `${path} lies on a file system that is read-only, so verdicts are not recorded`,
        "Mount it for writing.",
      ),
    ];
  if (room !== null && room.bytes < LEAST_BYTES)
    return [
      bad(
        `the disk of ${path} is full, so verdicts are not recorded`,
        `Make room, or: neurarch-gate ledger prune ${path}`,
      ),
    ];
  if (!mayWrite(info))
    return [bad(`${path} may not be written by this user, so verdicts are not recorded`, make)];
  const foreign = foreignFiles(path, env);
  return foreign.length === 0 ? [good(`verdicts are recorded in ${path}`)] : foreign;
}

function mayWrite(info: { uid: number; mode: number }): boolean {
  const uid = userId();
  return (
    uid === 0 ||
    (info.uid === uid
      ? (info.mode & 0o300) === 0o300
      : (info.mode & 0o003) === 0o003 || (info.mode & 0o030) === 0o030)
  );
}

/** Files in the place of a user's own that this user does not own, or that others may write: they are not written. */
function foreignFiles(folder: string, env: Collector["env"]): LedgerState[] {
  const host = hostName().replace(/[^A-Za-z0-9._-]/g, "_");
  const names = listing(folder);
  // A folder that only its owner lists: one's own name is all there is to look at.
  const files = names.ok ? names.value : [`${ownName(env)}@${host}.jsonl`];
  return files.flatMap((name) => {
    const user = name.endsWith(`@${host}.jsonl`) ? name.slice(0, -`@${host}.jsonl`.length) : null;
    const info = user === null ? null : entryInfo(join(folder, name));
    if (user === null || info === null) return [];
    const uid = /^uid\d+$/.test(user) ? Number(user.slice(3)) : accountUid(user);
    const path = join(folder, name);
    const why = !info.isFile
      ? "is no regular file"
      : uid !== null && info.uid !== uid
        ? `belongs to user ${info.uid}, not to ${user}`
        : info.links !== 1
          ? "has a second name"
          : (info.mode & 0o022) !== 0
            ? "can be written by others"
            : null;
    if (why === null) return [];
    return [
      bad(`${path} ${why}, so ${user}'s verdicts do not go there`, `Look at it, and remove it: rm ${path}`),
    ];
  });
}

async function collectorState(collector: Collector): Promise<LedgerState> {
  const address = shownAddress(collector.ledger);
  const why = await post([], collector, PATIENCE_MS);
  if (why === null) return good(`${address} takes verdicts`);
  return bad(
    `${address} does not take verdicts: ${why}; they wait on disk`,
    "Start `neurarch-gate serve --ledger FOLDER` there, and look at `ledger` and `ledger_token_file`.",
  );
}

function spoolState({ env }: Collector): LedgerState[] {
  const folder = spoolFolder(env);
  if (folder === null)
    return [
      bad("neither HOME nor XDG_STATE_HOME is set, so verdicts cannot wait for the collector", "Set HOME."),
    ];
  const files = waiting(folder).length;
  return files === 0
    ? []
    : [bad(`${counted(files, "file")} of verdicts wait in ${folder}`, "neurarch-gate ledger send")];
}
