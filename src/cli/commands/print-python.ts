import policy from "../../../python-shim/neurarch_gate/__init__.py" with { type: "text" };
import type { Command } from "../command.ts";

export const command: Command = {
  name: "print-python",
  description: "Print the SkyPilot admin policy, a Python file that asks this executable",
  args: {},
  examples: [
    [
      "neurarch-gate print-python > neurarch_gate.py",
      "put it where SkyPilot's Python finds it, with admin_policy: neurarch_gate.NeurarchPolicy",
    ],
  ],
  run: async () => ({ out: policy, exit: 0 }),
};
