/** Task files for a real `sky`, each with values that nobody may tell on. */
export const PLANTED = [
  "planted-secret",
  "planted-variable",
  "planted-mount",
  "planted-setup",
  "planted-folder",
  "planted-password",
] as const;

/** A task with `accelerators` as YAML has them; `more` are further lines of the file. */
export function taskFile(
  accelerators: string,
  { envs = {}, more = "" }: { envs?: Readonly<Record<string, string>>; more?: string } = {},
): string {
  const facts = {
    NEURARCH_MODEL: "Qwen/Qwen3-0.6B",
    NEURARCH_BATCH: "1",
    NEURARCH_SEQ_LEN: "2048",
    NEURARCH_HOURS: "1",
    WANDB_API_KEY: PLANTED[1],
    ...envs,
  };
  const lines = Object.entries(facts).map(([name, value]) => `  ${name}: "${value}"\n`);
  return (
    `name: t\nresources:\n  accelerators: ${accelerators}\n${more}envs:\n${lines.join("")}` +
    `secrets: {TOKEN: ${PLANTED[0]}}\nrun: python train.py\n`
  );
}
