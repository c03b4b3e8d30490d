import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { buildCardTable } from "../../src/request/cards.ts";
import { slurmRequest } from "../../src/request/slurm.ts";
import { isJudged } from "../../src/request/types.ts";
import { readSbatchWords } from "../../src/slurm/sbatch-words.ts";
import { Cluster, slurmIsHere, slurmVersion } from "./cluster.ts";
import { FATES_2411, type Fate, FORMS, type Form } from "./forms.ts";
import { StandIn } from "./standin.ts";

const CI = process.env.CI !== undefined;
const table = buildCardTable();

/** `label = card`, `label ! reason` or `none`, as the table of forms has it. */
function told(options: Readonly<Record<string, string>>): string {
  const [candidate] = slurmRequest(options, table).candidates;
  if (candidate === undefined) return "none";
  return `${candidate.label} ${isJudged(candidate) ? `= ${candidate.card.id}` : `! ${candidate.reason}`}`;
}

test("the table is large, and no row stands in it twice", () => {
  expect(FORMS.length).toBeGreaterThanOrEqual(300);
  expect(new Set(FORMS.map(([words]) => words)).size).toBe(FORMS.length);
});

describe("read from the words of a script", () => {
  for (const [words, expected] of FORMS) {
    test(words, () => {
      const { set } = readSbatchWords(words.split(" ").map((text) => ({ text, line: 1 })));
      expect(told(Object.fromEntries(set.map(({ option, value }) => [option.name, value])))).toBe(expected);
    });
  }
});

/** What a real submit came to. */
interface Fared {
  /** The job's id; null when it was refused. */
  readonly id: string | null;
  readonly err: string;
  /** What the filter handed over, read; null when the binary was not asked. */
  readonly heard: string | null;
}

/** GPUs by type of a text like `told`'s; null where it counts none. */
function counted(
  text: string,
): { readonly type: string; readonly count: number; readonly nodes: number }[] | null {
  if (text === "none" || text.includes("! shared-gpu")) return [];
  const [label = ""] = text.split(/ [=!] /);
  const parts = label.split(" + ").map((part) => {
    const match = /^(.*):(\d+)(?: x (\d+) nodes| over \d+ nodes)?$/.exec(part);
    if (match === null) return null;
    const nodes = Number(match[3] ?? 1);
    return { type: match[1]!.toLowerCase(), count: Number(match[2]) * nodes, nodes };
  });
  return parts.every((part) => part !== null) ? parts : null;
}

const total = (parts: readonly { readonly count: number }[]) =>
  parts.reduce((sum, { count }) => sum + count, 0);

const newer = slurmVersion() >= "23.11";

function fateOf([words, , fate]: Form): Fate {
  return (newer ? FATES_2411[words] : undefined) ?? fate ?? "allocated";
}

// Under CI these run and fail where something is missing; elsewhere they are left out.
describe.skipIf(!CI && !slurmIsHere)("the same forms under a real Slurm", () => {
  let slurm: Cluster;
  const fared = new Map<string, Fared>();
  /** What `scontrol show job` says of each job while it is held, and after all that can has run. */
  let asked: ReadonlyMap<string, string>;
  let ended: ReadonlyMap<string, string>;

  beforeAll(() => {
    slurm = Cluster.start({ accounting: true });
    const gate = StandIn.answering(join(slurm.home, "gates"), ["decision=allow"]);
    slurm.install({ binary: gate.path, timeout_s: 60 });
    for (const form of FORMS) fared.set(form[0], submit(form, gate));
    asked = slurm.records();
    for (const form of FORMS) {
      const { id } = fared.get(form[0])!;
      if (id !== null && fateOf(form) === "allocated") slurm.run(["scontrol", "release", id]);
    }
    slurm.settle(120_000);
    ended = slurm.records();
  }, 300_000);
  afterAll(() => slurm?.stop(), 60_000);

  function submit([words]: Form, gate: StandIn): Fared {
    gate.forget();
    const { exit, out, err } = slurm.sbatch([...words.split(" "), "--wrap", "true"], {
      env: { NEURARCH_MODEL: "a/b" },
    });
    const [call] = gate.calls;
    return {
      id: exit === 0 ? out.trim() : null,
      err,
      heard: call === undefined ? null : told(flagsOf(call)),
    };
  }

  for (const form of FORMS) {
    const [words, expected] = form;
    test(words, () => {
      const { id, err, heard } = fared.get(words)!;
      const fate = fateOf(form);
      // What is refused before the filter runs is heard of by nobody.
      if (heard !== null) expect(heard.replace(/--gres=gres[:/]/, "--gres=")).toBe(expected);
      else if (id !== null) expect(expected).toBe("none");
      if (fate === "refused") expect({ words, id }).toEqual({ words, id: null });
      if (fate === "refused" || fate === "apart") return;
      expect({ words, err, refused: id === null }).toMatchObject({ words, refused: false });
      const ours = counted(expected)!;
      if (fate === "asked") {
        expect({
          words,
          gpus: Number(/TRES=\S*gres\/gpu=(\d+)/.exec(asked.get(id!) ?? "")?.[1] ?? 0),
        }).toEqual({ words, gpus: total(ours) });
        return;
      }
      const show = ended.get(id!) ?? "";
      const given = [
        ...(/JOB_GRES=(\S+)/.exec(show)?.[1] ?? "").matchAll(/gpu:(?:([\w.]+):)?(\d+)(?=,|$)/g),
      ].map(([, type = "gpu", count]) => ({ type, count: Number(count) }));
      expect({ words, state: /JobState=(\S+)/.exec(show)?.[1], gpus: total(given) }).toEqual({
        words,
        state: "COMPLETED",
        gpus: total(ours),
      });
      const [first] = ours;
      if (first !== undefined && first.type !== "gpu")
        expect(new Set(given.map(({ type }) => type))).toEqual(new Set([first.type]));
      if (first !== undefined && first.nodes > 1)
        expect(Number(/NumNodes=(\d+)/.exec(show)?.[1])).toBe(first.nodes);
    });
  }
});

/** A call of the binary as options: `--nodes 2 --exclusive=user`. */
function flagsOf(call: readonly string[]): Record<string, string> {
  const options: Record<string, string> = {};
  for (let at = 1; at < call.length; at++) {
    const word = call[at]!;
    const joint = /^--([a-z-]+)=(.*)$/s.exec(word);
    if (joint !== null) options[joint[1]!] = joint[2]!;
    else if (word.startsWith("--")) options[word.slice(2)] = call[++at]!;
  }
  return options;
}
