import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadSettings } from "../../src/gate/load.ts";
import { makeSizer } from "../../src/gate/size.ts";
import { type HostedOptions, sizeByHostedPlan } from "../../src/sources/hosted.ts";
import { planIn } from "../../src/sources/hosted-answer.ts";
import { factsOf, freshFolder, lay } from "./support.ts";

const SETTINGS = await loadSettings({ values: {}, switches: {} });
const KEY = "nk-secret-0123456789";

/** A graph that our own sizer refuses: an unknown type without a count. */
const GRAPH = {
  name: "odd",
  components: [
    { id: "input", type: "input", params: { shape: [4] } },
    { id: "w", type: "wavelet", params: {} },
  ],
  connections: [{ from: "input", to: "w" }],
};

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | null;
  readonly type: string | null;
  readonly body: unknown;
}

const servers: { stop(force: boolean): unknown }[] = [];
afterAll(() => {
  for (const server of servers) server.stop(true);
});

/** A plan service on loopback that notes what it is sent. */
function service(answer: (request: Request) => Response | Promise<Response>) {
  const seen: Seen[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const text = await request.text();
      const { method, headers } = request;
      seen.push({
        method,
        path: new URL(request.url).pathname,
        authorization: headers.get("authorization"),
        type: headers.get("content-type"),
        body: text === "" ? null : JSON.parse(text),
      });
      return answer(request);
    },
  });
  servers.push(server);
  return {
    url: `http://127.0.0.1:${server.port}/api/v1/plan`,
    origin: `http://127.0.0.1:${server.port}`,
    seen,
  };
}

function plan(cost: object = {}, model: object = { params: 1_000_000 }): Response {
  return Response.json({
    text: "a card",
    plan: {
      model,
      cost: { peakGb: 10, activationGb: 4, seqLen: 512, assumptions: "AdamW, at batch 16, fp32", ...cost },
    },
  });
}

function options(
  url: string | null,
  over: Partial<HostedOptions> = {},
  env: Record<string, string> = {},
): HostedOptions {
  const cwd = freshFolder();
  lay(cwd, { "net.neurarch.json": JSON.stringify({ model: GRAPH }) });
  return {
    url,
    cwd,
    env: { HOME: cwd, XDG_CACHE_HOME: join(cwd, "cache"), ...env },
    timeoutMs: 5000,
    ...over,
  };
}

const FACTS = factsOf({ model: "net.neurarch.json" });

async function said(
  url: string,
  over: Partial<HostedOptions> = {},
  env: Record<string, string> = {},
  facts = FACTS,
) {
  const sized = await sizeByHostedPlan(facts, options(url, over, env));
  return sized.ok ? "sized" : `${sized.error.reason}: ${sized.error.message}`;
}

describe("a plan", () => {
  test("becomes a line: activations by the sample, the rest fixed", async () => {
    const { url, seen } = service(() => plan());
    const sized = await sizeByHostedPlan(FACTS, options(url, {}, { NEURARCH_API_KEY: KEY }));
    expect(sized).toMatchObject({
      ok: true,
      value: {
        source: "hosted",
        family: null,
        params: 1_000_000,
        seqLen: 512,
        floorBytes: 6e9,
        stateBytes: 6e9,
        moments: [{ fixedBytes: 6e9, perSampleBytes: 0.25e9 }],
      },
    });
    expect(seen).toEqual([
      {
        method: "POST",
        path: "/api/v1/plan",
        authorization: `Bearer ${KEY}`,
        type: "application/json",
        body: { model: GRAPH, attention: "sdpa", source: "neurarch-gate" },
      },
    ]);
  });
  test("is asked with the job's length and attention, and without a key where there is none", async () => {
    const { url, seen } = service(() => plan());
    const facts = factsOf({ model: "net.neurarch.json", seqLen: 777, attention: "eager" });
    await sizeByHostedPlan(facts, options(url));
    expect(seen[0]).toMatchObject({ authorization: null, body: { seq_len: 777, attention: "eager" } });
  });
  const replies: readonly (readonly [string, unknown, unknown])[] = [
    [
      "no batch is 32",
      { plan: { cost: { peakGb: 10, activationGb: 4 } } },
      { fixedBytes: 6e9, perSampleBytes: 0.125e9, seqLen: null, params: null },
    ],
    [
      "assumptions as a list",
      { plan: { cost: { peakGb: 10, activationGb: 4, assumptions: ["AdamW", "at batch 8"] } } },
      { fixedBytes: 6e9, perSampleBytes: 0.5e9, seqLen: null, params: null },
    ],
    [
      "no activations",
      { plan: { cost: { peakGb: 10 } } },
      { fixedBytes: 10e9, perSampleBytes: 0, seqLen: null, params: null },
    ],
    [
      "a batch of 0 is 1",
      { plan: { cost: { peakGb: 10, activationGb: 4, assumptions: "at batch 0" } } },
      { fixedBytes: 6e9, perSampleBytes: 4e9, seqLen: null, params: null },
    ],
    ["no peak", { plan: { cost: { activationGb: 4 } } }, null],
    ["a peak that is no number", { plan: { cost: { peakGb: "10" } } }, null],
    ["a peak below zero", { plan: { cost: { peakGb: -1 } } }, null],
    ["more activations than peak", { plan: { cost: { peakGb: 1, activationGb: 4 } } }, null],
    ["no plan", {}, null],
    ["null", null, null],
    ["a list", [], null],
  ];
  test.each(replies)("%s", (_, reply, expected) =>
    expect(planIn(JSON.stringify(reply))).toEqual(expected as never),
  );
  test("no JSON is no plan", () => expect(planIn("<html>")).toBeNull());
});

describe("what the plan is not asked", () => {
  const url = "http://127.0.0.1:1/plan";
  const rows: readonly (readonly [string, Parameters<typeof factsOf>[0], RegExp])[] = [
    [
      "LoRA",
      { model: "net.neurarch.json", loraRank: 8 },
      /recipe-not-sized: The hosted plan does not size LoRA/,
    ],
    ["another precision", { model: "net.neurarch.json", precision: "bf16" }, /cannot be told precision=bf16/],
    ["a Hugging Face id", { model: "Qwen/Qwen3-8B" }, /takes graphs, and Qwen\/Qwen3-8B is no/],
    ["a graph that is not there", { model: "./none.neurarch.json" }, /takes graphs, and/],
  ];
  test.each(rows)("%s", async (_, facts, words) =>
    expect(await said(url, {}, {}, factsOf(facts))).toMatch(words),
  );
  test("a file that holds no graph", async () => {
    const given = options(url);
    lay(given.cwd, { "net.neurarch.json": '{"hidden_size": 4}' });
    const sized = await sizeByHostedPlan(FACTS, given);
    expect(sized).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining("holds no graph with components") },
    });
  });
  test("an address that is none", async () =>
    expect(await said("ftp://x/y")).toMatch(/plan_url is not an address/));
});

describe("failures are told apart", () => {
  const rows: readonly (readonly [string, () => Response, string | null, RegExp])[] = [
    [
      "401 without a key",
      () => new Response("", { status: 401 }),
      null,
      /wants a key; set NEURARCH_API_KEY \(401\)/,
    ],
    [
      "403 with one",
      () => new Response("", { status: 403 }),
      KEY,
      /does not accept the key of NEURARCH_API_KEY/,
    ],
    [
      "404",
      () => new Response("", { status: 404 }),
      null,
      /no hosted plan at this address of 127\.0\.0\.1:\d+ \(404\)/,
    ],
    ["413", () => new Response("", { status: 413 }), null, /too large for the hosted plan/],
    ["422", () => new Response("", { status: 422 }), null, /does not take this graph \(422\)/],
    ["429 without a key", () => new Response("", { status: 429 }), null, /\(429\); set NEURARCH_API_KEY/],
    ["429 with one", () => new Response("", { status: 429 }), KEY, /\(429\); try again later/],
    ["500", () => new Response("", { status: 503 }), null, /out of order \(503\)/],
    ["a page", () => new Response("<html>"), null, /gave no training peak/],
    ["too long an answer", () => new Response("x".repeat(5_000_000)), null, /more than a plan holds/],
  ];
  test.each(rows)("%s", async (_, answer, key, words) => {
    const { url } = service(answer);
    const message = await said(url, {}, key === null ? {} : { NEURARCH_API_KEY: key });
    expect(message).toMatch(words);
    expect(message).toMatch(/^sizing-failed: .*\.$/);
    expect(message).not.toContain(KEY);
  });
  test("nobody there", async () =>
    expect(await said("http://127.0.0.1:1/plan")).toMatch(/127\.0\.0\.1:1 refused the connection/));
  test("no answer in time, and the next one does not wait", async () => {
    const { url, seen } = service(async () => {
      await Bun.sleep(3000);
      return plan();
    });
    const given = options(url, { timeoutMs: 300 });
    const ask = async () => {
      const start = performance.now();
      const sized = await sizeByHostedPlan(FACTS, given);
      return { ms: performance.now() - start, message: sized.ok ? "" : sized.error.message };
    };
    const [first, second] = [await ask(), await ask()];
    expect(first.message).toMatch(/did not answer within 0\.3 s/);
    expect([first.ms < 1500, second.ms < 150, second.message, seen.length]).toEqual([
      true,
      true,
      first.message,
      1,
    ]);
  });
});

describe("the key and the graph stay with one address", () => {
  for (const code of [301, 302, 303, 307, 308])
    test(`a ${code} to another server is not followed`, async () => {
      const other = service(() => plan());
      const first = service(() => new Response("", { status: code, headers: { location: other.url } }));
      const message = await said(first.url, {}, { NEURARCH_API_KEY: KEY });
      expect(message).toMatch(/redirects to another address, where neither a graph nor a key is sent/);
      expect([first.seen.length, other.seen.length]).toEqual([1, 0]);
      expect(message).not.toContain(KEY);
    });
  test("a 308 within the server is followed with both", async () => {
    const here = service((request) =>
      request.url.endsWith("/plan")
        ? new Response("", { status: 308, headers: { location: "/v2" } })
        : plan(),
    );
    expect(await said(here.url, {}, { NEURARCH_API_KEY: KEY })).toBe("sized");
    expect(here.seen.map(({ path, method, authorization }) => [path, method, authorization])).toEqual([
      ["/api/v1/plan", "POST", `Bearer ${KEY}`],
      ["/v2", "POST", `Bearer ${KEY}`],
    ]);
  });
  test("a key that cannot stand in a header is not sent", async () => {
    const { url, seen } = service(() => plan());
    await said(url, {}, { NEURARCH_API_KEY: "a\nb" });
    expect(seen[0]!.authorization).toBeNull();
  });
  test("nothing that is kept holds the key or the graph", async () => {
    const { url } = service(() => plan());
    const given = options(url, {}, { NEURARCH_API_KEY: KEY });
    await sizeByHostedPlan(FACTS, given);
    const folder = join(given.cwd, "cache/neurarch-gate");
    const kept = readdirSync(folder)
      .map((name) => readFileSync(join(folder, name), "utf8"))
      .join("\n");
    expect([kept.includes(KEY), kept.includes("wavelet"), kept.includes("fixedBytes")]).toEqual([
      false,
      false,
      true,
    ]);
  });
});

describe("answers are kept", () => {
  test("for the same graph, length and attention, and asked anew for others", async () => {
    const { url, seen } = service(() => plan());
    const given = options(url);
    const ask = (facts: Parameters<typeof factsOf>[0]) =>
      sizeByHostedPlan(factsOf({ model: "net.neurarch.json", ...facts }), given);
    const [one, two] = [await ask({}), await ask({ batch: 64 })];
    expect([two, seen.length]).toEqual([one, 1]);
    await ask({ seqLen: 99 });
    await ask({ attention: "eager" });
    expect(seen.length).toBe(3);
    lay(given.cwd, { "net.neurarch.json": JSON.stringify({ ...GRAPH, name: "changed" }) });
    await ask({});
    expect(seen.length).toBe(4);
  });
  test("and of many that ask at once one asks", async () => {
    const { url, seen } = service(async () => {
      await Bun.sleep(200);
      return plan();
    });
    const given = options(url);
    const all = await Promise.all(Array.from({ length: 20 }, () => sizeByHostedPlan(FACTS, given)));
    expect([all.every(({ ok }) => ok), seen.length]).toEqual([true, 1]);
  });
});

describe("when the plan is asked", () => {
  const host = (given: HostedOptions) => ({ cwd: given.cwd, env: given.env, deadlineMs: 5000 });
  test("never under auto without an address, and never under builtin", async () => {
    const { url, seen } = service(() => plan());
    const given = options(url);
    for (const settings of [SETTINGS, { ...SETTINGS, sizing: "builtin" as const, planUrl: url }]) {
      const sized = await makeSizer(settings, host(given))(FACTS);
      expect(sized).toMatchObject({ ok: false, error: { reason: "family-not-sized" } });
    }
    expect(seen.length).toBe(0);
  });
  test("under auto with an address, last and only where we have no answer", async () => {
    const { url, seen } = service(() => plan());
    const given = options(url);
    const size = makeSizer({ ...SETTINGS, planUrl: url }, host(given));
    expect(await size(FACTS)).toMatchObject({ ok: true, value: { sizing: { source: "hosted" } } });
    expect(seen.length).toBe(1);
    lay(given.cwd, {
      "own.neurarch.json": JSON.stringify({
        components: [{ id: "a", type: "linear", params: { inFeatures: 4, outFeatures: 4 } }],
      }),
    });
    expect(await size(factsOf({ model: "own.neurarch.json" }))).toMatchObject({
      ok: true,
      value: { sizing: { source: "builtin" } },
    });
    expect(seen.length).toBe(1);
  });
  test("both reasons are told where neither has an answer", async () => {
    const { url } = service(() => new Response("", { status: 500 }));
    const sized = await makeSizer({ ...SETTINGS, planUrl: url }, host(options(url)))(FACTS);
    expect(sized.ok ? "" : sized.error.message).toMatch(
      /wavelet.*paramCount.*The hosted plan at .* is out of order/,
    );
  });
  test("alone under hosted", async () => {
    const { url, seen } = service(() => plan());
    const size = makeSizer({ ...SETTINGS, sizing: "hosted", planUrl: url }, host(options(url)));
    expect(await size(FACTS)).toMatchObject({ ok: true, value: { sizing: { source: "hosted" } } });
    expect(seen.length).toBe(1);
  });
});
