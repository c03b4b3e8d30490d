import { runApp } from "./cli/app.ts";
import { commandLine } from "./host/env.ts";
import { setExitCode, writeError, writeOut } from "./host/out.ts";

const output = await runApp(commandLine());
if (output.err !== undefined) writeError(output.err);
if (output.out !== undefined) writeOut(output.out);
setExitCode(output.exit);
