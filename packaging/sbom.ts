import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { Library, RuntimePart } from "./parts.ts";
import type { Release } from "./release.ts";
import { sha256Of } from "./shell.ts";
import { BUN_VERSION, type Target } from "./targets.ts";

const SPDX_OPERATOR = / (?:AND|OR|WITH) /;

/** A licence as CycloneDX has it: an expression, an SPDX id, or a name of our own. */
function licencesOf(licence: string) {
  if (licence.includes("licences")) return [{ license: { name: licence } }];
  return SPDX_OPERATOR.test(licence) ? [{ expression: licence }] : [{ license: { id: licence } }];
}

/** `sha512-BASE64` as CycloneDX has it. */
function hashOf(integrity: string) {
  const [kind, base64] = integrity.split(/-(.*)/s) as [string, string];
  return { alg: kind.replace("sha", "SHA-"), content: Buffer.from(base64, "base64").toString("hex") };
}

const npmUrl = (name: string, version: string) => `pkg:npm/${name.replace("@", "%40")}@${version}`;

/**
 * The bill of materials of a release in CycloneDX 1.6 JSON: the executables with their hashes, the packages whose code
 * is bundled, each target's runtime, and what that runtime links. The same release has the same text.
 */
export function sbomText(
  release: Release,
  built: readonly { readonly target: Target; readonly path: string }[],
  libraries: readonly Library[],
  parts: readonly RuntimePart[],
): string {
  const ref = `neurarch-gate@${release.version}`;
  const libraryRows = libraries.map(({ name, version, licence, integrity }) => ({
    type: "library",
    "bom-ref": npmUrl(name, version),
    name,
    version,
    purl: npmUrl(name, version),
    licenses: licencesOf(licence),
    hashes: [hashOf(integrity)],
  }));
  const runtimeRows = built.map(({ target: { runtime } }) => ({
    type: "platform",
    "bom-ref": npmUrl(runtime.package, BUN_VERSION),
    name: runtime.package,
    version: BUN_VERSION,
    purl: npmUrl(runtime.package, BUN_VERSION),
    licenses: licencesOf("MIT"),
    hashes: [hashOf(runtime.integrity)],
  }));
  const partRows = parts.map(({ name, version, licence, home }) => ({
    type: "library",
    "bom-ref": `bun-part:${name}`,
    name,
    ...(version === null ? {} : { version }),
    licenses: licencesOf(licence),
    externalReferences: [{ type: "website", url: home }],
  }));
  const files = built.map(({ target, path }) => ({
    type: "file",
    "bom-ref": basename(path),
    name: basename(path),
    version: release.version,
    hashes: [{ alg: "SHA-256", content: sha256Of(path) }],
    properties: [{ name: "neurarch-gate:target", value: target.name }],
  }));
  const refs = (rows: readonly { "bom-ref": string }[]) => rows.map((row) => row["bom-ref"]);
  const body = {
    version: 1,
    metadata: {
      timestamp: new Date(release.epoch * 1000).toISOString().replace(".000", ""),
      component: {
        type: "application",
        "bom-ref": ref,
        name: "neurarch-gate",
        version: release.version,
        licenses: licencesOf("MIT"),
        properties: [{ name: "neurarch-gate:commit", value: release.commit }],
        components: files,
      },
    },
    components: [...libraryRows, ...runtimeRows, ...partRows],
    dependencies: [
      { ref, dependsOn: [...refs(libraryRows), ...refs(runtimeRows)] },
      ...runtimeRows.map((row) => ({ ref: row["bom-ref"], dependsOn: refs(partRows) })),
    ],
  };
  const serialNumber = `urn:uuid:${uuidOf(JSON.stringify(body))}`;
  return `${JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.6", serialNumber, ...body }, null, 2)}\n`;
}

/** A UUID made of a text (version 8 of RFC 9562), so that the same release has the same one. */
function uuidOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16);
  const digits = `${hex.slice(0, 12)}8${hex.slice(13, 16)}${variant}${hex.slice(17, 32)}`;
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
