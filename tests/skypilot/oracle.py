"""What SkyPilot itself makes of the documents in tests/fixtures/skypilot/documents.txt.

Usage: python oracle.py documents.txt normal-forms.json
       python oracle.py --check documents.txt normal-forms.json
Needs skypilot 0.13.0 (with fastapi 0.115.12 and starlette 0.46.2). Nothing is looked up: a catalogue of a few
cards is written to a temporary home first.
"""
import json
import math
import os
import sys
import tempfile

HOME = tempfile.mkdtemp(prefix='neurarch-oracle-')
os.environ.update(HOME=HOME, SKYPILOT_DISABLE_USAGE_COLLECTION='1')
COMMON = os.path.join(HOME, '.sky', 'catalogs', 'v8', 'common')
os.makedirs(COMMON)
CARDS = [('T4', 16, 'NVIDIA'), ('A10', 24, 'NVIDIA'), ('A10G', 24, 'NVIDIA'), ('A100', 40, 'NVIDIA'),
         ('A100-80GB', 80, 'NVIDIA'), ('H100', 80, 'NVIDIA'), ('H200', 141, 'NVIDIA'), ('MI300X', 192, 'AMD')]
with open(os.path.join(COMMON, 'metadata.csv'), 'w', encoding='utf-8') as f:
    f.write('GPU,MemoryGB,Manufacturer\n' + ''.join(f'{n},{g},{m}\n' for n, g, m in CARDS))
with open(os.path.join(COMMON, 'accelerators.csv'), 'w', encoding='utf-8') as f:
    f.write('AcceleratorName,Clouds\n' + ''.join(f'{n},"[\'AWS\']"\n' for n, _, _ in CARDS))

# pylint: disable=wrong-import-position
import dotenv  # noqa: E402

from sky.client.cli import command  # noqa: E402
from sky.utils import dag_utils, yaml_utils  # noqa: E402


def documents(path):
    """Yields (name, options, text); a document starts at a line `=== NAME {OPTIONS}`."""
    with open(path, encoding='utf-8') as file:
        for part in ('\n' + file.read()).split('\n=== ')[1:]:
            head, _, text = part.partition('\n')
            name, _, options = head.partition(' ')
            yield name, json.loads(options or '{}'), text + '\n' if text else ''


def parsed(options, path):
    """The flags as `sky launch` hands them on."""
    os.environ.update(options.get('environment', {}))
    file = None
    if 'env_file' in options:
        with open(path, 'w', encoding='utf-8') as out:
            out.write(options['env_file'])
        file = dotenv.dotenv_values(path)
    pairs = []
    for one in options.get('env', []):
        pairs.append(tuple(one.split('=', 1)) if '=' in one else (one, os.environ[one]))
    # pylint: disable=protected-access
    return command._merge_cli_and_file_vars([file], pairs)


def load(text, options):
    path = os.path.join(HOME, 'task.yaml')
    if options.get('crlf'):
        text = text.replace('\n', '\r\n')
    with open(path, 'w', encoding='utf-8-sig' if options.get('bom') else 'utf-8', newline='') as out:
        out.write(text)
    env = parsed(options, os.path.join(HOME, 'env'))
    if dag_utils.is_job_group_yaml(path):
        kind, tasks = 'job-group', dag_utils.load_job_group_from_yaml(path, env_overrides=env).tasks
    else:
        tasks = dag_utils.load_chain_dag_from_yaml(path, env_overrides=env).tasks
        kind = 'pipeline' if len(tasks) > 1 else 'task'
        assert tasks, 'no task'
    if kind == 'task':
        gpus = options.get('gpus')
        if gpus is not None:
            tasks[0].set_resources_override({'accelerators': None if gpus.lower() == 'none' else gpus})
        if options.get('num_nodes') is not None:
            tasks[0].num_nodes = options['num_nodes']
    normal = []
    for task in tasks:
        config = task.to_yaml_config()
        normal.append({'config': json.loads(json.dumps(config, default=str)), 'text': yaml_utils.dump_yaml_str(config)})
    return {'kind': kind, 'tasks': normal}


def scalars():
    """PyYAML's reading of single plain scalars, as Python's str() shows it."""
    words = ('on off yes no y n true True TRUE tRUE null Null ~ 010 08 09 0 00 0_ 1_000 1__0 -010 +5 -5 0x1F 0x_f 0X1F 0b101 0b_1 '
             '0o17 1:30 1:60 01:30 -1:30 1:2:3 1:2:3.5 1e3 1.0e3 1.0e+3 1.e-7 1.e+16 .5 +.5 5. 1_0.0_1 ._5 .inf -.inf .nan '
             '12345678901234567890 1.5 1.50 100.0 0.0001 0.00001 123456789012345680.0 -0.0 2024-01-01 2024-1-1 '
             '2001-12-14T21:59:43.10Z 2001-12-14T21:59:43-05:00 8xH100 H100:8 80GB+').split()
    out = {}
    for word in words:
        value = yaml_utils.safe_load(f'k: {word}')['k']
        out[word] = [type(value).__name__, str(value)]
    return out


def plain(value):
    """JSON knows no infinity and no NaN: written as text."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def main():
    check = sys.argv[1] == '--check'
    source, target = sys.argv[-2:]
    forms = {}
    for name, options, text in documents(source):
        try:
            forms[name] = load(text, options)
        except Exception as e:  # pylint: disable=broad-except
            why = (str(e).splitlines() or [''])[0].replace(HOME + os.sep, '')
            forms[name] = {'error': f'{type(e).__name__}: {why}'}
    result = json.dumps({'scalars': scalars(), 'documents': plain(forms)}, indent=1, sort_keys=True)
    if not check:
        with open(target, 'w', encoding='utf-8') as out:
            out.write(result + '\n')
        return
    with open(target, encoding='utf-8') as file:
        kept = json.load(file)
    now = json.loads(result)
    # The order of an any_of is random there, and so is the text that shows it.
    differ = [n for n in now['documents'] if shape(now['documents'][n]) != shape(kept['documents'].get(n))]
    if differ or now['scalars'] != kept['scalars']:
        sys.exit(f'differs from the kept fixtures: {differ or "scalars"}')
    print(f'{len(forms)} documents agree')


def shape(form):
    if form is None or 'error' in form:
        return form and form['error'].split(':')[0]
    tasks = [task['config'] for task in form['tasks']]
    for task in tasks:
        task.get('resources', {}).get('any_of', []).sort(key=json.dumps)
    return form['kind'], json.dumps(tasks, sort_keys=True)


if __name__ == '__main__':
    main()
