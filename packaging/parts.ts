import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT, run } from "./shell.ts";

/** A package of package-lock.json whose code is in the executable. */
export type Library = {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  /** Subresource Integrity of its archive. */
  readonly integrity: string;
  /** The text of its licence file. */
  readonly text: string;
};

/** A library that Bun's own build has linked into its runtime. */
export type RuntimePart = {
  readonly name: string;
  /** A commit or a version, as the runtime says it of itself; null where it says none. */
  readonly version: string | null;
  /** An SPDX expression, or a name where the part has several licences. */
  readonly licence: string;
  readonly home: string;
};

/** The packages that the bundler took something from, by its own account of what it read. */
export function bundledLibraries(): readonly Library[] {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version: string; integrity: string; license: string }>;
  };
  return bundledNames().map((name) => {
    const folder = join(ROOT, "node_modules", name);
    const { version, integrity, license } = lock.packages[`node_modules/${name}`]!;
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) throw new Error(`${name} has no licence file`);
    return { name, version, integrity, licence: license, text: readFileSync(join(folder, file), "utf8") };
  });
}

function bundledNames(): readonly string[] {
  const work = mkdtempSync(join(tmpdir(), "neurarch-parts-"));
  try {
    const meta = join(work, "meta.json");
    const bun = join(ROOT, "node_modules/.bin/bun");
    const words = [
      "--target=bun",
      "--format=esm",
      "--splitting",
      `--metafile=${meta}`,
      `--outdir=${work}/out`,
    ];
    run([bun, "build", ...words, "src/main.ts"]);
    const { inputs } = JSON.parse(readFileSync(meta, "utf8")) as { inputs: Record<string, unknown> };
    const names = Object.keys(inputs).flatMap(
      (path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? [],
    );
    return [...new Set(names)].sort();
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/**
 * What Bun links statically, with its licence (Bun's LICENSE.md); `key` is its name in `process.versions` where the
 * runtime says which commit it has.
 */
const RUNTIME_PARTS: readonly (readonly [name: string, key: string | null, licence: string, home: string])[] =
  [
    [
      "JavaScriptCore (WebKit)",
      "webkit",
      "LGPL-2.0-or-later AND BSD-2-Clause",
      "https://github.com/oven-sh/WebKit",
    ],
    [
      "BoringSSL",
      "boringssl",
      "several licences, see its LICENSE",
      "https://boringssl.googlesource.com/boringssl/",
    ],
    ["brotli", null, "MIT", "https://github.com/google/brotli"],
    [
      "libarchive",
      "libarchive",
      "several licences, see its COPYING",
      "https://github.com/libarchive/libarchive",
    ],
    ["lol-html", "lolhtml", "BSD-3-Clause", "https://github.com/cloudflare/lol-html"],
    ["ls-hpack", "lshpack", "MIT", "https://github.com/litespeedtech/ls-hpack"],
    ["ls-qpack", null, "MIT", "https://github.com/litespeedtech/ls-qpack"],
    ["lsquic", null, "MIT AND BSD-3-Clause", "https://github.com/litespeedtech/lsquic"],
    ["llhttp", "llhttp", "MIT", "https://github.com/nodejs/llhttp"],
    ["mimalloc", "mimalloc", "MIT", "https://github.com/microsoft/mimalloc"],
    ["picohttpparser", "picohttpparser", "MIT", "https://github.com/h2o/picohttpparser"],
    ["zstd", "zstd", "BSD-3-Clause OR GPL-2.0-only", "https://github.com/facebook/zstd"],
    ["simdutf", null, "Apache-2.0", "https://github.com/simdutf/simdutf"],
    ["TinyCC", "tinycc", "LGPL-2.1-or-later", "https://github.com/TinyCC/tinycc"],
    ["uSockets", "usockets", "Apache-2.0", "https://github.com/uNetworking/uSockets"],
    ["uWebSockets", "uwebsockets", "Apache-2.0", "https://github.com/uNetworking/uWebSockets"],
    ["zlib-ng", "zlib", "Zlib", "https://github.com/zlib-ng/zlib-ng"],
    ["c-ares", "ares", "MIT", "https://github.com/c-ares/c-ares"],
    ["ICU", "icu", "Unicode-3.0", "https://github.com/unicode-org/icu"],
    ["base64", null, "BSD-2-Clause", "https://github.com/aklomp/base64"],
    ["libdeflate", "libdeflate", "MIT", "https://github.com/ebiggers/libdeflate"],
    [
      "libjpeg-turbo",
      null,
      "several licences (IJG, BSD-3-Clause, Zlib)",
      "https://github.com/libjpeg-turbo/libjpeg-turbo",
    ],
    ["libspng", null, "BSD-2-Clause", "https://github.com/randy408/libspng"],
    ["libwebp", null, "BSD-3-Clause", "https://github.com/webmproject/libwebp"],
    ["highway", null, "Apache-2.0", "https://github.com/google/highway"],
    ["uucode", null, "MIT", "https://github.com/jacobsandlund/uucode"],
    ["SQLite", "sqlite", "blessing", "https://www.sqlite.org"],
    [
      "libc++abi (its __cxa_thread_atexit)",
      null,
      "Apache-2.0 WITH LLVM-exception",
      "https://github.com/llvm/llvm-project",
    ],
  ];

/** Names in `process.versions` of what is no library inside: levels of interfaces, and what Bun was built with. */
const NO_PARTS = ["node", "bun", "openssl", "zig", "v8", "uv", "napi", "unicode", "typescript", "modules"];

/** Bun's parts with the commits that the runtime says it has. Throws on one that the table above does not know. */
export function runtimeParts(versions: Readonly<Record<string, string>>): readonly RuntimePart[] {
  const known = [...RUNTIME_PARTS.map(([, key]) => key), ...NO_PARTS];
  const unknown = Object.keys(versions).filter((key) => !known.includes(key));
  if (unknown.length > 0) throw new Error(`packaging/parts.ts knows no licence of ${unknown.join(", ")}`);
  return RUNTIME_PARTS.map(([name, key, licence, home]) => ({
    name,
    version: key === null ? null : (versions[key] ?? null),
    licence,
    home,
  }));
}

/** What the compiler's own runtime says of its parts. */
export function installedVersions(): Readonly<Record<string, string>> {
  const bun = join(ROOT, "node_modules/.bin/bun");
  return JSON.parse(run([bun, "-e", "console.log(JSON.stringify(process.versions))"]));
}
