import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MASK, Redactor, redact } from "../../src/bridge/redaction.ts";

const KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAA\n-----END OPENSSH PRIVATE KEY-----";

describe("what is masked", () => {
  const rows: readonly (readonly [string, string, readonly string[]])[] = [
    ["token is s3cr3t!", `token is ${MASK}`, ["s3cr3t!"]],
    ["s3cr3t!s3cr3t!", `${MASK}${MASK}`, ["s3cr3t!"]],
    ["abcdef", MASK, ["abcd", "abcdef"]],
    ["curl -H 'Authorization: Basic dXNlcjpwYXNz' x", `curl -H 'Authorization: ${MASK}`, []],
    ["authorization=Token abc\nnext", `authorization=${MASK}\nnext`, []],
    ["bearer eyJhbGciOi.x.y z", `bearer ${MASK} z`, []],
    ["hf_abcDEF0123456789", MASK, []],
    ["got ghp_0123456789abcdefABCDEF0123456789abcd.", `got ${MASK}.`, []],
    ["key AKIAIOSFODNN7EXAMPLE", `key ${MASK}`, []],
    ["AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", `AWS_SECRET_ACCESS_KEY=${MASK}`, []],
    ['{"password": "hunter22", "x": 1}', `{"password": "${MASK}", "x": 1}`, []],
    [
      "clone https://user:pass@host/x and http://tok@h",
      `clone https://${MASK}@host/x and http://${MASK}@h`,
      [],
    ],
    ["ssh://git@host:22/x", `ssh://${MASK}@host:22/x`, []],
    [`before ${KEY} after`, `before ${MASK}\n after`, []],
    [KEY.replaceAll("\n", "\\n"), MASK, []],
    ["a\nline one\nline two\nb", `a\n${MASK}\n${MASK}\nb`, ["line one\nline two"]],
    ['{"v":"q\\"uote\\nd"}', `{"v":"${MASK}"}`, ['q"uote\nd']],
    ["x?k=a%20b%2Fc", `x?k=${MASK}`, ["a b/c"]],
    [
      "nothing of that: 12:30 https://host/path?a=b token 1",
      "nothing of that: 12:30 https://host/path?a=b token 1",
      [],
    ],
    ["it is 1", "it is 1", ["1", "", "  \n "]],
    ["progress 1\rprogress 2\r\ndone", "progress 1\rprogress 2\r\ndone", []],
    ["", "", ["abcd"]],
  ];
  test.each(rows)("%j", (text, expected, values) => {
    expect(redact(text, values)).toBe(expected);
  });
});

/** Gives a text to a redactor in pieces. */
function inPieces(text: string, cuts: readonly number[], values: readonly string[]): string {
  const redactor = new Redactor(values);
  const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  let out = "";
  let from = 0;
  for (const cut of [...at, text.length]) {
    out += redactor.push(text.slice(from, cut));
    from = cut;
  }
  return out + redactor.end();
}

const secret = fc.stringMatching(/^[A-Za-z0-9+/=_.~-]{4,40}$/);
const noise = fc.string({ unit: "grapheme", maxLength: 30 });
const cuts = fc.array(fc.nat(), { maxLength: 8 });

test("no value survives, wherever it stands and however the text is cut", () => {
  fc.assert(
    fc.property(
      fc.array(secret, { minLength: 1, maxLength: 4 }),
      fc.array(noise, { maxLength: 6 }),
      cuts,
      (values, around, at) => {
        const text = values
          .map((value, index) => `${around[index] ?? ""}${value}${around[index + 1] ?? "\n"}`)
          .join("");
        const masked = inPieces(text, at, values);
        for (const value of values) expect(masked).not.toContain(value);
      },
    ),
    { numRuns: 1000 },
  );
});

test("no token survives by its form, however the text is cut", () => {
  const body = fc.stringMatching(/^[A-Z0-9]{20,40}$/);
  const form = fc.constantFrom(
    (token: string) => `hf_${token}`,
    (token: string) => `ghp_${token}`,
    (token: string) => `AKIA${token}`,
    (token: string) => `Authorization: Basic ${token}`,
    (token: string) => `bearer ${token}`,
    (token: string) => `https://u:${token}@host/`,
    (token: string) => `HF_TOKEN="${token}"`,
    (token: string) => `-----BEGIN RSA PRIVATE KEY-----\n${token}\n${token}\n-----END RSA PRIVATE KEY-----`,
  );
  fc.assert(
    fc.property(body, form, noise, noise, cuts, (token, make, before, behind, at) => {
      expect(inPieces(`${before} ${make(token)} ${behind}`, at, [])).not.toContain(token);
    }),
    { numRuns: 1000 },
  );
});

test("the pieces do not change the result", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(noise, secret, fc.constantFrom("\n", "\r", KEY))), cuts, (parts, at) => {
      const text = parts.join("");
      expect(inPieces(text, at, ["abcd"])).toBe(redact(text, ["abcd"]));
    }),
  );
});

test("an endless line is not kept, and a key without an end does not swallow the rest", () => {
  const redactor = new Redactor([]);
  let out = "";
  for (let index = 0; index < 600; index++) out += redactor.push("x".repeat(1000));
  out += redactor.push("\nnext\n") + redactor.end();
  expect(out).toMatch(/^\(a line of more than 262144 characters is left out\)\nnext\n$/);
  const open = `-----BEGIN PRIVATE KEY-----\n${"AAAA\n".repeat(300)}`;
  expect(redact(open, []).split("\n").length).toBe(102);
});

test("plain lines pass as they are", () => {
  const redactor = new Redactor(["s3cr3t!", "another value"]);
  const chunk = `${"a plain line of output, as programs print it 0123456789\n".repeat(1000)}`;
  let length = 0;
  for (let index = 0; index < 20; index++) length += redactor.push(chunk).length;
  expect(length).toBe(chunk.length * 20);
});
