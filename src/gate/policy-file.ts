import { decodeStrict, readBytes } from "../host/fs.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { readPolicy } from "../policy/read.ts";
import type { FileProblem, PolicyReading } from "../policy/types.ts";
import { readPolicyYaml } from "./policy-yaml.ts";

/** Largest policy file that is read, some three hundred waivers: a submit waits while it is read. */
export const MAX_POLICY_BYTES = 64_000;

/** Reads a policy file, a regular one of reasonable size; whatever is wrong with it is a problem in the reading. */
export function readPolicyFile(path: string): PolicyReading {
  const text = policyTextOf(path);
  return text.ok ? readPolicyText(text.value) : unread(text.error);
}

/** The text of a policy file; the error is a sentence without its full stop. */
export function policyTextOf(path: string): Result<string, string> {
  const bytes = readBytes(path, MAX_POLICY_BYTES);
  if (!bytes.ok) {
    const { kind, message } = bytes.error;
    return fail(
      kind === "too-large"
        ? `${path} is larger than the ${MAX_POLICY_BYTES / 1000} kB that are read`
        : message,
    );
  }
  const text = decodeStrict(bytes.value);
  return text === null ? fail(`${path} is not UTF-8 text`) : ok(text);
}

/** The same for a text. */
export function readPolicyText(text: string): PolicyReading {
  const tree = readPolicyYaml(text.replace(/^\ufeff/, ""));
  return tree.ok ? readPolicy(tree.value) : { policy: null, problems: [tree.error] };
}

/** What keeps a file from being applied, in one sentence without its full stop; null for one that is. */
export function whyNotApplied({ policy, problems }: PolicyReading): string | null {
  if (policy !== null) return null;
  const error = problems.at(-1);
  if (error === undefined) return "it cannot be read";
  const { place, message } = error;
  return place === null ? message : `line ${place.line}, column ${place.column}: ${message}`;
}

function unread(message: string): PolicyReading {
  const problem: FileProblem = { severity: "error", rule: null, message, fix: null, place: null };
  return { policy: null, problems: [problem] };
}
