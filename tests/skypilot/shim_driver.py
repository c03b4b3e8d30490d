"""Drives the Python policy with the real SkyPilot; called by shim.test.ts with a JSON plan, prints a JSON list."""
import json
import logging
import os
import sys
import tempfile
from concurrent import futures

HOME = tempfile.mkdtemp(prefix='neurarch-shim-')
os.environ.update(HOME=HOME, SKYPILOT_DISABLE_USAGE_COLLECTION='1')
plan = json.load(sys.stdin)
os.environ.update(plan.get('late_environment', {}))
sys.path.insert(0, plan['shim'])

# pylint: disable=wrong-import-position
import sky  # noqa: E402
from sky import exceptions  # noqa: E402
from sky.server.requests import request_names  # noqa: E402
from sky.utils import config_utils, yaml_utils  # noqa: E402

import neurarch_gate  # noqa: E402


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append((record.levelname, record.getMessage()))


def run(case):
    handler = Lines()
    logger = logging.getLogger('sky.neurarch_gate')
    logger.handlers = [handler]
    policy = type('P', (neurarch_gate.NeurarchPolicy,), case.get('attributes', {}))()
    request = sky.UserRequest(
        task=sky.Task.from_yaml_config(yaml_utils.safe_load(case['task'])),
        skypilot_config=config_utils.Config.from_dict({'jobs': {'controller': {'resources': {'cpus': 2}}}}),
        request_name=request_names.AdminPolicyRequestName(case.get('request_name', 'launch')),
        at_client_side=True)
    before = request.encode()
    out = {'lines': handler.lines}
    try:
        mutated = policy.apply(request)
        out['task'] = mutated.task.to_yaml_config()
        out['same'] = mutated.task is request.task and request.encode() == before
        out['config'] = dict(mutated.skypilot_config)
    except exceptions.UserRequestRejectedByPolicy as e:
        out['refused'] = str(e)
    return out


def task_of(text):
    original = sky.UserRequest(task=sky.Task(), skypilot_config=config_utils.Config.from_dict({}),
                               request_name=request_names.AdminPolicyRequestName('launch'))
    return sky.MutatedUserRequest.decode(json.dumps({'task': text, 'skypilot_config': '{}'}), original).task


def parts(task):
    """The accelerators of a task's candidates, all else of each candidate, and all else of the task in its order."""
    config = task.to_yaml_config()
    resources = config.pop('resources')
    candidates = resources.get('any_of') or resources.get('ordered') or [resources]
    rest = [repr({k: v for k, v in one.items() if k != 'accelerators'}) for one in candidates]
    asked = [f'{name}:{count}' for one in candidates for name, count in (one.get('accelerators') or {}).items()]
    return sorted(asked), set(rest), repr(config)


def decoded(before, after):
    """What SkyPilot reads in a task of its own before and after a rewrite, and in one that is sent back as it came."""
    written = yaml_utils.safe_load(before)
    # It reads a TPU's cloud, a disk's size and an empty mount anew, so the text is compared after it was read once.
    once = task_of(before)
    again = task_of(yaml_utils.dump_yaml_str(once.to_yaml_config()))
    (_, rest, other), (asked, rest_after, other_after) = parts(once), parts(task_of(after))
    return {
        'accelerators': asked,
        'rest': sorted(rest_after - rest),
        'other': [] if other == other_after else [other, other_after],
        'echo': parts(once) == parts(again) and list(once.to_yaml_config()) == list(written),
    }


def threaded(plan):
    """The real executable, asked by as many threads as an API server has."""
    policy = type('P', (neurarch_gate.NeurarchPolicy,), {'binary': plan['binary']})

    def one(index):
        cards = plan['cards'][index % len(plan['cards'])]
        config = {'resources': {'accelerators': cards}, 'run': 'x',
                  'envs': {'NEURARCH_MODEL': 'Qwen/Qwen3-0.6B', 'NEURARCH_BATCH': '1', 'NEURARCH_SEQ_LEN': '2048'}}
        request = sky.UserRequest(task=sky.Task.from_yaml_config(config),
                                  skypilot_config=config_utils.Config.from_dict({}),
                                  request_name=request_names.AdminPolicyRequestName('validate'), at_client_side=False)
        try:
            policy().apply(request)
            return f'{cards} admitted'
        except exceptions.UserRequestRejectedByPolicy as e:
            return f'{cards} refused' if f'{cards} holds' in str(e) else str(e)

    with futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(one, range(plan['times'])))


results = {'cases': [run(case) for case in plan['cases']], 'texts': [decoded(*pair) for pair in plan['texts']],
           'threads': threaded(plan['threads']) if 'threads' in plan else []}
print(json.dumps(results, default=str))
