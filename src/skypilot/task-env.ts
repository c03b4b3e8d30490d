import { readRequestTask } from "./task.ts";

/**
 * A request's task with one variable more among its `envs`, or with another value of it, and every other character as
 * it was. SkyPilot writes top-level keys in column one and everything else indented, so a line `envs:` is the mapping
 * itself. Null where the text does not say exactly that afterwards; `value` is printable ASCII on one line.
 */
export function withTaskEnv(text: string, name: string, value: string): string | null {
  const known = readRequestTask(text);
  if (known.ok && known.value.envs[name] === value) return text;
  const line = `  ${name}: '${value.replaceAll("'", "''")}'\n`;
  const result = withLine(text, name, line);
  return result !== null && saysOnly(text, result, name, value) ? result : null;
}

function withLine(text: string, name: string, line: string): string | null {
  const head = /^envs:[ ]*\n/m.exec(text);
  if (head === null)
    return /^envs:/m.test(text) ? null : `${text}${text.endsWith("\n") ? "" : "\n"}\nenvs:\n${line}`;
  const start = head.index + head[0].length;
  const length = /^(?![ \n])/m.exec(text.slice(start))?.index ?? text.length - start;
  const others = text
    .slice(start, start + length)
    .replace(new RegExp(`^  ${name}:.*\\n(?: {3,}.*\\n)*`, "m"), "");
  return text.slice(0, start) + line + others + text.slice(start + length);
}

function saysOnly(before: string, after: string, name: string, value: string): boolean {
  const [was, is] = [readRequestTask(before), readRequestTask(after)];
  if (!was.ok || !is.ok) return false;
  const { [name]: _, ...others } = was.value.envs;
  const { [name]: now, ...rest } = is.value.envs;
  const told = ({ envOrigins: _, line: __, place: ___, ...task }: typeof was.value) => JSON.stringify(task);
  return (
    now === value &&
    told({ ...was.value, envs: sorted(others) }) === told({ ...is.value, envs: sorted(rest) })
  );
}

function sorted(envs: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(envs).sort(([a], [b]) => (a < b ? -1 : 1)));
}
