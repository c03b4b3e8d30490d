"""Asks a RESTful admin policy through the real SkyPilot; called by rest.test.ts with a JSON plan {url, cases: [task]}, prints a JSON list."""
import json
import os
import sys
import tempfile

os.environ.update(HOME=tempfile.mkdtemp(prefix='neurarch-rest-'), SKYPILOT_DISABLE_USAGE_COLLECTION='1')
plan = json.load(sys.stdin)

# pylint: disable=wrong-import-position
import sky  # noqa: E402
from sky import exceptions  # noqa: E402
from sky.admin_policy import RestfulAdminPolicy  # noqa: E402
from sky.server.requests import request_names  # noqa: E402
from sky.utils import config_utils, yaml_utils  # noqa: E402


def run(text):
    request = sky.UserRequest(
        task=sky.Task.from_yaml_config(yaml_utils.safe_load(text)),
        skypilot_config=config_utils.Config.from_dict({'jobs': {'controller': {'resources': {'cpus': 2}}}}),
        request_name=request_names.AdminPolicyRequestName('launch'),
        at_client_side=True)
    try:
        mutated = RestfulAdminPolicy(plan['url']).apply(request)
    except exceptions.UserRequestRejectedByPolicy as e:
        return {'refused': str(e)}
    return {
        'before': request.task.to_yaml_config(),
        'after': mutated.task.to_yaml_config(),
        'same_config': dict(mutated.skypilot_config) == dict(request.skypilot_config),
    }


print(json.dumps([run(text) for text in plan['cases']], default=str))
