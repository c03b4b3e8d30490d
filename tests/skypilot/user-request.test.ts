import { describe, expect, test } from "bun:test";
import { readRequestTask } from "../../src/skypilot/task.ts";
import {
  answerOf,
  decodeUserRequest,
  encodeAnswer,
  httpAnswerOf,
  notTraining,
  type UserRequest,
} from "../../src/skypilot/user-request.ts";

const BODY = {
  task: "resources:\n  accelerators:\n    A100: 8\n\nsecrets:\n  T: 'é\"'\n",
  skypilot_config: "admin_policy: http://127.0.0.1:1/policy\n",
  request_name: "launch",
  request_options: { cluster_name: "mycl", idle_minutes_to_autostop: null, down: false, dryrun: true },
  at_client_side: true,
  user: "",
  client_api_version: null,
  client_version: null,
};
const PLAIN = JSON.stringify(BODY);

function decoded(body: string): UserRequest {
  const read = decodeUserRequest(body);
  if (!read.ok) throw new Error(read.error.message);
  return read.value;
}

describe("the body of a user request", () => {
  test("once and twice encoded", () => {
    const request = {
      task: BODY.task,
      skypilotConfig: BODY.skypilot_config,
      requestName: "launch",
      clusterName: "mycl",
      dryrun: true,
      atClientSide: true,
      user: "",
    };
    expect(decoded(PLAIN)).toEqual({ ...request, doubleEncoded: false });
    expect(decoded(JSON.stringify(PLAIN))).toEqual({ ...request, doubleEncoded: true });
  });

  test("jobs and services send no options", () => {
    const request = decoded(JSON.stringify({ ...BODY, request_options: null, newer: 1 }));
    expect([request.clusterName, request.dryrun]).toEqual([null, false]);
  });

  const bad: readonly (readonly [body: string, message: string])[] = [
    ["", "The body is not the JSON of a SkyPilot user request."],
    ["[]", "The body is not the JSON of a SkyPilot user request."],
    ['"{"', "The body is not the JSON of a SkyPilot user request."],
    [JSON.stringify(JSON.stringify(PLAIN)), "The body is not the JSON of a SkyPilot user request."],
    ["{}", "The user request has no `task` text."],
    [JSON.stringify({ ...BODY, task: {} }), "The user request has no `task` text."],
    [JSON.stringify({ ...BODY, skypilot_config: null }), "The user request has no `skypilot_config` text."],
    ["[".repeat(200_000), "The body is not the JSON of a SkyPilot user request."],
  ];
  for (const [body, message] of bad) {
    test(message + body.length, () => {
      const read = decodeUserRequest(body);
      expect(read.ok ? null : read.error.message).toBe(message);
    });
  }
});

describe("answers", () => {
  const outcome = { messages: ["Neurarch: a.", "b."], task: "run: x\n" };

  test("for the Python policy", () => {
    const request = decoded(PLAIN);
    for (const decision of ["allow", "warn", "refuse", "unjudged"] as const) {
      expect(answerOf(request, { ...outcome, decision, task: null })).toEqual({
        decision,
        messages: outcome.messages,
        reply: null,
      });
    }
    // A rewrite, and a size that goes along with whatever is let through.
    for (const decision of ["rewrite", "allow", "warn"] as const)
      expect(answerOf(request, { ...outcome, decision })).toEqual({
        decision,
        messages: outcome.messages,
        reply: { task: "run: x\n", skypilot_config: BODY.skypilot_config },
      });
    expect(answerOf(request, { ...outcome, decision: "refuse" }).reply).toBeNull();
    expect(answerOf(request, { ...outcome, decision: "rewrite", task: null })).toEqual({
      decision: "warn",
      messages: outcome.messages,
      reply: null,
    });
  });

  test("of a RESTful policy: 400 refuses, all else sends the whole request back", () => {
    const request = decoded(JSON.stringify(PLAIN));
    expect(httpAnswerOf(request, { ...outcome, decision: "refuse" })).toEqual({
      status: 400,
      body: "Neurarch: a.\nb.",
    });
    for (const decision of ["allow", "warn", "unjudged"] as const) {
      const { status, body } = httpAnswerOf(request, { ...outcome, decision, task: null });
      expect(status).toBe(200);
      expect(JSON.parse(JSON.parse(body))).toEqual({
        task: BODY.task,
        skypilot_config: BODY.skypilot_config,
      });
    }
    for (const decision of ["rewrite", "allow", "warn"] as const) {
      const { body } = httpAnswerOf(request, { ...outcome, decision });
      expect(JSON.parse(JSON.parse(body)).task).toBe("run: x\n");
    }
  });

  test("are encoded as the request was", () => {
    const reply = { task: "a", skypilot_config: "b" };
    expect(JSON.parse(encodeAnswer(reply, false))).toEqual(reply);
    expect(JSON.parse(JSON.parse(encodeAnswer(reply, true)))).toEqual(reply);
  });
});

describe("what is not training", () => {
  const rows: readonly (readonly [task: string, requestName: string | null, training: boolean])[] = [
    ["run: x", "launch", true],
    ["run: x", null, true],
    ["run: x", "jobs.launch", true],
    ["run: x", "jobs.launch_cluster", true],
    ["run: x", "jobs.launch_controller", false],
    ["run: x", "serve.launch_controller", false],
    ["envs: {NEURARCH_TASK: train}", "jobs.launch_controller", false],
    ["service: {readiness_probe: /}", "launch", false],
    ["service: {readiness_probe: /}", null, false],
    ["service: {pool: {workers: 2}}", "jobs.launch", false],
    ["pool: {workers: 2}", null, false],
    ["run: x", "serve.launch_replica", false],
    ["run: x", "jobs.pool_apply", false],
    ["{pool: {workers: 2}, envs: {NEURARCH_TASK: Train}}", null, true],
    ["{service: {}, envs: {NEURARCH_TASK: train}}", "serve.up", true],
    ["{service: {}, envs: {NEURARCH_TASK: serve}}", "serve.up", false],
  ];
  for (const [text, requestName, training] of rows) {
    test(`${text} ${requestName}`, () => {
      const task = readRequestTask(text);
      if (!task.ok) throw new Error(task.error.message);
      expect(notTraining(task.value, requestName) === null).toBe(training);
    });
  }
});
