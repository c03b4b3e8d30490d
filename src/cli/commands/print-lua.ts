import filter from "../../../lua/cli_filter.lua" with { type: "text" };
import { executablePath } from "../../host/env.ts";
import { pathKind } from "../../host/fs.ts";
import { LUA_SETTINGS, type LuaSettings, luaWithSettings } from "../../slurm/lua.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { QUIET_FLAG } from "../flags.ts";

/** Where a Debian or RPM package has the executable: a filter that it prints without `--binary` names it there. */
const PACKAGED = "/usr/bin/neurarch-gate";

const flagOf = (setting: string) => setting.replaceAll("_", "-");

/** What a setting is for, in the words of the filter's own comment on its line. */
const meaningOf = (setting: string) =>
  new RegExp(`^ *${setting} = [^\\n]*?, *-- ([^\\n]*)$`, "m").exec(filter)?.[1]?.replace(/^true: /, "") ??
  `sets ${setting}`;

/** What stands for a setting's value in the help. */
const hintOf = (form: (typeof LUA_SETTINGS)[keyof typeof LUA_SETTINGS]) =>
  typeof form !== "string"
    ? form.join("|")
    : { "absolute-path": "FILE", number: "N", text: "TEXT", switch: "" }[form];

export const command: Command = {
  name: "print-lua",
  description: "Print the Slurm filter with a site's settings written into it",
  args: {
    ...Object.fromEntries(
      Object.entries(LUA_SETTINGS).map(([setting, form]) => [
        flagOf(setting),
        form === "switch"
          ? { type: "boolean", description: meaningOf(setting) }
          : { type: "string", valueHint: hintOf(form), description: meaningOf(setting) },
      ]),
    ),
    timeout: { type: "string", valueHint: "N", description: "the same as --timeout-s" },
    ...QUIET_FLAG,
  },
  examples: [
    ["neurarch-gate print-lua > cli_filter.lua", "the filter in warn mode, to be moved beside slurm.conf"],
    [
      "neurarch-gate print-lua --mode reject --gpu-map /etc/neurarch/gpu-map.json",
      "refuse what does not fit",
    ],
  ],
  run,
};

async function run({ values, switches }: ParsedWords): Promise<CommandOutput> {
  const settings = Object.fromEntries(
    Object.keys(LUA_SETTINGS).map((setting) => [
      setting,
      values[flagOf(setting)] ??
        switches[flagOf(setting)] ??
        (setting === "timeout_s" ? values.timeout : undefined),
    ]),
  ) as LuaSettings;
  const own = executablePath() === PACKAGED ? { binary: PACKAGED } : {};
  const given = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
  const out = luaWithSettings(filter, { ...own, ...given });
  return { out, err: await checkFiles(values), exit: 0 };
}

/** Settings that name a file which a submit reads. */
const FILES = ["config", "gpu-map", "partition-map", "cards", "prices"];

/**
 * Reads the named files as a submit will: a wrong one would leave every job unjudged. The filter may be printed on
 * another host than it is for, so a file that is not there is only told. Throws `GateError("settings-invalid")`.
 */
async function checkFiles(values: ParsedWords["values"]): Promise<string> {
  const named = [...FILES, "policy-file"].filter((flag) => values[flag] !== undefined);
  const missing = named.filter((flag) => pathKind(values[flag]!) === "none");
  const there = named.filter((flag) => FILES.includes(flag) && !missing.includes(flag));
  if (there.length > 0) {
    const { loadSettings } = await import("../../gate/load.ts");
    await loadSettings({
      values: Object.fromEntries(there.map((flag) => [flag, values[flag]!])),
      switches: {},
    });
  }
  return missing
    .map(
      (flag) => `neurarch-gate print-lua: --${flag}: ${values[flag]} is not on this host; submits need it.\n`,
    )
    .join("");
}
