import type { CommandTree } from "../../render/command-tree.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { oneOfWords } from "../words.ts";

const SHELLS: Readonly<Record<string, () => Promise<(tree: CommandTree) => string>>> = {
  bash: async () => (await import("../../render/completion-bash.ts")).bashCompletion,
  zsh: async () => (await import("../../render/completion-zsh.ts")).zshCompletion,
  fish: async () => (await import("../../render/completion-fish.ts")).fishCompletion,
};

export const command: Command = {
  name: "completion",
  description: "Print completions for a shell: commands, flags, their values, models and cards",
  args: { shell: { type: "positional", description: `one of ${Object.keys(SHELLS).join(", ")}` } },
  completes: { shell: Object.keys(SHELLS) },
  examples: [
    [
      "neurarch-gate completion bash > ~/.local/share/bash-completion/completions/neurarch-gate",
      "for the next shell; or `source <(neurarch-gate completion bash)`",
    ],
    ["neurarch-gate completion zsh > ~/.zfunc/_neurarch-gate", "for zsh, into a folder of $fpath"],
    ["neurarch-gate completion fish > ~/.config/fish/completions/neurarch-gate.fish", "for fish"],
  ],
  run,
};

async function run({ words }: ParsedWords): Promise<CommandOutput> {
  const make = await SHELLS[oneOfWords("completion for", words[0]!, Object.keys(SHELLS))]!();
  const { commandTree } = await import("../tree.ts");
  return { out: make(await commandTree()), exit: 0 };
}
