import { freshPolicy } from "../../gate/fresh-policy.ts";
import { loadSettings } from "../../gate/load.ts";
import { memoSizer } from "../../gate/memo-sizer.ts";
import { makeRecorder } from "../../gate/recorder.ts";
import { makeSizer, SKYPILOT_DEADLINE_MS } from "../../gate/size.ts";
import { nowMs } from "../../host/clock.ts";
import { environment, executablePath, workingDirectory } from "../../host/env.ts";
import { readText } from "../../host/fs.ts";
import { compileSoon } from "../../host/jit.ts";
import { openLog } from "../../host/log.ts";
import { startServer, stopSignal } from "../../host/server.ts";
import { GateError } from "../../lib/errors.ts";
import { isAddress } from "../../lib/sink.ts";
import { type Keys, keysOf } from "../../serve/auth.ts";
import { LedgerCollector } from "../../serve/collect.ts";
import { withPolicyEnvironment } from "../../serve/environment.ts";
import { isLocal, listenOf } from "../../serve/listen.ts";
import { Metrics } from "../../serve/metrics.ts";
import { answerRequest } from "../../serve/service.ts";
import { systemdUnit } from "../../serve/unit.ts";
import { warmUp } from "../../serve/warm-up.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { SITE_FLAGS } from "../flags.ts";
import { version } from "../version.ts";

/** Largest request: a task with everything it carries, its scripts twice and in JSON twice; most have 10 kB. */
const MAX_BODY_BYTES = 4_000_000;
/** Time that made-up requests get before the first real one. */
const WARM_UP_MS = 400;
/** Largest file of keys or certificates. */
const MAX_FILE_BYTES = 1_000_000;
/** SkyPilot waits 30 s for a policy; a connection that says nothing for longer is nobody's. */
const IDLE_TIMEOUT_S = 35;
/** Time that answers under way get when the server is asked to end. */
const GRACE_MS = 10_000;

export const command: Command = {
  name: "serve",
  description: "Serve SkyPilot's RESTful admin policy, with /healthz, /metrics and POST /v1/judge",
  args: {
    listen: {
      type: "string",
      valueHint: "ADDRESS",
      description: "HOST:PORT or unix:PATH (127.0.0.1:8765)",
    },
    "socket-mode": {
      type: "string",
      valueHint: "OCTAL",
      description: "permission bits of a unix socket; 0666 lets every user of this host in",
    },
    "auth-file": {
      type: "string",
      valueHint: "FILE",
      description: "keys, one a line: user:password or a token; needed off loopback",
    },
    "tls-cert": { type: "string", valueHint: "FILE", description: "certificate chain, PEM" },
    "tls-key": { type: "string", valueHint: "FILE", description: "its private key, PEM" },
    log: {
      type: "boolean",
      description: "access log on stderr, a JSON line an answer; --no-log turns it off (on)",
    },
    "print-unit": { type: "boolean", description: "print a systemd unit for these flags, and end" },
    config: SITE_FLAGS.config,
    mutate: SITE_FLAGS.mutate,
    "fail-closed": SITE_FLAGS["fail-closed"],
    "max-cost-usd": SITE_FLAGS["max-cost-usd"],
    prices: SITE_FLAGS.prices,
    cards: SITE_FLAGS.cards,
    "gpu-map": SITE_FLAGS["gpu-map"],
    headroom: SITE_FLAGS.headroom,
    sizing: SITE_FLAGS.sizing,
    cli: SITE_FLAGS.cli,
    "plan-url": SITE_FLAGS["plan-url"],
    timeout: SITE_FLAGS.timeout,
    cluster: SITE_FLAGS.cluster,
    "policy-file": SITE_FLAGS["policy-file"],
    "client-sizing": SITE_FLAGS["client-sizing"],
    ledger: SITE_FLAGS.ledger,
    "ledger-anonymous": SITE_FLAGS["ledger-anonymous"],
  },
  examples: [
    ["neurarch-gate serve", "then `admin_policy: http://127.0.0.1:8765/` in SkyPilot's config"],
    [
      "neurarch-gate serve --listen unix:/run/neurarch/gate.sock --mutate",
      "behind a proxy of the site's own",
    ],
    [
      "neurarch-gate serve --print-unit >/etc/systemd/system/neurarch-gate.service",
      "as a service of the machine",
    ],
  ],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const { values, switches } = input;
  const listen = listenOf(values.listen ?? "127.0.0.1:8765");
  const keys = readKeys(values["auth-file"]);
  if (keys === null && !isLocal(listen)) {
    throw new GateError(
      "usage",
      `--listen ${values.listen} is reached from other machines, and no --auth-file says who may ask`,
      "Name a file of keys, or listen on 127.0.0.1 or a unix socket.",
    );
  }
  const tls = readTls(values["tls-cert"], values["tls-key"]);
  if (tls !== null && listen.kind === "unix")
    throw new GateError("usage", "--tls-cert goes with HOST:PORT only", "Leave it out for a unix socket.");
  const socketMode = socketModeOf(values["socket-mode"]);
  if (socketMode !== null && listen.kind !== "unix")
    throw new GateError("usage", "--socket-mode goes with a unix socket only", "Leave it out.");
  const settings = await loadSettings(withPolicyEnvironment(input, environment()));
  if (switches["print-unit"] === true)
    return { out: systemdUnit(executablePath(), unitWords(input), ledgerPath(settings.ledger)), exit: 0 };

  const place = { cwd: "/", env: environment(), deadlineMs: SKYPILOT_DEADLINE_MS };
  // The verdicts do not wait for whoever reads the log.
  const log = openLog();
  const recorder = makeRecorder(settings, "serve", {
    cwd: workingDirectory(),
    env: environment(),
    version: version(),
  });
  const service = {
    recorder,
    collector: LedgerCollector.takes(recorder) ? new LedgerCollector(recorder) : null,
    settings,
    size: memoSizer(makeSizer(settings, place)),
    policyOf: freshPolicy(settings, environment()),
    metrics: new Metrics({ version: version(), startMs: nowMs() }),
    keys,
    log: switches.log === false ? null : log,
  };
  compileSoon();
  await warmUp(settings, WARM_UP_MS);
  const ended = stopSignal();
  const server = await startServer({
    listen,
    ...(socketMode === null ? {} : { socketMode }),
    tls,
    maxBodyBytes: MAX_BODY_BYTES,
    idleTimeoutS: IDLE_TIMEOUT_S,
    answer: (request) => answerRequest(request, service),
    tell: (line) => log(`neurarch-gate serve: ${line}`),
  }).catch((error: unknown) => {
    const certificate = tls !== null && /PEM|X\.?509|routines/.test(String(error));
    if (certificate)
      throw new GateError(
        "settings-invalid",
        `--tls-cert ${values["tls-cert"]} and --tls-key ${values["tls-key"]} are no certificate and its key (${String(error).match(/[A-Z_]+$/)?.[0] ?? "unreadable"})`,
        "Name a PEM certificate and the private key it was made with.",
      );
    const inUse = (error as { code?: string }).code === "EADDRINUSE";
    const why = inUse ? "the address is in use" : error instanceof Error ? error.message : String(error);
    throw new GateError(
      "unreachable",
      `cannot listen on ${values.listen ?? "127.0.0.1:8765"}: ${why.replace(/[.?]$/, "")}`,
      "Free the address, or name another one with --listen.",
    );
  });
  log(`neurarch-gate serve: listening on ${server.address}`);
  await ended;
  await server.stop(GRACE_MS);
  recorder?.flush();
  log("neurarch-gate serve: ended");
  return { exit: 0 };
}

function ledgerPath(ledger: string | null): string | null {
  return ledger === null || isAddress(ledger) ? null : ledger;
}

function socketModeOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^0?[0-7]{3}$/.test(text)) return Number.parseInt(text, 8);
  throw new GateError(
    "usage",
    `--socket-mode is \`${text}\`, not permission bits`,
    "Write `--socket-mode 0660`, say.",
  );
}

/** The flags again, for the unit: paths and switches as they were given. */
function unitWords({ values, switches }: ParsedWords): string[] {
  const given = Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);
  const turned = Object.entries(switches)
    .filter(([name]) => name !== "print-unit")
    .map(([name, on]) => (on ? `--${name}` : `--no-${name}`));
  return [...given, ...turned];
}

function readKeys(path: string | undefined): Keys | null {
  return path === undefined ? null : keysOf(fileText("--auth-file", path), path);
}

function readTls(cert: string | undefined, key: string | undefined): { cert: string; key: string } | null {
  if (cert === undefined && key === undefined) return null;
  if (cert === undefined || key === undefined) {
    const [given, missing] = cert === undefined ? ["key", "cert"] : ["cert", "key"];
    throw new GateError("usage", `--tls-${given} is given without --tls-${missing}`, "Give both, or none.");
  }
  return { cert: fileText("--tls-cert", cert), key: fileText("--tls-key", key) };
}

function fileText(flag: string, path: string): string {
  const text = readText(path, MAX_FILE_BYTES);
  if (!text.ok)
    throw new GateError("settings-invalid", `${flag}: ${text.error.message}`, "Name a readable file.");
  return text.value;
}
