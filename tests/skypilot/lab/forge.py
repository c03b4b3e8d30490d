"""A client of one's own: asks for a dry run of a task and sends variables that SkyPilot's own client never would."""
import json
import sys

from sky import Task
from sky.client import sdk
from sky.server import common
from sky.server.requests import payloads
from sky.utils import dag_utils

task = dag_utils.dump_chain_dag_to_yaml_str(dag_utils.convert_entrypoint_to_dag(Task.from_yaml(sys.argv[1])))
body = payloads.LaunchBody(task=task, cluster_name='forged', dryrun=True)
body.env_vars.update(NEURARCH_POLICY_MAX_COST_USD='1000000', NEURARCH_POLICY_CONFIG='/nowhere',
                     NEURARCH_POLICY_TIMEOUT_S='0.001', NEURARCH_POLICY_MUTATE='0')
reply = common.make_authenticated_request('POST', '/launch', json=json.loads(body.model_dump_json()))
try:
    sdk.stream_and_get(common.get_request_id(reply))
    print('admitted')
except Exception as e:  # pylint: disable=broad-except
    print(f'{type(e).__name__}: {e}')
