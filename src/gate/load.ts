import { pathKind, readText } from "../host/fs.ts";
import { GateError } from "../lib/errors.ts";
import { ok } from "../lib/result.ts";
import { REPO_POLICIES } from "../policy/types.ts";
import { buildCardTable } from "../request/cards.ts";
import { MODES, type Settings, SITE_FILE, SIZINGS, type SiteFile } from "./settings.ts";

/** Largest settings file that is read. */
const MAX_SETTINGS_BYTES = 1_000_000;

/** Settings given on the command line, still as words. Absent = not given. */
export interface SettingFlags {
  readonly values: Readonly<Record<string, string>>;
  readonly switches: Readonly<Record<string, boolean>>;
}

/**
 * Resolves a site's settings once: flags over `--config` (or `/etc/neurarch/gate.toml`) over the defaults.
 * `known` stands in for the site file. Throws `GateError("settings-invalid")` naming file and key, `GateError("usage")` naming the flag.
 */
export async function loadSettings(flags: SettingFlags, known?: SiteFile): Promise<Settings> {
  const { values, switches } = flags;
  const site = known ?? (await readSiteFile(values.config));
  const file = async (flag: string, fromSite: string | Record<string, unknown> | undefined) => {
    const given = values[flag];
    if (given !== undefined) return readJsonObject(given, `--${flag}`);
    if (typeof fromSite !== "string") return fromSite ?? null;
    const key = `\`${flag.replaceAll("-", "_")}\` of the site file`;
    if (!fromSite.startsWith("/")) {
      throw new GateError(
        "settings-invalid",
        `${key} is ${fromSite}, a path that starts in the user's folder`,
        "Write the whole path, beginning with /.",
      );
    }
    return readJsonObject(fromSite, key);
  };
  const partitionMap = await file("partition-map", site.partition_map);
  return {
    mode: oneOf("mode", values.mode, MODES) ?? site.mode ?? "warn",
    mutate: switches.mutate ?? site.mutate ?? false,
    failClosed: switches["fail-closed"] ?? site.fail_closed ?? false,
    maxCostUsd: numberOf("max-cost-usd", values, { above: 0 }) ?? site.max_cost_usd ?? null,
    headroom: numberOf("headroom", values, { from: 1, to: 10 }) ?? site.headroom ?? 1.15,
    sizing: oneOf("sizing", values.sizing, SIZINGS) ?? site.sizing ?? "auto",
    cli: values.cli ?? site.cli ?? null,
    planUrl: values["plan-url"] ?? site.plan_url ?? null,
    timeoutS: numberOf("timeout", values, { above: 0 }) ?? site.timeout_s ?? null,
    cluster: values.cluster ?? site.cluster ?? null,
    policyFile: values["policy-file"] ?? site.policy_file ?? null,
    repoPolicy: oneOf("repo-policy", values["repo-policy"], REPO_POLICIES) ?? site.repo_policy ?? "honour",
    clientSizing: switches["client-sizing"] ?? site.client_sizing ?? true,
    ledger: values.ledger ?? site.ledger ?? null,
    ledgerAnonymous: switches["ledger-anonymous"] ?? site.ledger_anonymous ?? false,
    ledgerUpkeep: {
      tokenFile: site.ledger_token_file ?? null,
      rotateMb: site.ledger_rotate_mb ?? null,
      rotateDays: site.ledger_rotate_days ?? null,
      keepDays: site.ledger_keep_days ?? null,
    },
    annotate: switches.annotate ?? site.annotate ?? false,
    defaultGpuType: values["default-gpu-type"] ?? site.default_gpu_type ?? null,
    partitionMap:
      partitionMap === null ? null : textValues(partitionMap, values["partition-map"] ?? "partition_map"),
    hoursFromTime: switches["hours-from-time"] ?? site.hours_from_time ?? false,
    table: buildCardTable({
      cards: await file("cards", site.cards),
      prices: await file("prices", site.prices),
      gpuMap: await file("gpu-map", site.gpu_map),
    }),
    factDefaults: Object.fromEntries(
      Object.entries(site.defaults ?? {}).map(([key, value]) => [key, String(value)]),
    ),
  };
}

async function readSiteFile(given: string | undefined): Promise<SiteFile> {
  const path = given ?? SITE_FILE;
  if (given === undefined && pathKind(path) === "none") return {};
  const text = readText(path, MAX_SETTINGS_BYTES);
  if (!text.ok)
    throw new GateError(
      "settings-invalid",
      text.error.message,
      "Correct --config, or the file's permissions.",
    );
  // TOML and its schema are loaded only where a site file exists: every submit would pay for them.
  const { parseSiteFile } = await import("./site-file.ts");
  return parseSiteFile(text.value, path);
}

/** A JSON object from a file, or given in place (`{"H100": 2.0}`), as a policy in code hands its prices over. */
function readJsonObject(given: string, flag: string): Record<string, unknown> {
  const inline = given.trimStart().startsWith("{");
  const path = inline ? "the value" : given;
  const text = inline ? ok(given) : readText(given, MAX_SETTINGS_BYTES);
  if (!text.ok)
    throw new GateError("settings-invalid", `${flag}: ${text.error.message}`, "Name a readable JSON file.");
  let value: unknown;
  try {
    value = JSON.parse(text.value);
  } catch (error) {
    throw new GateError(
      "settings-invalid",
      `${flag}: ${path} is not JSON: ${(error as Error).message}`,
      "Correct it.",
    );
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new GateError(
      "settings-invalid",
      `${flag}: ${path} holds no JSON object`,
      'Write it as {"name": value, ...}.',
    );
  }
  // `$schema` tells an editor where the file's schema is.
  const { $schema: _, ...table } = value as Record<string, unknown>;
  return table;
}

function textValues(map: Record<string, unknown>, where: string): Record<string, string> {
  for (const [key, value] of Object.entries(map)) {
    if (typeof value !== "string" || value === "") {
      throw new GateError(
        "settings-invalid",
        `\`${key}\` in ${where} is not the name of a GPU type`,
        'Write it as {"partition": "type"}.',
      );
    }
  }
  return map as Record<string, string>;
}

function oneOf<T extends string>(flag: string, value: string | undefined, allowed: readonly T[]): T | null {
  if (value === undefined) return null;
  if ((allowed as readonly string[]).includes(value)) return value as T;
  throw new GateError(
    "usage",
    `--${flag} is \`${value}\`, not one of ${allowed.join(", ")}`,
    `Write \`--${flag} ${allowed[0]}\`.`,
  );
}

function numberOf(
  flag: string,
  values: Readonly<Record<string, string>>,
  bounds: { readonly above?: number; readonly from?: number; readonly to?: number },
): number | null {
  const text = values[flag];
  if (text === undefined) return null;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  const low =
    bounds.above !== undefined ? value > bounds.above : bounds.from === undefined || value >= bounds.from;
  if (Number.isFinite(value) && low && (bounds.to === undefined || value <= bounds.to)) return value;
  const range =
    bounds.above !== undefined
      ? `a number above ${bounds.above}`
      : `a number from ${bounds.from} to ${bounds.to}`;
  throw new GateError("usage", `--${flag} is \`${text}\`, not ${range}`, `Write \`--${flag} 1.5\`, say.`);
}
