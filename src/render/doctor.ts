import { painted } from "./colour.ts";
import { printable, wrap } from "./text.ts";

/** One line of a doctor's report. */
export interface Finding {
  readonly check: string;
  readonly status: "ok" | "warn" | "fail" | "skipped";
  readonly message: string;
  readonly fix: string | null;
}

/** The report as one JSON document. */
export function doctorDocument(subject: string, findings: readonly Finding[]): unknown {
  return {
    schema: "neurarch-gate/doctor",
    version: 1,
    subject,
    ok: findings.every(({ status }) => status !== "fail"),
    checks: findings.map(({ check, status, message, fix }) => ({ check, status, message, fix })),
  };
}

const WORDS = { ok: "ok", warn: "warn", fail: "FAIL", skipped: "-" } as const;
const MARGIN = 7;

/** What `self-test --json` prints. */
export function selfTestDocument(program: string, findings: readonly Finding[]): unknown {
  return {
    schema: "neurarch-gate/self-test",
    version: 1,
    program,
    ok: findings.every(({ status }) => status !== "fail"),
    checks: findings.map(({ check, status, message, fix }) => ({ check, status, message, fix })),
  };
}

const TONES = { ok: "good", warn: "doubtful", fail: "bad", skipped: "faint" } as const;

/** The report for people: a finding a line, what to do under it, and a last line that sums up. */
export function humanDoctor(findings: readonly Finding[], width = 110, colour = false): string {
  const name = Math.max(...findings.map(({ check }) => check.length)) + 2;
  const indent = MARGIN + name;
  const lines = findings.flatMap(({ check, status, message, fix }) => {
    const texts = [printable(message), ...(fix === null ? [] : [`Fix: ${printable(fix)}`])];
    const wrapped = texts.flatMap((text) => wrap(text, Math.max(40, width - indent)));
    return wrapped.map((text, index) =>
      index === 0
        ? `${colour ? painted(WORDS[status], TONES[status]) : WORDS[status]}${" ".repeat(MARGIN - WORDS[status].length)}${check.padEnd(name)}${text}`
        : `${" ".repeat(indent)}${text}`,
    );
  });
  const count = (status: Finding["status"]) => findings.filter((finding) => finding.status === status).length;
  const failures = count("fail");
  const sum =
    failures > 0
      ? `${failures} ${failures === 1 ? "thing has" : "things have"} to be put right.`
      : count("warn") > 0
        ? "It works; look at the warnings."
        : "All is well.";
  return `${[...lines, "", sum].join("\n")}\n`;
}
