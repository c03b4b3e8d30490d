// One process of many: fetches a model's config as the environment says and prints the outcome and the time it took.
import { fetchHubConfig } from "../../src/sources/hub.ts";

const [id = "", timeoutMs = "5000"] = process.argv.slice(2);
const startMs = performance.now();
const answer = await fetchHubConfig(id, { env: process.env, timeoutMs: Number(timeoutMs) });
const outcome = answer.ok
  ? { length: answer.value.text.length }
  : { reason: answer.error.reason, message: answer.error.message };
console.log(JSON.stringify({ ...outcome, tookMs: performance.now() - startMs }));
