"""What SkyPilot makes of a home and a folder: its endpoint and its policy. Reads [[folder, variables], ...] on stdin."""
import json
import os
import sys

from sky import skypilot_config
from sky.server import common

NAMES = ('SKYPILOT_API_SERVER_ENDPOINT', 'SKYPILOT_GLOBAL_CONFIG', 'SKYPILOT_PROJECT_CONFIG', 'SKYPILOT_CONFIG')


def told(folder, variables):
    os.chdir(folder)
    for name in NAMES:
        os.environ.pop(name, None)
    os.environ.update(variables, HOME=os.path.join(folder, 'home'))
    try:
        skypilot_config.reload_config()
        common.get_server_url.cache_clear()
        return {'endpoint': common.get_server_url(), 'policy': skypilot_config.get_nested(('admin_policy',), None)}
    except Exception as e:  # pylint: disable=broad-except
        return {'error': f'{type(e).__name__}: {e}'}


print(json.dumps([told(*one) for one in json.load(sys.stdin)]))
