import filter from "../../../lua/cli_filter.lua" with { type: "text" };
import { LUA_SETTINGS, type LuaSettings, luaWithSettings } from "../../slurm/lua.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";

const flagOf = (setting: string) => setting.replaceAll("_", "-");

export const command: Command = {
  name: "print-lua",
  description: "Print the Slurm filter with a site's settings written into it",
  args: {
    ...Object.fromEntries(
      Object.entries(LUA_SETTINGS).map(([setting, form]) => [
        flagOf(setting),
        form === "switch"
          ? { type: "boolean", description: `sets ${setting} = true` }
          : {
              type: "string",
              valueHint: Array.isArray(form) ? form.join("|") : "VALUE",
              description: `sets ${setting}`,
            },
      ]),
    ),
    timeout: { type: "string", valueHint: "VALUE", description: "the same as --timeout-s" },
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
  return { out: luaWithSettings(filter, settings), exit: 0 };
}
