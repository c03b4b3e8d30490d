import { writeFileSync } from "node:fs";

/** Writes a file that the user named, over what was there. Returns why it could not be written, or null. */
export function writeText(path: string, text: string): string | null {
  try {
    writeFileSync(path, text);
    return null;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}
