import { type HttpAnswer, httpGet } from "../host/http.ts";
import { isPrivateWay } from "../lib/private-way.ts";
import { type Check, failed, ok, warn } from "../slurm/doctor-types.ts";

const PATIENCE_MS = 10_000;
const TRIAL = { task: "name: doctor\n\nrun: 'true'\n", skypilot_config: "{}\n" };
/** What SkyPilot does whenever its policy does not answer. */
const REFUSES = "SkyPilot refuses every request meanwhile";

/** The REST policy at an address: reached, trusted, let in, and answering as SkyPilot reads it. */
export async function checkRest(address: string, version: string): Promise<readonly Check[]> {
  if (!URL.canParse(address))
    return [failed("address", "admin_policy is no whole address", "Write `http://127.0.0.1:8765/`.")];
  const url = new URL(address);
  const authorization =
    url.username === ""
      ? null
      : `Basic ${btoa(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`)}`;
  url.username = "";
  url.password = "";
  const way =
    isPrivateWay(url) || url.protocol === "https:"
      ? ok("address", url.href)
      : warn(
          "address",
          `${url.href} sends tasks, secrets in them, in the clear`,
          "Serve with --tls-cert and --tls-key, and write https://.",
        );
  const ask = (path: string, posted?: string): Promise<HttpAnswer> =>
    httpGet({
      url: path,
      authorization,
      userAgent: `neurarch-gate/${version}`,
      timeoutMs: PATIENCE_MS,
      maxBytes: 1_000_000,
      maxRedirects: 3,
      reported: [],
      ...(posted === undefined ? {} : { posted }),
    });
  const reached = await ask(new URL("/healthz", url).href);
  if (reached.kind === "obstacle") return [way, unreached(reached.obstacle, url)];
  const body = JSON.stringify(
    JSON.stringify({ ...TRIAL, request_name: "validate", at_client_side: true, user: "" }),
  );
  const answer = await ask(url.href, body);
  return [
    way,
    ok("reached", `${url.host} answers`),
    checkAnswer(answer, authorization !== null),
    ...versionOf(await ask(new URL("/metrics", url).href), version),
  ];
}

function unreached(obstacle: string, { host }: URL): Check {
  if (obstacle === "certificate")
    return failed(
      "reached",
      `the certificate of ${host} is not trusted here; ${REFUSES}`,
      "Set REQUESTS_CA_BUNDLE to its authority's file where SkyPilot runs.",
    );
  const check = failed(
    "reached",
    `${host} cannot be reached (${obstacle}); ${REFUSES}`,
    "Start `neurarch-gate serve` there, or correct the address.",
  );
  return { ...check, unreachable: true };
}

function checkAnswer(answer: HttpAnswer, hadKey: boolean): Check {
  if (answer.kind === "obstacle")
    return failed(
      "answer",
      `a request was not answered (${answer.obstacle}); ${REFUSES}`,
      "Look into the server's log.",
    );
  if (answer.status === 401 || answer.status === 403)
    return failed(
      "answer",
      `the server does not let this key in (${answer.status}); ${REFUSES}`,
      hadKey
        ? "Correct user and password in the address."
        : "Write http://user:password@host/ with a key of its --auth-file.",
    );
  if (answer.status === 200 && answer.text.trim() === JSON.stringify(JSON.stringify(TRIAL)))
    return ok("answer", "a request without a GPU comes back as it was");
  return failed(
    "answer",
    `what answers there (status ${answer.status}) is no admin policy of ours; ${REFUSES}, or worse`,
    "Name the address of `neurarch-gate serve`.",
  );
}

function versionOf(answer: HttpAnswer, version: string): Check[] {
  const served =
    answer.kind === "answer" ? /build_info\{version="([^"]*)"\}/.exec(answer.text)?.[1] : undefined;
  if (served === undefined) return [];
  if (served === version) return [ok("version", `the server is neurarch-gate ${served}`)];
  return [
    warn("version", `the server is ${served}, and this is ${version}`, "Install the same one on both."),
  ];
}
