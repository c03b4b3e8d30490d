"""Types lines into an interactive shell on a terminal and gives back what each one printed.

Reads {"argv", "env", "ready", "lines": [...]} on stdin: after `ready` was printed each line is typed with Enter behind it,
and what the shell prints between `{` and `{END}` is its answer. A shell that says nothing for 20 s is ended.
"""

import json
import os
import pty
import re
import select
import signal
import sys
import time


def main() -> None:
    asked = json.load(sys.stdin)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(asked["argv"][0], asked["argv"], asked["env"])
    answers = []
    try:
        read_until(terminal, asked["ready"])
        for line in asked["lines"]:
            os.write(terminal, line.encode())
            # A completion may redraw the line, so Enter follows once the shell is quiet.
            quiet(terminal)
            os.write(terminal, b"\r")
            text = read_until(terminal, "{END}")
            found = re.findall(r"\{([^{}]*)\}", text[text.rindex("{BEGIN}") :])
            answers.append(found[1:-1])
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    json.dump(answers, sys.stdout)


def read_until(terminal: int, mark: str) -> str:
    text = ""
    ends = time.monotonic() + 20
    while mark not in text:
        if time.monotonic() > ends:
            raise SystemExit(f"no {mark} in {text[-2000:]!r}")
        if select.select([terminal], [], [], 0.2)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    return text


def quiet(terminal: int) -> None:
    while select.select([terminal], [], [], 0.15)[0]:
        os.read(terminal, 65536)


main()
