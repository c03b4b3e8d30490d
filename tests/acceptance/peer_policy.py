"""Judges task files with the published neurarch-skypilot inside SkyPilot; prints a JSON list of what each came to."""
import json
import logging
import os
import sys
import tempfile

os.environ.update(HOME=tempfile.mkdtemp(prefix='neurarch-peer-'), SKYPILOT_DISABLE_USAGE_COLLECTION='1')

# pylint: disable=wrong-import-position
import sky  # noqa: E402
from sky import exceptions  # noqa: E402
from sky.server.requests import request_names  # noqa: E402
from sky.utils import config_utils, yaml_utils  # noqa: E402

import neurarch_skypilot  # noqa: E402

lines = []
handler = logging.Handler()
handler.emit = lambda record: lines.append(record.getMessage())
logging.getLogger('sky.neurarch_skypilot').handlers = [handler]

outcomes = []
for text in json.load(sys.stdin):
    lines.clear()
    request = sky.UserRequest(
        task=sky.Task.from_yaml_config(yaml_utils.safe_load(text)),
        skypilot_config=config_utils.Config.from_dict({}),
        request_name=request_names.AdminPolicyRequestName('launch'),
        at_client_side=True)
    out = {'refused': None}
    try:
        mutated = neurarch_skypilot.NeurarchPolicy.validate_and_mutate(request)
        out['accelerators'] = [dict(one.accelerators or {}) for one in mutated.task.resources]
    except exceptions.UserRequestRejectedByPolicy as error:
        out['refused'] = str(error)
    outcomes.append({**out, 'lines': list(lines)})
print(json.dumps(outcomes))
