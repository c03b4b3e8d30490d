import type { Declared, DeclaredFile, Frame } from "../bridge/types.ts";
import { decodeBase64 } from "../bridge/wire/base64.ts";
import type { ClientHost, IncomingFile } from "./client.ts";

/** The declared files that a client takes in, one after another. */
export class IncomingFiles {
  #coming: { readonly file: DeclaredFile; readonly into: IncomingFile; missing: number } | null = null;

  constructor(
    private readonly declared: { readonly asked: Declared; readonly folder: string },
    private readonly host: Pick<ClientHost, "beginFile">,
  ) {}

  /** Takes a frame that the reader let through. The sentence that says why a file cannot be taken, or null. */
  take(frame: Extract<Frame, { type: "file" | "file_data" | "files" }>): string | null {
    if (frame.type === "files") return null;
    if (frame.type === "file") {
      const { file } = frame;
      const begun = this.host.beginFile(this.declared.folder, file.path);
      if (!begun.ok) return `the file ${file.path} cannot be written: ${begun.error}.`;
      this.#coming = { file, into: begun.value, missing: file.size };
    } else if (this.#coming !== null) {
      const bytes = decodeBase64(frame.dataBase64) ?? new Uint8Array();
      const unwritten = this.#coming.into.write(bytes);
      if (unwritten !== null) return `the file ${this.#coming.file.path} cannot be written: ${unwritten}.`;
      this.#coming.missing -= bytes.length;
    }
    const coming = this.#coming;
    if (coming === null || coming.missing > 0) return null;
    const { path, size, sha256 } = coming.file;
    const problem = coming.into.end(size, sha256);
    if (problem !== null) return `the file ${path} cannot be written: ${problem}.`;
    this.#coming = null;
    return null;
  }

  /** Lets go of a file that did not come to its end. */
  drop(): void {
    this.#coming?.into.drop();
    this.#coming = null;
  }
}
