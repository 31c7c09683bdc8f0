#!/usr/bin/env python3
"""Runs `rbee bench` and llama.cpp's `llama-bench` in turn on the same files and prints the ratio of
each pair beside the physical limit that rbee measured.

  compare_llama.py --rbee build/cpu/bin/rbee [--llama-bench llama-bench] [--pairs 3] MODEL.gguf ...

llama-bench may be any command, e.g. "chroot /srv/sid llama-bench"; --map /here=/there rewrites the
model's path for it."""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def ours(options, model):
    out = run([options.rbee, "bench", "--json", "-m", model, "--device", "cpu", "-t", str(options.threads), "-r", "3",
               "-p", str(options.prompt), "-n", str(options.generate)])
    return {row["test"]: row for row in map(json.loads, out.splitlines())}


def theirs(options, model):
    for rule in options.map:
        here, there = rule.split("=", 1)
        if model.startswith(here):
            model = there + model[len(here):]
    out = run(shlex.split(options.llama_bench)
              + ["-m", model, "-t", str(options.threads), "-r", "3", "-o", "json",
                 "-p", str(options.prompt), "-n", str(options.generate)])
    rates = {}
    for row in json.loads(out):
        name = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
        rates[name] = row["avg_ts"]
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rbee", default="build/cpu/bin/rbee")
    parser.add_argument("--llama-bench", default="llama-bench")
    parser.add_argument("--map", action="append", default=[], metavar="HERE=THERE")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    options = parser.parse_args()

    print(f"{options.threads} threads, {options.pairs} pairs; tokens/s, medians\n")
    print("| file | test | rbee | llama.cpp | ratio, pair by pair | limit | rbee's share |")
    print("|---|---|---|---|---|---|---|")
    slower = 0
    for model in options.models:
        pairs = [(ours(options, model), theirs(options, model)) for _ in range(options.pairs)]
        for test, row in pairs[0][0].items():
            mine = [first[test]["tokens_per_second"] for first, _ in pairs]
            other = [second[test] for _, second in pairs]
            limits = [first[test]["limit"] for first, _ in pairs]
            ratios = [a / b for a, b in zip(mine, other)]
            slower += statistics.median(ratios) < 1
            print(f"| {os.path.basename(model)} | {test} | {statistics.median(mine):.1f} "
                  f"| {statistics.median(other):.1f} | {' '.join(f'{r:.2f}' for r in ratios)} "
                  f"| {statistics.median(limits):.0f} ({row['limit_name']}) "
                  f"| {100 * statistics.median(mine) / statistics.median(limits):.0f} % |", flush=True)
    print(f"\n{slower} rows where llama.cpp is faster")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
