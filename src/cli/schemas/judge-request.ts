import { FACT_SPECS } from "../../facts/keys.ts";
import { DIALECT, type JsonSchema } from "../../render/schema-parts.ts";

const VALUE: JsonSchema = { type: ["string", "number", "boolean", "null"] };
const FORMS = ["skypilot", "slurm", "request"] as const;

/** A key that is there and says something: null is as good as absent. */
const given = (name: string): JsonSchema => ({
  required: [name],
  properties: { [name]: { not: { type: "null" } } },
});

/** What `POST /v1/judge` reads: a job's text or a request, and facts that lie over it. */
export const JUDGE_REQUEST_SCHEMA: JsonSchema = {
  $schema: DIALECT,
  title: "A job to judge (POST /v1/judge)",
  type: "object",
  additionalProperties: false,
  properties: {
    skypilot: { ...VALUE, description: "A SkyPilot task file's text." },
    slurm: { ...VALUE, description: "A batch script's text." },
    request: { ...VALUE, description: "Cards per node: H100:8." },
    nodes: { ...VALUE, description: "Nodes of `request` (1)." },
    ...Object.fromEntries(
      FACT_SPECS.map(({ flag, about, byDefaultText }) => [
        flag,
        { ...VALUE, description: `${about} (${byDefaultText})` },
      ]),
    ),
  },
  oneOf: FORMS.map(given),
  if: given("nodes"),
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
  then: given("request"),
};

/** A row of the table that `rightsize` reads, its columns by name; columns of other names are left alone. */
export const RIGHTSIZE_ROW_SCHEMA: JsonSchema = {
  $schema: DIALECT,
  title: "A row of a table of jobs (rightsize jobs.csv): columns in any order, with - or _",
  type: "object",
  required: ["model"],
  properties: {
    job_id: { type: "string", description: "What the report calls the job (its row)." },
    gpu: { type: "string", description: "The request: H100:8." },
    nodes: { type: "string", description: "Nodes of the request (1)." },
    ...Object.fromEntries(
      FACT_SPECS.map(({ flag, about, byDefaultText }) => [
        flag.replaceAll("-", "_"),
        { type: "string", description: `${about} (${byDefaultText})` },
      ]),
    ),
  },
};
