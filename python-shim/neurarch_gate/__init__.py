"""A SkyPilot admin policy that asks the neurarch-gate executable.

    admin_policy: neurarch_gate.NeurarchPolicy      # in ~/.sky/config.yaml, or in the API server's

The request goes to the executable on stdin exactly as SkyPilot would send it to a REST policy, and its answer
comes back as one JSON document; nothing is decided here.
"""
import hashlib
import json
import logging
import os
import signal
import subprocess

import sky
from sky import exceptions

__version__ = '0.1.0'
__all__ = ['NeurarchPolicy']

_logger = logging.getLogger('sky.neurarch_gate')
_LIMIT_S = 29.0  # SkyPilot gives a policy 30 s.
_TOLD = 'SKYPILOT_NEURARCH_TOLD'  # digests of what the user was told; nothing else is read from it


def _start_environment():
    """What this process was started with. os.environ will not do: an API server lays client variables over it.

    Processes that set their title lose their own copy; the process that started them still has one.
    """
    pid = os.getpid()
    for _ in range(6):
        try:
            with open(f'/proc/{pid}/environ', 'rb') as file:
                raw = file.read()
            if b'PATH=' in raw:
                pairs = (one.partition(b'=') for one in raw.split(b'\0') if b'=' in one)
                return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
            with open(f'/proc/{pid}/stat', 'rb') as file:
                pid = int(file.read().rpartition(b')')[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return dict(os.environ)


_START = _start_environment()
# All that the executable gets of it: where models are found and how the network is reached.
_PASSED = {name: _START[name] for name in (
    'HOME', 'XDG_CACHE_HOME', 'HF_HOME', 'HF_HUB_CACHE', 'HF_TOKEN', 'HF_TOKEN_PATH', 'HF_ENDPOINT',
    'HF_HUB_OFFLINE', 'TRANSFORMERS_OFFLINE', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy',
    'https_proxy', 'no_proxy', 'SSL_CERT_FILE', 'NEURARCH_API_KEY') if name in _START}

# Settings whose variable has a name of its own.
_VARIABLES = {'policy_file': 'NEURARCH_POLICY_FILE', 'cluster': 'NEURARCH_CLUSTER'}


class NeurarchPolicy(sky.AdminPolicy):
    """Settings: class attributes of a subclass, and over them NEURARCH_POLICY_<NAME> (but for `binary`)."""

    # Copied there by hand, or put there by a package.
    binary = next((path for path in ('/usr/local/bin/neurarch-gate', '/usr/bin/neurarch-gate') if os.path.exists(path)),
                  '/usr/local/bin/neurarch-gate')
    mutate = False  # rewrite an over-request instead of warning
    max_cost_usd = None  # refuse a run whose list price is over this
    prices = None  # a JSON file or a dict: card -> USD per card-hour
    sizing = None  # 'auto', 'builtin', 'cli' or 'hosted'
    cli = None  # command line of an external sizing CLI
    plan_url = None  # address of a hosted plan that graphs are sent to
    fail_closed = False  # refuse when the executable cannot be asked
    timeout_s = 25  # seconds for one answer
    config = None  # a site file in place of /etc/neurarch/gate.toml
    policy_file = None  # a policy file for every task, in place of the nearest .neurarch.yml
    repo_policy = None  # what a policy file may do: 'honour', 'tighten-only' or 'ignore'
    client_sizing = None  # False: take no size from a client, and send none
    ledger = None  # a folder that verdicts are recorded in
    cluster = None  # the cluster's name, for waivers of one cluster

    @classmethod
    def validate_and_mutate(cls, user_request):
        try:
            answer = cls._ask(user_request.encode(), getattr(user_request, 'at_client_side', False))
            decision, text = answer['decision'], '\n'.join(answer['messages'])
            if decision not in ('allow', 'warn', 'refuse', 'rewrite', 'unjudged'):
                raise ValueError('the answer holds no decision')
            mutated = sky.MutatedUserRequest(user_request.task, user_request.skypilot_config)
            if answer.get('reply') is not None:  # a rewrite, or a size that goes along
                mutated = sky.MutatedUserRequest.decode(json.dumps(answer['reply']), user_request)
        except Exception as e:  # pylint: disable=broad-except
            return cls._unanswered(user_request, e)
        if decision == 'refuse':
            raise exceptions.UserRequestRejectedByPolicy(text or 'Neurarch: refused without a reason.')
        cls._tell(user_request, text, decision)
        return mutated

    @classmethod
    def _ask(cls, body, at_client_side):
        command = [cls.binary, 'judge', '--admin-policy']
        command += ['--mutate'] if cls._flag('mutate') else []
        command += ['--fail-closed'] if cls._flag('fail_closed') else []
        if cls._setting('client_sizing') is not None:
            command += ['--client-sizing' if cls._flag('client_sizing') else '--no-client-sizing']
        # A repository's policy file lies beside the user; a server has the one that it is told of.
        command += ['--policy-start', os.getcwd()] if at_client_side else []
        for name in ('max_cost_usd', 'prices', 'sizing', 'cli', 'plan_url', 'config', 'policy_file', 'repo_policy',
                     'ledger', 'cluster'):
            value = cls._setting(name)
            if value is not None:
                command += ['--' + name.replace('_', '-'), json.dumps(value) if isinstance(value, dict) else str(value)]
        env = {'PATH': '/usr/local/bin:/usr/bin:/bin', 'LANG': 'C.UTF-8', 'NO_COLOR': '1', **_PASSED}
        timeout = min(float(cls._setting('timeout_s')), _LIMIT_S)
        with subprocess.Popen(command, env=env, cwd='/', start_new_session=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                out, err = process.communicate(body.encode(), timeout)
                if process.returncode == 2:  # a setting that is none: it says which
                    raise ValueError(err.decode(errors='replace').strip())
                return json.loads(out)
            except BaseException:
                _end(process)
                raise

    @classmethod
    def _setting(cls, name):
        return _START.get(_VARIABLES.get(name, 'NEURARCH_POLICY_' + name.upper())) or getattr(cls, name)

    @classmethod
    def _flag(cls, name):
        return str(cls._setting(name)).strip().lower() in ('1', 'true', 'yes', 'on')

    @classmethod
    def _unanswered(cls, user_request, error):
        why = ' '.join(f'{type(error).__name__}: {error}'.split())[:200]
        if cls._flag('fail_closed'):
            raise exceptions.UserRequestRejectedByPolicy(
                f'Neurarch: not judged ({why}); refused, as this site fails closed.') from None
        cls._tell(user_request, f'Neurarch: not judged ({why}); allowed unchecked (fail open).')
        return sky.MutatedUserRequest(user_request.task, user_request.skypilot_config)

    @staticmethod
    def _tell(user_request, text, decision='warn'):
        # validate comes before every launch and optimize before its question, where only a rewrite shows: in the
        # table of machines. What is left out here is said at the launch.
        silent = ('validate',) if decision == 'rewrite' else ('validate', 'optimize')
        if not text or user_request.request_name.value in silent:
            return
        # A client hands its SKYPILOT_ variables to the server, which so knows what its user has read already.
        told = os.environ.get(_TOLD, '').split()
        lines = {hashlib.sha256(line.encode()).hexdigest()[:16]: line for line in text.split('\n')}
        if getattr(user_request, 'at_client_side', False):
            os.environ[_TOLD] = ' '.join(sorted({*told, *lines}))
        else:
            text = '\n'.join(line for digest, line in lines.items() if digest not in told)
        if text:
            _logger.warning(text)


def _end(process):
    """Ends the executable and whatever it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
