import { flagFacts } from "../facts/flags.ts";
import { readFacts } from "../facts/read.ts";
import { GateError } from "../lib/errors.ts";
import { plainRequest } from "../request/plain.ts";
import type { Settings } from "./settings.ts";
import type { TaskJob } from "./task.ts";
import { PLAIN_WORDS } from "./words.ts";

/**
 * A job told on plain flags. What cannot be read there is a mistake on the command line, so it throws
 * `GateError("usage")` in place of a verdict.
 */
export function plainJob(values: Readonly<Record<string, string>>, settings: Settings): TaskJob {
  const reading = readFacts(flagFacts(values), {
    unknownKeys: "ignore",
    siteDefaults: settings.factDefaults,
  });
  if (reading.kind === "unreadable") {
    throw new GateError(
      "usage",
      (reading.problems[0]?.message ?? "a fact cannot be read").replace(/\.$/, ""),
    );
  }
  const request = plainRequest(values.request ?? "", values.nodes ?? null, settings.table);
  for (const candidate of request.candidates) {
    if ("reason" in candidate && candidate.reason === "unreadable-request") {
      throw new GateError("usage", candidate.message.replace(/\.$/, ""));
    }
  }
  return {
    name: null,
    reading,
    request,
    words: PLAIN_WORDS,
    unreadable: "unjudged",
    tasks: 1,
    useSpot: false,
    fallbackHours: null,
    rewriteCards: null,
    rewritable: true,
    mark: null,
    notTraining: null,
    notes: [],
  };
}
