"""What one application of the Python policy costs above SkyPilot's own encoding, each in turns with the other in one
process: `shim.py GATE ROUNDS`; prints a JSON document of milliseconds.
"""
import json
import logging
import os
import statistics
import sys
import tempfile
import time

os.environ.update(HOME=tempfile.mkdtemp(prefix='neurarch-shim-'), SKYPILOT_DISABLE_USAGE_COLLECTION='1',
                  HF_HUB_OFFLINE='1')
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '../../python-shim')]

# pylint: disable=wrong-import-position
from sky import exceptions  # noqa: E402

import bodies  # noqa: E402
import neurarch_gate  # noqa: E402

logging.getLogger('sky.neurarch_gate').setLevel(logging.ERROR)


def timed(call, *args):
    start = time.perf_counter()
    try:
        call(*args)
    except exceptions.UserRequestRejectedByPolicy:
        pass
    return (time.perf_counter() - start) * 1e3


def main():
    gate, rounds = sys.argv[1], int(sys.argv[2])
    policy = type('Policy', (neurarch_gate.NeurarchPolicy,), {'binary': gate, 'fail_closed': True})()
    requests = list(bodies.requests(rounds))
    # The file is read into memory, and code that is there twice a launch is.
    for request in requests[:3]:
        timed(policy.apply, request)
    encoding, first, again = [], [], []
    for request in requests:
        encoding.append(timed(request.encode))
        first.append(timed(policy.apply, request) - encoding[-1])
        # SkyPilot applies a policy two to four times a launch.
        again.append(timed(policy.apply, request) - encoding[-1])
    print(json.dumps({'encodeMs': statistics.median(encoding), 'firstMs': statistics.median(first),
                      'againMs': statistics.median(again), 'aboveMs': statistics.median(first + again)}))


if __name__ == '__main__':
    main()
