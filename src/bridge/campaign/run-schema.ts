import * as v from "valibot";
import { oneOf, shaped, text, wholeNumber } from "./leaves.ts";
import { BACKEND, described } from "./schemas.ts";

/** A run's memory of what it was launched with, `STATE/run.json`. */
export const RUN = v.strictObject({
  version: v.literal(
    1,
    "1, the version that is read\nUse the neurarch-gate that wrote it, or another --state.",
  ),
  run_id: text("text", "Name another --state."),
  workspace_id: text("text", "Name another --state."),
  environment: oneOf(["skypilot"]),
  resources: v.strictObject({
    nodes: wholeNumber(1, "Name another --state."),
    accelerators_per_node: wholeNumber(1, "Name another --state."),
    accelerator_backend: BACKEND,
    cpus_per_node: v.nullable(wholeNumber(1, "Name another --state.")),
  }),
  profile: described(text("text", "Name another --state."), "Used when none is named."),
  launches: described(
    v.pipe(
      v.array(
        v.strictObject({
          at: shaped(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/, "a time in UTC", "Name another --state."),
          profile: text("text", "Name another --state."),
          infra: text("text", "Name another --state."),
          accelerator_type: text("text", "Name another --state."),
          fingerprint: shaped(/^[0-9a-f]{64}$/, "64 hex digits", "Name another --state."),
          program: text("text", "Name another --state."),
        }),
        "a list of launches\nName another --state.",
      ),
      v.minLength(1, "a list of launches\nName another --state."),
    ),
    "The first launch and each later one on something else.",
  ),
});
