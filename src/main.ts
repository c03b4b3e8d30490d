import { runApp } from "./cli/app.ts";
import { commandLine } from "./host/env.ts";
import { endNow, setExitCode, writeError, writeOut } from "./host/out.ts";

const output = await runApp(commandLine());
if (output.err !== undefined) writeError(output.err);
const lost = output.out === undefined ? null : writeOut(output.out);
if (lost !== null && !output.always) writeError(`neurarch-gate: the answer could not be written: ${lost}.\n`);
setExitCode(lost !== null && !output.always ? 70 : output.exit);
output.after?.();
if (output.ends === true) endNow();
