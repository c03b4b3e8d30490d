import { MAX_ARTIFACT_BYTES, markerWord } from "../markers.ts";
import { quoteWord } from "../shell-words.ts";
import type { Declared } from "../types.ts";
import { folderExpressions, globExpression } from "./globs.ts";
import { type ArtifactRoot, attemptFolder, cleanLines } from "./root.ts";

/** Characters of base64 in a line: a whole number of groups, and short enough for SkyPilot to hand out as a line. */
export const BASE64_LINE = 7600;
/** Links and files beyond a limit that are named; what is more is counted. */
const MOST_NAMED = 50;

export interface CollectOptions {
  readonly declared: Declared;
  readonly nonce: string;
  /** Names this attempt's folder under the root. */
  readonly folder: string;
  readonly root: ArtifactRoot | null;
}

/** Files of ours in a job's folder, which no pattern returns. */
const OWN = ["./.ready", "./.skyignore", "./.neurarch-environment"];

/**
 * Shell lines before the program: what matches already. A job's folder is that of the evaluation before, and what that
 * one wrote is no result of this one; times alone would not tell, since clocks and disks differ.
 */
export function beforeLines({ declared }: CollectOptions): readonly string[] {
  const patterns = declared.globs.map(
    (glob) => `-e ${quoteWord(`^[0-9]+ [0-9]+ [0-9.]+ [0-9.]+ [.]/${globExpression(glob)}$`)}`,
  );
  const own = OWN.map((path) => `! -path ${path}`).join(" ");
  return [
    `matching() {`,
    `  LC_ALL=C find . -type f ${own} -printf '%i %s %C@ %T@ %p\\n' 2>/dev/null | LC_ALL=C grep -E ${patterns.join(" ")} | LC_ALL=C sort`,
    `}`,
    `kept=$(mktemp -d "\${TMPDIR:-/tmp}/neurarch-files-XXXXXXXX" 2>/dev/null)`,
    `if [ -n "$kept" ]; then matching >"$kept/before"; fi`,
  ];
}

/**
 * Shell lines after the program: between two markers a line for each file that it wrote and that matches. In path order
 * and as far as the limits go, a file comes in the log itself (`i`) while all of those together are at most as large as
 * an artifact in-band, else it is copied below the persistent folder (`r`) to be fetched; `l` names what is left, and
 * why. Paths are in base64, since a name may hold anything.
 */
export function afterLines({ declared, nonce, folder, root }: CollectOptions): readonly string[] {
  const { globs, maxFiles, maxBytes } = declared;
  const links = globs.flatMap((glob) =>
    [globExpression(glob), ...folderExpressions(glob)].map((one) => `-e ${quoteWord(`^[.]/${one}$`)}`),
  );
  const say = (kind: "files-begin" | "files-end") => `printf '\\n%s\\n' ${markerWord(kind, nonce)}`;
  const store =
    root === null
      ? [`    left no-root "$name"`]
      : [
          `    store=${attemptFolder(folder)}`,
          `    if (umask 077; mkdir -p -- "$store") 2>/dev/null && cp -- "./$path" "$store/$stored" 2>/dev/null; then`,
          `      size=$(wc -c <"$store/$stored" | tr -d ' ')`,
          `      printf 'r %s %s %s %s\\n' "$stored" "$size" "$(digest <"$store/$stored")" "$name"`,
          `      stored=$((stored + 1)) count=$((count + 1)) all=$((all + size))`,
          `    else`,
          `      rm -f -- "$store/$stored"`,
          `      left not-stored "$name"`,
          `    fi`,
        ];
  return [
    `digest() { sha256sum | cut -d ' ' -f 1; }`,
    `left() {`,
    `  named=$((named + 1))`,
    `  if [ "$named" -le ${MOST_NAMED} ]; then printf 'l %s %s\\n' "$1" "$2"; fi`,
    `}`,
    say("files-begin"),
    `if [ -z "$kept" ] || ! find . -maxdepth 0 -printf '' 2>/dev/null || ! command -v sha256sum >/dev/null || ! command -v base64 >/dev/null; then`,
    `  echo 'x no-tools'`,
    `else`,
    `  {`,
    `    LC_ALL=C find . -type l -print 2>/dev/null | LC_ALL=C grep -E ${links.join(" ")}`,
    `    matching | LC_ALL=C comm -13 "$kept/before" - | cut -d ' ' -f 5-`,
    `  } | LC_ALL=C sort | {`,
    `  count=0 all=0 sent=0 stored=0 named=0`,
    `  while IFS= read -r path; do`,
    `    path=\${path#./}`,
    `    name=$(printf '%s' "$path" | base64 | tr -d '\\n')`,
    `    if [ -h "./$path" ]; then left link "$name"; continue; fi`,
    `    if ! [ -f "./$path" ] || ! [ -r "./$path" ]; then left unreadable "$name"; continue; fi`,
    `    size=$(wc -c <"./$path" | tr -d ' ')`,
    `    if [ "$count" -ge ${maxFiles} ]; then left count "$name"; continue; fi`,
    `    if [ "$((all + size))" -gt ${maxBytes} ]; then left bytes "$name"; continue; fi`,
    `    if [ "$((sent + size))" -le ${MAX_ARTIFACT_BYTES} ]; then`,
    `      printf 'i %s %s %s\\n' "$size" "$(digest <"./$path")" "$name"`,
    `      base64 <"./$path" | tr -d '\\n' | LC_ALL=C fold -w ${BASE64_LINE}`,
    `      echo`,
    `      count=$((count + 1)) all=$((all + size)) sent=$((sent + size))`,
    `      continue`,
    `    fi`,
    ...store,
    `  done`,
    `  if [ "$named" -gt ${MOST_NAMED} ]; then printf 'm %s\\n' "$((named - ${MOST_NAMED}))"; fi`,
    `  }`,
    `fi`,
    say("files-end"),
    `if [ -n "$kept" ]; then rm -rf -- "$kept"; fi`,
    ...(root === null ? [] : cleanLines(root.days)),
  ];
}
