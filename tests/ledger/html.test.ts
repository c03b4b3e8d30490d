import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { inflateSync } from "node:zlib";
import { lineOf } from "../../src/ledger/entry.ts";
import type { Entry } from "../../src/ledger/types.ts";
import { run } from "../acceptance/run.ts";
import { verdictEntry } from "./entries.ts";

/** Debian's Chromium; under CI a missing one is an error. */
const CHROMIUM = Bun.which("chromium");
const CI = process.env.CI === "true";

let root = "";
let page = "";
let counter: ReturnType<typeof Bun.serve> | null = null;
let asked: string[] = [];
const at = (...names: string[]) => join(root, ...names);

/** Names that would load or run something in a page that is not careful. */
const hostile = () => [
  `<script src="http://127.0.0.1:${counter!.port}/script.js"></script>`,
  `"><img src=http://127.0.0.1:${counter!.port}/img.png onerror=alert(1)>`,
  `</style><link rel=stylesheet href='http://127.0.0.1:${counter!.port}/x.css'>`,
  `</title><iframe src=//127.0.0.1:${counter!.port}/frame>`,
  "\u202egnp.exe & 'quoted' \u0007",
];

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "gate-html-"));
  counter = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      asked.push(new URL(request.url).pathname);
      return new Response("");
    },
  });
  const names = ["ada", "bo", ...hostile()];
  const entries: Entry[] = Array.from({ length: 280 }, (_, index) =>
    verdictEntry({
      id: `entry-of-${index}`,
      time: `2026-11-${String(1 + (index % 28)).padStart(2, "0")}T10:00:00.000Z`,
      user: names[index % names.length]!,
      model: names[(index * 3) % names.length]!,
      card: ["A10G", "H100", "H200"][index % 3]!,
      usd: 100.1 + index,
      gpuHours: 10.25,
      ...(index % 4 === 0 ? {} : index % 4 === 1 ? { decision: "allow", stopped: false, rule: null } : {}),
      ...(index % 4 === 2
        ? { decision: "warn", stopped: false, fit: "over", overUsd: 3.3, rule: "admission/over-requested" }
        : {}),
      ...(index % 4 === 3 ? { stopped: false, waiver: index % 8 === 3 ? "bo" : null } : {}),
    }),
  );
  writeFileSync(at("ada@login1.jsonl"), entries.map(lineOf).join(""));
  writeFileSync(at("broken@login1.jsonl"), '{"v":1,"ti');
  page = at("report.html");
  expect(await run(["ledger", root, "--html", page])).toMatchObject({ exit: 0, out: "" });
});
afterAll(() => {
  counter?.stop(true);
  rmSync(root, { recursive: true, force: true });
});

/** Pixels of a PNG of eight bits a channel, as Chromium writes it. */
function pixelsOf(png: Uint8Array): {
  width: number;
  height: number;
  colour(x: number, y: number): number[];
} {
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  const width = view.getUint32(16);
  const height = view.getUint32(20);
  const channels = { 2: 3, 6: 4 }[png[25]!]!;
  expect(png[24]).toBe(8);
  const parts: Uint8Array[] = [];
  for (let at = 8; at < png.length; ) {
    const length = view.getUint32(at);
    const name = new TextDecoder().decode(png.subarray(at + 4, at + 8));
    if (name === "IDAT") parts.push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const raw = inflateSync(Buffer.concat(parts));
  const stride = width * channels;
  const pixels = new Uint8Array(stride * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)]!;
    for (let x = 0; x < stride; x += 1) {
      const left = x >= channels ? pixels[y * stride + x - channels]! : 0;
      const up = y > 0 ? pixels[(y - 1) * stride + x]! : 0;
      const corner = x >= channels && y > 0 ? pixels[(y - 1) * stride + x - channels]! : 0;
      const guess = left + up - corner;
      const [fromLeft, fromUp, fromCorner] = [left, up, corner].map((value) => Math.abs(guess - value));
      const paeth =
        fromLeft! <= fromUp! && fromLeft! <= fromCorner! ? left : fromUp! <= fromCorner! ? up : corner;
      const add = [0, left, up, (left + up) >> 1, paeth][filter]!;
      pixels[y * stride + x] = raw[y * (stride + 1) + 1 + x]! + add;
    }
  }
  return {
    width,
    height,
    colour: (x, y) => [...pixels.subarray(y * stride + x * channels, y * stride + x * channels + 3)],
  };
}

const hex = (colour: string) => [1, 3, 5].map((index) => Number.parseInt(colour.slice(index, index + 2), 16));
const same = (one: readonly number[], other: readonly number[]) =>
  one.every((value, index) => Math.abs(value - other[index]!) <= 3);

/** Runs Chromium on the page with everything it asks of a network going to the counting listener. */
async function chromium(...words: string[]) {
  const child = Bun.spawn(
    [
      CHROMIUM!,
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--hide-scrollbars",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
      "--force-device-scale-factor=1",
      "--window-size=1000,2600",
      `--user-data-dir=${at("profile")}`,
      `--proxy-server=http://127.0.0.1:${counter!.port}`,
      "--proxy-bypass-list=<-loopback>",
      ...words,
    ],
    { stdout: "pipe", stderr: "pipe", stdin: "ignore", env: { PATH: process.env.PATH, HOME: root } },
  );
  const [out, , exit] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  expect(exit).toBe(0);
  return out;
}

/** What the page itself asked for: Chromium's own services use names of their own. */
const ofThePage = () => asked.filter((path) => /script|img|x\.css|frame|favicon/.test(path));

describe.skipIf(!CI && CHROMIUM === null)("the page in Chromium", () => {
  test("its charts are drawn in their colours, and the screenshot differs in a dark scheme", async () => {
    asked = [];
    await chromium(`--screenshot=${at("light.png")}`, pathToFileURL(page).href);
    const light = pixelsOf(readFileSync(at("light.png")));
    const style = readFileSync(page, "utf8");
    const colourOf = (name: string) => hex(new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(style)![1]!);
    const rows = new Map<string, number[]>();
    for (const name of ["stop", "allow", "warn", "told", "other"]) {
      const colour = colourOf(name);
      const found: number[] = [];
      for (let y = 0; y < light.height; y += 1)
        for (let x = 0; x < light.width; x += 1)
          if (same(light.colour(x, y), colour)) found.push(y * light.width + x);
      rows.set(name, found);
    }
    // The least of these is a part of 28 columns of some pixels each.
    for (const found of rows.values()) expect(found.length).toBeGreaterThan(2000);
    // Columns of days stand beside one another: the colour of stops begins anew many times along some line.
    const stops = new Set(rows.get("stop"));
    const most = Math.max(
      ...Array.from({ length: light.height }, (_, y) => {
        let starts = 0;
        for (let x = 1; x < light.width; x += 1)
          if (stops.has(y * light.width + x) && !stops.has(y * light.width + x - 1)) starts += 1;
        return starts;
      }),
    );
    expect(most).toBeGreaterThanOrEqual(7);
    expect(same(light.colour(2, 2), colourOf("back"))).toBe(true);

    await chromium(
      "--blink-settings=preferredColorScheme=0",
      `--screenshot=${at("dark.png")}`,
      pathToFileURL(page).href,
    );
    const dark = pixelsOf(readFileSync(at("dark.png")));
    expect(dark.colour(2, 2).every((value) => value < 60)).toBe(true);
    expect(ofThePage()).toEqual([]);
  }, 60_000);

  test("its totals are the document's, nothing hostile became an element, and nothing was asked for", async () => {
    asked = [];
    const dom = await chromium("--dump-dom", pathToFileURL(page).href);
    const { totals } = JSON.parse((await run(["ledger", root, "--json"])).out);
    const shown = Object.fromEntries(
      [...dom.matchAll(/data-total="(\w+)" data-value="([^"]*)"/g)].map(([, name, value]) => [
        name!,
        Number(value),
      ]),
    );
    expect(shown).toEqual({
      verdicts: totals.verdicts,
      stopped: totals.stopped,
      usdHeldBack: totals.usdHeldBack,
      gpuHoursHeldBack: totals.gpuHoursHeldBack,
      overRequested: totals.overRequested,
      overUsd: totals.overUsd,
      waiversUsed: totals.waiversUsed,
      warned: totals.byDecision.warn,
    });
    expect(totals.stopped).toBe(70);
    expect(dom).not.toMatch(/<(?:script|img|iframe|link)\b/i);
    expect([...dom.matchAll(/<style\b/g)].length).toBe(1);
    expect([...dom.matchAll(/<svg\b/g)].length).toBe(6);
    expect(ofThePage()).toEqual([]);
  }, 60_000);

  test("the listener does count: a page that asks is seen", async () => {
    asked = [];
    writeFileSync(at("asks.html"), `<img src="http://example.invalid/img.png">`);
    await chromium("--dump-dom", pathToFileURL(at("asks.html")).href);
    expect(ofThePage()).toEqual(["/img.png"]);
  }, 60_000);
});

describe("the page's text", () => {
  test("its policy lets in its own style and nothing else", () => {
    const text = readFileSync(page, "utf8");
    const style = /<style>([\s\S]*?)<\/style>/.exec(text)![1]!;
    const hash = new Bun.CryptoHasher("sha256").update(style).digest("base64");
    expect(text).toContain(
      `content="default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'"`,
    );
    expect(text).not.toMatch(/ style=|javascript:|\son\w+=(?!alert\(1\)&gt;)/);
    expect(text).toContain("1 line passed over");
    for (const steers of ["\u202e", "\u0007"]) expect(text).not.toContain(steers);
  });

  test("to standard output, of a range, and with nothing in it", async () => {
    const of = (...words: string[]) => run(["ledger", root, "--html", "-", ...words]).then(({ out }) => out);
    expect(await of()).toBe(readFileSync(page, "utf8"));
    const words = /<p class="quiet">(.*?)<\/p>/.exec(await of("--until", "2026-11-03", "--user", "ada"))?.[1];
    expect(words).toMatch(/^\d+ verdicts?, 2026-11-0[123].* of ada, in /);
    expect(await of("--since", "2030-01-01")).toContain("Nothing was recorded.");
  });

  test("a page that cannot be written, and two forms at once", async () => {
    const broken = await run(["ledger", root, "--html", "/proc/nowhere/x.html"]);
    expect([broken.exit, broken.out]).toEqual([4, ""]);
    expect((await run(["ledger", root, "--html", "-", "--json"])).exit).toBe(2);
  });
});
