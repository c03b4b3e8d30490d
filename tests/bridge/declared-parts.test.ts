// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the tokens are written like that
/** The pure parts of declared files: patterns, what a job says of them, pieces of a file, frames. */
import { describe, expect, test } from "bun:test";
import { normalize } from "node:path";
import fc from "fast-check";
import { type Fetched, FetchReader } from "../../src/bridge/declared/fetch.ts";
import { globExpression, isDeclared, isPlainPath } from "../../src/bridge/declared/globs.ts";
import { readManifest, unmatched } from "../../src/bridge/declared/manifest.ts";
import { rootLines } from "../../src/bridge/declared/root.ts";
import { tokenFileName } from "../../src/bridge/names.ts";
import { FrameReader } from "../../src/bridge/wire/client.ts";
import { sha256 } from "./bridge-kit.ts";

const base64 = (text: string | Uint8Array) => Buffer.from(text).toString("base64");

describe("patterns", () => {
  const ROWS: readonly (readonly [glob: string, path: string, matches: boolean])[] = [
    ["a.json", "a.json", true],
    ["a.json", "axjson", false],
    ["a.json", "out/a.json", false],
    ["*.json", "a.json", true],
    ["*.json", "out/a.json", false],
    ["*.json", ".json", true],
    ["out/*", "out/a", true],
    ["out/*", "out/a/b", false],
    ["out/?.txt", "out/a.txt", true],
    ["out/?.txt", "out/ab.txt", false],
    ["**/a", "a", true],
    ["**/a", "x/y/a", true],
    ["**/a", "xa", false],
    ["x/**/a", "x/a", true],
    ["x/**/a", "x/y/z/a", true],
    ["x/**", "x/y/z", true],
    ["x/**", "x", false],
    ["[a]", "[a]", true],
    ["[a]", "a", false],
    ["a+(b)|{c}^$\\.", "a+(b)|{c}^$\\.", true],
    ["a'b\"c d", "a'b\"c d", true],
    ["é*", "éa", true],
  ];
  test.each(ROWS)("%s of %s: %p, here and in grep -E", (glob, path, matches) => {
    expect(isDeclared(path, [glob])).toBe(matches);
    const grep = Bun.spawnSync(["grep", "-Eq", "-e", `^${globExpression(glob)}$`], {
      stdin: new TextEncoder().encode(`${path}\n`),
      env: { ...process.env, LC_ALL: "C" },
    });
    expect(grep.stderr.toString()).toBe("");
    expect(grep.exitCode === 0).toBe(matches);
  });

  test("a plain path is one that stays where it is read from", () => {
    const part = fc.constantFrom("..", ".", "", "a", "b c", "~", "é", "\n");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const path = parts.join("/");
        const stays = normalize(path) === path && !path.startsWith("/") && !/^\.\.?(\/|$)/.test(path);
        expect(isPlainPath(path)).toBe(stays && !path.endsWith("/") && path !== "" && !path.includes("\n"));
      }),
    );
    for (const path of ["", "/a", "../a", "a/../b", "a/..", "./a", "a//b", "a/", "a\nb", "a\0"])
      expect(isPlainPath(path)).toBe(false);
  });
});

describe("what a job says of the files", () => {
  const declared = { globs: ["out/*"], maxFiles: 2, maxBytes: 100 };
  const sent = (path: string, content: string, digest = sha256(content)) =>
    `i ${content.length} ${digest} ${base64(path)}\n${base64(content)}\n`;
  const read = (text: string | null) => readManifest(text, declared, sha256);

  test("a file that is sent, one that is stored, one that is left", () => {
    const digest = sha256("x");
    const text = `${sent("out/a", "hello")}r 0 90 ${digest} ${base64("out/b")}\nl link ${base64("out/l")}\nm 3`;
    expect(read(text)).toEqual({
      sent: [{ path: "out/a", size: 5, sha256: sha256("hello"), bytes: new TextEncoder().encode("hello") }],
      stored: [{ path: "out/b", size: 90, sha256: digest, number: 0 }],
      leftOut: [{ path: "out/l", reason: "it is a link, or lies behind one" }],
      more: 3,
    } as never);
    expect(unmatched(read(text), ["out/*", "none"])).toEqual(["none"]);
  });

  const BAD: readonly (readonly [string, string, RegExp])[] = [
    ["another digest", sent("out/a", "hello", sha256("else")), /did not arrive whole/],
    ["bytes that are missing", `i 5 ${sha256("hello")} ${base64("out/a")}\naGVs`, /did not arrive whole/],
    ["no base64", `i 5 ${sha256("hello")} ${base64("out/a")}\n####`, /did not arrive whole/],
    ["a path above", sent("out/../../x", "a"), /leads elsewhere/],
    ["an absolute path", sent("/etc/passwd", "a"), /leads elsewhere/],
    ["a line end in it", sent("out/a\nb", "a"), /control character/],
    ["what nobody asked for", sent("other", "a"), /nobody asked/],
    ["the same twice", sent("out/a", "a") + sent("out/a", "b"), /named twice/],
    ["a third", sent("out/a", "a") + sent("out/b", "b") + sent("out/c", "c"), /beyond the limits/],
    ["too many bytes", sent("out/a", "a".repeat(101)), /beyond the limits/],
    ["a number that is none", `r x 5 ${sha256("")} ${base64("out/a")}`, /did not arrive whole/],
    ["nothing of it", "x no-tools", /lacks GNU find/],
  ];
  test.each(BAD)("%s is left out and said", (_, text, reason) => {
    const { sent: whole, stored, leftOut } = read(text);
    expect(leftOut.map((one) => one.reason).join()).toMatch(reason);
    expect(leftOut).toHaveLength(1);
    expect(stored).toEqual([]);
    expect(whole.length).toBeLessThan(3);
  });

  test("a block that did not come", () => {
    expect(read(null).leftOut).toEqual([{ path: "*", reason: "what it wrote is not known" }]);
  });

  test("whatever a job prints: only plain paths that were asked for, within the limits", () => {
    const line = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc
        .tuple(fc.constantFrom("i", "r", "l", "m"), fc.string({ maxLength: 20 }))
        .map((words) => words.join(" ")),
      fc.string({ maxLength: 20 }).map((path) => sent(path, "a")),
      fc.string({ maxLength: 20 }).map((path) => sent(`out/${path}`, "abc")),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), (lines) => {
        const { sent: whole, stored } = read(lines.join("\n"));
        const all = [...whole, ...stored];
        expect(all.length).toBeLessThanOrEqual(declared.maxFiles);
        for (const { path } of all)
          expect([isPlainPath(path), isDeclared(path, ["out/*"])]).toEqual([true, true]);
      }),
    );
  });
});

test("pieces of a file are the same however the log is cut", () => {
  const text = `noise\nN file 3 0\nN data 0 ${base64("abc")}\nother N data 3 ${base64("no")}\nN data 3 ${base64("def")}\nN gone 4\nN data 6 ?\nM data 0 ${base64("x")}\n${"y".repeat(20_000)}\nN file 5 2\nN data 2 ${base64("unfinished")}`;
  const readIn = (size: number): Fetched[] => {
    const reader = new FetchReader("N");
    const bytes = new TextEncoder().encode(text);
    const found: Fetched[] = [];
    for (let at = 0; at < bytes.length; at += size) found.push(...reader.take(bytes.slice(at, at + size)));
    return found;
  };
  const whole = readIn(1_000_000);
  expect(whole.map((one) => (one.kind === "data" ? Buffer.from(one.bytes).toString() : one.kind))).toEqual([
    "file",
    "abc",
    "def",
    "gone",
    "file",
  ]);
  for (const size of [1, 2, 7, 100, 16_383]) expect(readIn(size)).toEqual(whole);
});

describe("a client", () => {
  const asked = { invocationId: "a".repeat(32), artifacts: [] };
  const declared = { globs: ["out/*"], maxFiles: 2, maxBytes: 10 };
  const line = (frame: object) => new TextEncoder().encode(`${JSON.stringify({ version: 2, ...frame })}\n`);
  const file = (path: string, size = 3) => ({ type: "file", path, size, sha256: sha256("abc") });
  const data = { type: "file_data", data_base64: base64("abc") };
  const result = { type: "result", status: "COMPLETED", sky_exit_code: 0, remote_job_id: 1 };
  const ROWS: readonly (readonly [string, readonly object[], RegExp])[] = [
    ["a path above", [file("../x")], /leads elsewhere/],
    ["an absolute path", [file("/etc/passwd")], /leads elsewhere/],
    ["what was not asked for", [file("else")], /none that was asked for/],
    ["the same twice", [file("out/a"), data, file("out/a")], /came twice/],
    ["one that is cut off", [file("out/a"), file("out/b")], /fewer bytes/],
    ["one that is too long", [file("out/a", 2), data], /more bytes/],
    ["data of nothing", [data], /more bytes/],
    ["too many", [file("out/a", 0), file("out/b", 0), file("out/c", 0)], /more of them/],
    ["too much", [file("out/a", 11)], /more of them/],
    ["another count", [file("out/a"), data, { type: "files", count: 2 }], /not all/],
    ["a further key", [{ ...file("out/a"), mode: 7 }], /unknown key/],
    ["a result before them", [result], /declared files are missing/],
    ["one behind the last", [{ type: "files", count: 0 }, file("out/a")], /after all/],
  ];
  test.each(ROWS)("that declared files refuses %s", (_, frames, said) => {
    const reader = new FrameReader({ ...asked, declared }, sha256);
    const errors = frames.flatMap((frame) => {
      const read = reader.read(line(frame));
      return read.ok ? [] : [read.error];
    });
    expect(errors[0] ?? "").toMatch(said);
  });
  test.each(["file", "file_data", "files"])("that declared none takes no %s frame", (type) => {
    const read = new FrameReader(asked, sha256).read(line({ ...file("out/a"), type }));
    expect(read).toMatchObject({ ok: false });
  });
  test("keeps its token where the public one does, unless it declares", () => {
    const plain = tokenFileName("accuracy", [], sha256);
    expect(plain).toBe(`pending-${sha256('["accuracy",[]]').slice(0, 16)}`);
    expect(tokenFileName("accuracy", [], sha256, declared)).not.toBe(plain);
  });
});

test.each([
  ["/scratch/$USER/vibesys", "/scratch/pilot/vibesys"],
  ["$HOME/art", "/users/pilot/art"],
  ["/a b/${USER}x/'q'", "/a b/pilotx/'q'"],
  ["/plain", "/plain"],
])("the root %s is %s for the cluster's own user, whatever HOME says", (written, expected) => {
  const there =
    'id() { echo pilot; }\ngetent() { echo "pilot:x:1:1::/users/pilot:/bin/sh"; }\nHOME=/per/cluster\n';
  const ran = Bun.spawnSync(["sh", "-c", `${there}${rootLines(written).join("\n")}\nprintf %s "$root"`]);
  expect(ran.stdout.toString()).toBe(expected);
});
