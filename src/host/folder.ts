import { mkdirSync } from "node:fs";

/** Makes a folder for our eyes only (0700), and those above it; one that is there is left as it is. Null, or why not. */
export function makePrivateFolder(path: string): string | null {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    return null;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}
