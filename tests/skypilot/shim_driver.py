"""Drives the Python policy with the real SkyPilot; called by shim.test.ts with a JSON plan, prints a JSON list."""
import json
import logging
import os
import sys
import tempfile

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


def decoded(text):
    """What SkyPilot reads in a rewritten task: the accelerators of its candidates."""
    original = sky.UserRequest(task=sky.Task(), skypilot_config=config_utils.Config.from_dict({}),
                               request_name=request_names.AdminPolicyRequestName('launch'))
    mutated = sky.MutatedUserRequest.decode(json.dumps({'task': text, 'skypilot_config': '{}'}), original)
    resources = list(mutated.task.resources)
    return sorted(f'{name}:{count}' for one in resources for name, count in (one.accelerators or {}).items())


results = {'cases': [run(case) for case in plan['cases']], 'texts': [decoded(text) for text in plan['texts']]}
print(json.dumps(results, default=str))
