import { quoteWord } from "../shell-words.ts";

/** The variable in which a job finds the profile's persistent folder. */
export const ROOT_VARIABLE = "VIBESYS_REMOTE_ARTIFACT_ROOT";
/** What of ours lies in that folder. */
const OWN_FOLDER = "neurarch-artifacts";

/** The persistent folder of a profile as it is written there, and how long files of ours stay in it. */
export interface ArtifactRoot {
  /** Absolute, with `$USER` and `$HOME` (also in braces) as they are on the cluster. */
  readonly written: string;
  readonly days: number;
}

/**
 * Shell lines that set `root`. Names are asked for on the cluster: the operator may have another one there than here,
 * and SkyPilot gives each allocation a home of its own.
 */
export function rootLines(written: string): readonly string[] {
  const pieces = written.split(/(\$\{\w*\}|\$\w+)/).map((piece) => {
    if (piece === "") return "";
    if (/^\$\{?USER\}?$/.test(piece)) return '"$owner"';
    if (/^\$\{?HOME\}?$/.test(piece)) return '"$owner_home"';
    return quoteWord(piece);
  });
  return [
    `owner=$(id -un)`,
    `owner_home=$(getent passwd "$owner" | cut -d: -f6)`,
    `[ -n "$owner_home" ] || owner_home=$HOME`,
    `root=${pieces.join("")}`,
  ];
}

/** Makes the folder where it is missing, and tells the job of it. */
export function makeRootLines(written: string): readonly string[] {
  return [...rootLines(written), `mkdir -p -- "$root" 2>/dev/null`, `export ${ROOT_VARIABLE}="$root"`];
}

/** The folder of one attempt's files, in terms of `root`. `name`: letters, digits, dashes. */
export function attemptFolder(name: string): string {
  return `"$root"/${OWN_FOLDER}/${name}`;
}

/** Removes what attempts left more than so many days ago, and nothing that has another name than theirs. */
export function cleanLines(days: number): readonly string[] {
  const minutes = days * 24 * 60;
  return [
    `find "$root"/${OWN_FOLDER} -mindepth 1 -maxdepth 1 -type d -name 'vibesys-inv-*' -mmin +${minutes} -exec rm -rf -- {} + 2>/dev/null`,
  ];
}
