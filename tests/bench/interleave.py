"""Runs commands in turns, so that a burst of foreign load on a shared machine hits all of them alike. The fastest
round is what it disturbs least; the median tells how much it did.

Usage: interleave.py ROUNDS NAME=COMMAND ... ; prints a JSON object {name: {bestMs, medianMs, peakMib}}.
"""
import json, os, shlex, statistics, sys, time


def once(argv):
    quiet = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
    start = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        sys.exit(f"{argv[0]} ended with status {status}")
    return wall * 1e3, usage.ru_maxrss / 1024


rounds = int(sys.argv[1])
commands = {name: shlex.split(line) for name, _, line in (word.partition("=") for word in sys.argv[2:])}
samples = {name: [] for name in commands}
for number in range(rounds + 2):
    for name, argv in commands.items():
        sample = once(argv)
        if number >= 2:  # the first rounds warm the page cache
            samples[name].append(sample)
print(json.dumps({
    name: {
        "bestMs": min(wall for wall, _ in rows),
        "medianMs": statistics.median(wall for wall, _ in rows),
        "peakMib": max(peak for _, peak in rows),
    }
    for name, rows in samples.items()
}))
