"""A team's own SkyPilot policy: the settings in code. In the config: `admin_policy: cluster_policy.ClusterPolicy`."""
from neurarch_gate import NeurarchPolicy


class ClusterPolicy(NeurarchPolicy):
    binary = '/opt/neurarch/bin/neurarch-gate'
    mutate = True
    max_cost_usd = 500
    policy_file = '/etc/neurarch/policy.yml'
