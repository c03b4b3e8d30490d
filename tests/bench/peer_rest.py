"""The published policy (neurarch-skypilot) behind the smallest REST server of SkyPilot's interface: `peer_rest.py CLI`,
with a sizing CLI that answers at once. Says "listening on URL" on stderr. With a file of bodies behind it, it judges
them in this process instead, their tasks decoded beforehand, and prints seconds a request.
"""
import json
import logging
import os
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

os.environ.update(HOME=tempfile.mkdtemp(prefix='neurarch-peer-'), SKYPILOT_DISABLE_USAGE_COLLECTION='1',
                  NEURARCH_POLICY_SIZING='cli', NEURARCH_POLICY_CLI=sys.argv[1])

# pylint: disable=wrong-import-position
import sky  # noqa: E402
from sky import exceptions  # noqa: E402

from neurarch_skypilot import NeurarchPolicy  # noqa: E402

logging.getLogger('sky.neurarch_skypilot').setLevel(logging.ERROR)


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        try:
            mutated = NeurarchPolicy.validate_and_mutate(sky.UserRequest.decode(body))
            status, text = 200, json.dumps(mutated.encode())
        except exceptions.UserRequestRejectedByPolicy as e:
            status, text = 400, str(e)
        except Exception as e:  # pylint: disable=broad-except
            status, text = 500, str(e)
        data = text.encode()
        self.send_response(status)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def in_process(path):
    with open(path, encoding='utf-8') as file:
        requests = [sky.UserRequest.decode(json.loads(line)) for line in file]
    waits = []
    # The second time over, every model is sized already.
    for _ in range(2):
        start = time.perf_counter()
        for request in requests:
            try:
                NeurarchPolicy.validate_and_mutate(request)
            except Exception:  # pylint: disable=broad-except
                pass
        waits.append((time.perf_counter() - start) / len(requests))
    print(json.dumps({'firstS': waits[0], 'againS': waits[1]}))


def main():
    if len(sys.argv) > 2:
        in_process(sys.argv[2])
        return
    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    server.daemon_threads = True
    print(f'listening on http://127.0.0.1:{server.server_port}/', file=sys.stderr, flush=True)
    server.serve_forever()


if __name__ == '__main__':
    main()
