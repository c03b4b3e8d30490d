import type { Command, CommandOutput } from "../command.ts";

export const command: Command = {
  name: "man",
  description: "Print the manual page, made from the same descriptions as the help",
  args: {},
  examples: [
    ["neurarch-gate man | man -l -", "read it"],
    ["neurarch-gate man > /usr/local/share/man/man1/neurarch-gate.1", "install it"],
  ],
  run,
};

async function run(): Promise<CommandOutput> {
  const { manPage } = await import("../../render/man.ts");
  const { commandTree } = await import("../tree.ts");
  const { MAN_SECTIONS } = await import("../man-sections.ts");
  const { buildDay } = await import("../version.ts");
  return { out: manPage(await commandTree(), buildDay(), MAN_SECTIONS), exit: 0 };
}
