"""A small stand-in for a trusted evaluator: one request to a server that the candidate describes.

usage: evaluate.py accuracy | benchmark [--output-json PATH]
"""

import json
import sys
import time


def main(arguments):
    kind = arguments[0] if arguments else "accuracy"
    began = time.perf_counter()
    answer = sum(number * number for number in range(100_000))
    seconds = time.perf_counter() - began
    print(f"{kind}: answered in {seconds:.4f} s", flush=True)
    if answer != 333328333350000:
        return 1
    if kind == "benchmark" and "--output-json" in arguments:
        path = arguments[arguments.index("--output-json") + 1]
        with open(path, "w", encoding="utf-8") as handle:
            json.dump({"seconds": seconds}, handle)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
