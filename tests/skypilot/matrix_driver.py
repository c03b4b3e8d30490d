"""Applies policies as SkyPilot itself does (`admin_policy_utils.apply`); called by matrix.test.ts with a JSON plan on stdin.

A case is {policy, task}: a URL, or {attributes} of a class. Prints a JSON list of {lines, refused or accelerators}.
"""
import json
import logging
import os
import sys
import tempfile

os.environ.update(HOME=tempfile.mkdtemp(prefix='neurarch-matrix-'), SKYPILOT_DISABLE_USAGE_COLLECTION='1')
plan = json.load(sys.stdin)
sys.path.insert(0, plan['shim'])

# pylint: disable=wrong-import-position
import re  # noqa: E402
import types  # noqa: E402

import sky  # noqa: E402
from sky import exceptions, skypilot_config  # noqa: E402
from sky.server.requests import request_names  # noqa: E402
from sky.utils import admin_policy_utils, config_utils, yaml_utils  # noqa: E402

import neurarch_gate  # noqa: E402

module = types.ModuleType('matrix_policies')
sys.modules['matrix_policies'] = module


class Lines(logging.Handler):
    lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


logging.getLogger('sky.neurarch_gate').addHandler(Lines())


def run(index, case):
    policy = case['policy']
    if not isinstance(policy, str):
        setattr(module, f'P{index}', type(f'P{index}', (neurarch_gate.NeurarchPolicy,), policy))
        policy = f'matrix_policies.P{index}'
    Lines.lines = []
    out = {'lines': Lines.lines}
    with skypilot_config.replace_skypilot_config(config_utils.Config.from_dict({'admin_policy': policy})):
        try:
            dag, config = admin_policy_utils.apply(
                sky.Task.from_yaml_config(yaml_utils.safe_load(case['task'])),
                request_name=request_names.AdminPolicyRequestName.CLUSTER_LAUNCH,
                at_client_side=True)
            assert dict(config) == {'admin_policy': policy}, config
            out['accelerators'] = [dict(r.accelerators) for r in dag.tasks[0].resources]
        except exceptions.UserRequestRejectedByPolicy as e:
            out['refused'] = re.sub(r'\x1b\[[0-9;]*m', '', str(e))
    return out


print(json.dumps([run(index, case) for index, case in enumerate(plan['cases'])]))
