// Put in by the build (`--define`); the source tree itself runs as "dev".
declare const BUILD_VERSION: string | undefined;
declare const BUILD_COMMIT: string | undefined;
declare const BUILD_TARGET: string | undefined;

/** `0.1.0`, or `dev` when run from source. */
export function version(): string {
  return typeof BUILD_VERSION === "string" ? BUILD_VERSION : "dev";
}

/** `neurarch-gate 0.1.0 (1a2b3c4, linux-x64)`. */
export function versionLine(): string {
  const commit = typeof BUILD_COMMIT === "string" ? BUILD_COMMIT : "source";
  const target = typeof BUILD_TARGET === "string" ? BUILD_TARGET : "bun";
  return `neurarch-gate ${version()} (${commit}, ${target})`;
}
