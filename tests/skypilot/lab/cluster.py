"""Writes clusters that are up into SkyPilot's own records, for `sky exec`: python cluster.py NAME=CARD:COUNT...

They are managed ones, which the server does not look after by asking the cloud for them.
"""
import sys

from sky import clouds
from sky import global_user_state
from sky import Resources
from sky.backends.cloud_vm_ray_backend import CloudVmRayResourceHandle

for word in sys.argv[1:]:
    name, card, count = word.replace('=', ':').split(':')
    resources = Resources(cloud=clouds.Fluidstack(), instance_type=f'{count}x-{card}', region='default',
                          accelerators={card: int(count)})
    handle = CloudVmRayResourceHandle(cluster_name=name, cluster_name_on_cloud=name, cluster_yaml=None,
                                      launched_nodes=1, launched_resources=resources, stable_ssh_ports=[9],
                                      stable_internal_external_ips=[('127.0.0.1', '127.0.0.1')])
    global_user_state.add_or_update_cluster(name, handle, {resources}, ready=True, is_managed=True)
