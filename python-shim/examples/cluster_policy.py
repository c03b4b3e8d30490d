"""A team's own policy: the settings in code. In the config: `admin_policy: cluster_policy.ClusterPolicy`."""
from neurarch_gate import NeurarchPolicy


class ClusterPolicy(NeurarchPolicy):
    max_cost_usd = 500
    mutate = True
