/** For a process that works for longer than a submit: the executable starts with a compiler that waits long. */
export function compileSoon(): void {
  if (Bun.isStandaloneExecutable) Bun.unsafe.setJITPolicy(1);
}
