import { type Check, type DoctorHost, failed, ok, skipped, warn } from "../slurm/doctor-types.ts";

/** Runs in the Python that runs SkyPilot; tells what it finds as one line of JSON. The current folder is not `sky`'s. */
const PROBE = `
import importlib, json, sys
sys.path[:] = [p for p in sys.path if p]
out = {}
try:
    import sky
    out['sky'] = sky.__version__
except Exception as e:
    out['skyError'] = '%s: %s' % (type(e).__name__, e)
else:
    module, _, name = sys.argv[1].rpartition('.')
    try:
        found = importlib.import_module(module)
        out['file'] = getattr(found, '__file__', None)
        cls = getattr(found, name)
        out['policy'] = isinstance(cls, type) and issubclass(cls, sky.AdminPolicy)
        gate = sys.modules.get('neurarch_gate')
        base = getattr(gate, 'NeurarchPolicy', None)
        out['ours'] = base is not None and isinstance(cls, type) and issubclass(cls, base)
        if out['ours']:
            out['shim'] = gate.__file__
            out['version'] = gate.__version__
            out['binary'] = cls.binary
            names = 'max_cost_usd prices sizing cli plan_url config policy_file repo_policy ledger timeout_s fail_closed'
            out['settings'] = {n: (json.dumps(v) if isinstance(v, dict) else str(v))
                               for n, v in ((n, cls._setting(n)) for n in names.split()) if v is not None}
            body = {'task': "name: doctor\\nrun: 'true'\\n", 'skypilot_config': '{}', 'request_name': 'validate'}
            try:
                out['decision'] = cls._ask(json.dumps(body), False)['decision']
            except Exception as e:
                out['askError'] = '%s: %s' % (type(e).__name__, e)
    except Exception as e:
        out['error'] = '%s: %s' % (type(e).__name__, e)
print('\\nneurarch-doctor ' + json.dumps(out))
`;

interface Probe {
  readonly sky?: string;
  readonly skyError?: string;
  readonly error?: string;
  readonly policy?: boolean;
  readonly ours?: boolean;
  readonly shim?: string;
  readonly version?: string;
  readonly binary?: string;
  readonly settings?: Readonly<Record<string, string>>;
  readonly decision?: string;
  readonly askError?: string;
}

const LATER = ["sky", "class", "shim", "binary", "settings", "answer"];
const FLAGS = ["max_cost_usd", "prices", "sizing", "cli", "plan_url", "config", "repo_policy"];

/** The class policy: importable where SkyPilot runs, of this version, and its executable answering. */
export async function checkClass(
  policy: string,
  shim: string,
  given: string | null,
  host: DoctorHost,
  self: string,
): Promise<readonly Check[]> {
  const later = (from: number, why: string) => LATER.slice(from).map((check) => skipped(check, why));
  const python = given ?? pythonOf(host);
  if (python === null)
    return [
      failed(
        "python",
        "neither sky nor python3 is on PATH",
        "Name the Python that runs SkyPilot with --python.",
      ),
      ...later(0, "not looked at without a Python"),
    ];
  const ran = await host.run([python, "-c", PROBE, policy]);
  const line = /^neurarch-doctor (.*)$/m.exec(ran.out)?.[1];
  if (line === undefined)
    return [
      failed(
        "python",
        `${python} ${ran.timedOut ? "gave no answer in time" : `did not run: ${ran.err.trim().split("\n").at(-1) ?? ""}`}`,
        "Name the Python that runs SkyPilot with --python.",
      ),
      ...later(0, "not looked at without a Python"),
    ];
  const probe = JSON.parse(line) as Probe;
  const checks: Check[] = [ok("python", python)];
  if (probe.sky === undefined)
    return [
      ...checks,
      failed(
        "sky",
        `${python} cannot import sky (${probe.skyError})`,
        "Name the Python that runs SkyPilot with --python, or install skypilot there.",
      ),
      ...later(1, "not looked at without SkyPilot"),
    ];
  checks.push(
    /^0\.13\./.test(probe.sky)
      ? ok("sky", `SkyPilot ${probe.sky}`)
      : warn(
          "sky",
          `SkyPilot ${probe.sky} is not among the tested ones (0.13)`,
          "Try a dry run: sky launch --dryrun.",
        ),
  );
  const wrong = classProblem(policy, python, probe);
  if (wrong !== null) return [...checks, wrong, ...later(2, "not looked at without the class")];
  checks.push(ok("class", `${policy} can be imported`));
  return [
    ...checks,
    checkShim(probe, shim, host),
    await checkBinary(probe.binary ?? "", host, self),
    await checkSettings(probe.settings ?? {}, host),
    ...checkLedger(probe.settings?.ledger, host),
    checkAnswer(probe),
  ];
}

/** The Python in the first line of `sky`, or python3. */
function pythonOf(host: DoctorHost): string | null {
  const search = host.env.PATH ?? "";
  const sky = host.find("sky", search);
  const first = sky === null ? undefined : /^#!\s*(\S*python\S*)/.exec(host.read(sky) ?? "")?.[1];
  return first ?? host.find("python3", search);
}

function classProblem(
  policy: string,
  python: string,
  { error, policy: isPolicy, ours }: Probe,
): Check | null {
  if (error !== undefined)
    return failed(
      "class",
      `${python} cannot import ${policy} (${error}); SkyPilot then refuses every request`,
      `${python} -m pip install ./python-shim, or put the output of neurarch-gate print-python on its PYTHONPATH.`,
    );
  if (isPolicy !== true)
    return failed(
      "class",
      `${policy} is no sky.AdminPolicy, and SkyPilot refuses every request`,
      "Write neurarch_gate.NeurarchPolicy, or a subclass of it.",
    );
  if (ours !== true)
    return failed(
      "class",
      `${policy} is not NeurarchPolicy, nor a subclass of it`,
      "Write neurarch_gate.NeurarchPolicy, or a subclass of it.",
    );
  return null;
}

function checkShim({ shim: path = "", version }: Probe, shim: string, host: DoctorHost): Check {
  const fix = "Install ./python-shim of this version, or print it with neurarch-gate print-python.";
  if (version !== host.version)
    return warn("shim", `${path} is ${version}, and this executable is ${host.version}`, fix);
  if (host.read(path) !== shim)
    return warn("shim", `${path} is not the file that this executable prints`, fix);
  return ok("shim", `${path} is ${version}`);
}

async function checkBinary(path: string, host: DoctorHost, self: string): Promise<Check> {
  const fix = `install -m 0755 ${self} ${path}, or set \`binary\` in a subclass.`;
  if (!path.startsWith("/"))
    return failed(
      "binary",
      `binary is ${path}, which is no whole path`,
      "Write the whole path in the subclass.",
    );
  const info = host.info(path);
  if (info === null) return failed("binary", `${path} does not exist, so nothing is judged`, fix);
  if (info.kind !== "file") return failed("binary", `${path} is no file, so nothing is judged`, fix);
  if ((info.mode & 0o111) === 0)
    return failed("binary", `${path} may not be run (mode ${info.mode.toString(8)})`, `chmod 0755 ${path}`);
  const { exit, out, err } = await host.run([path, "--version"]);
  const version = /^neurarch-gate (\S+)/.exec(out)?.[1];
  if (exit !== 0 || version === undefined)
    return failed(
      "binary",
      `${path} --version did not answer: ${(err || out).trim().split("\n")[0] ?? ""}`,
      fix,
    );
  if (version !== host.version)
    return warn("binary", `${path} is ${version}, and this is ${host.version}`, fix);
  return ok("binary", `${path} is neurarch-gate ${version}`);
}

async function checkSettings(settings: Readonly<Record<string, string>>, host: DoctorHost): Promise<Check> {
  const flags = FLAGS.filter((name) => settings[name] !== undefined);
  const values = Object.fromEntries(flags.map((name) => [name.replaceAll("_", "-"), settings[name]!]));
  const problem = await host.settingsProblem(values);
  if (problem !== null)
    return failed("settings", `${problem.message}, so no task is judged`, problem.hint ?? "Correct it.");
  const timeout = Number(settings.timeout_s);
  if (!(timeout > 0))
    return failed(
      "settings",
      `timeout_s is ${settings.timeout_s}, which is no number of seconds`,
      "Write 25.",
    );
  const file = settings.policy_file;
  if (file !== undefined && host.read(file) === null)
    return failed(
      "settings",
      `policy_file = ${file} cannot be read, so it is not applied`,
      "Put it there, or leave it out.",
    );
  const closed = /^\s*(?:1|true|yes|on)\s*$/i.test(settings.fail_closed ?? "");
  return ok(
    "settings",
    closed
      ? "fails closed: what cannot be judged is refused"
      : "fails open: what cannot be judged is let through",
  );
}

function checkLedger(path: string | undefined, host: DoctorHost): Check[] {
  if (path === undefined) return [];
  const info = host.info(path);
  if (info?.kind !== "directory")
    return [
      warn("ledger", `${path} is no folder, so verdicts are not recorded`, `install -d -m 1733 ${path}`),
    ];
  if ((info.mode & 0o222) === 0)
    return [
      warn("ledger", `nobody can write into ${path}, so verdicts are not recorded`, `chmod 1733 ${path}`),
    ];
  return [ok("ledger", `verdicts are recorded in ${path}`)];
}

function checkAnswer({ decision, askError }: Probe): Check {
  if (askError !== undefined)
    return failed(
      "answer",
      `the executable did not answer a request (${askError})`,
      "See the lines above; try `neurarch-gate judge --admin-policy` there.",
    );
  if (decision !== "allow")
    return failed(
      "answer",
      `a request without a GPU is answered with ${decision}`,
      "See the settings above.",
    );
  return ok("answer", "a request without a GPU is let through");
}
