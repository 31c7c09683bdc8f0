#!/usr/bin/env python3
"""Measures how long workers take from their start until they are ready.

  measure_start.py --worker build/cpu/bin/llm-worker-rbee-cpu [--worker OTHER ...] [--runs 20] -- FLAGS ...

Starts the workers in turn, run after run, each with these FLAGS and a port of its own, waits for the log's `ready`
and ends it. Prints the median, the quickest and the slowest of each worker, in milliseconds."""

import argparse
import os
import statistics
import subprocess
import sys
import time


def start(worker, flags):
    begin = time.monotonic()
    process = subprocess.Popen([worker, *flags, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, env={**os.environ, "LLORCH_LOG_FORMAT": "json", "RUST_LOG": "info"})
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            if '"ready"' in line:
                return 1000 * (time.monotonic() - begin)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    sys.exit(f"{worker} is never ready:\n{''.join(lines)}")


def main():
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", action="append", required=True)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args(words[:at])
    times = {worker: [] for worker in options.worker}
    for _ in range(options.runs):
        for worker in options.worker:
            times[worker].append(start(worker, words[at + 1:]))
    for worker, values in times.items():
        print(f"{worker}: median {statistics.median(values):.1f} ms, {min(values):.1f} to {max(values):.1f}")


if __name__ == "__main__":
    main()
