#!/usr/bin/env python3
"""Runs our programs and PyTorch in turn on the first NVIDIA GPU and prints, for language models and
attention: our figure, the peer's, the device's limit measured in the same run, and what is to be
reached.

  compare_torch.py --rbee build/cuda/bin/rbee --attention-bench build/cuda/bin/attention_bench \\
      --model DIR [--model FILE.gguf ...] [--pairs 2] [--json FILE]

The peer of a bf16 or f16 Hugging Face folder is transformers' eager model of the same shape with
random weights; of attention, torch's scaled_dot_product_attention with each of its backends. Without
PyTorch our figures stand alone, beside the limits that rbee measured.

Exit status: 0, or 1 where a row misses what is to be reached (not with --no-targets), or 2 where
nothing was measured: no CUDA device, or a program that failed."""

import argparse
import json
import os
import sys

from peers import work
from peers.programs import Failed, run
from peers.report import table

PEER_TYPES = {"bf16": "bfloat16", "f16": "float16"}


def load_torch(options):
    """The peer's module, or None; says on standard error why not."""
    if options.no_torch:
        return None
    try:
        from peers import torch_peer
    except ImportError as error:
        print(f"no peer: {error}", file=sys.stderr)
        return None
    reason = torch_peer.available()
    if reason:
        print(f"no peer: {reason}", file=sys.stderr)
        return None
    if torch_peer.transformers is None:
        print("no peer of models: there is no transformers", file=sys.stderr)
    return torch_peer


def device_name(options):
    """As `rbee devices` calls the first NVIDIA GPU."""
    for line in run([options.rbee, "devices"]).splitlines():
        if line.startswith("cuda:0 "):
            return line[len("cuda:0"):].strip()
    raise Failed("no CUDA device: nothing measured")


class Peer:
    """Measures with torch, where it is there."""

    def __init__(self, torch_peer, compiled):
        self.torch = torch_peer
        self.compiled = compiled
        self.limits = None
        self.models = {}

    def measure_limits(self):
        """The best of all rounds."""
        if not self.torch:
            return
        seen = {"copy": self.torch.copy_bandwidth("cuda:0"),
                "product": self.torch.product_speed("cuda:0")}
        before = self.limits or seen
        self.limits = {name: max(seen[name], before[name]) for name in seen}

    def attention(self):
        return {(*case, name): self.torch.attention("cuda:0", name, *case)
                for case in work.ATTENTIONS for name in work.PEERS}

    def runs(self, model, kind):
        return (bool(self.torch) and bool(self.torch.transformers) and kind in PEER_TYPES
                and os.path.isdir(model))

    def model(self, folder, kind):
        if folder not in self.models:
            dtype = getattr(self.torch.torch, PEER_TYPES[kind])
            self.models[folder] = self.torch.Llama(folder, "cuda:0", dtype, self.compiled)
        llama = self.models[folder]
        rates = {f"pp{count}": llama.prompt(count) for count in work.PROMPTS}
        rates[f"tg{work.GENERATED}"] = llama.generation(work.GENERATED)
        return rates


def bench_model(options, model):
    command = [options.rbee, "bench", "--json", "-m", model, "--device", "cuda:0", "-c", "4096",
               "-r", str(options.repetitions), "-n", str(work.GENERATED), "-p"]
    return work.parse_lines(run(command + [str(count) for count in work.PROMPTS]))


def bench_attention(options):
    return work.parse_lines(run([options.attention_bench, "--json"]))


def measure(options, peer):
    """Runs rounds of ours, then of the peer. Returns the data of the rows."""
    attention, attention_peers = [], []
    models = {model: ([], []) for model in options.model}
    for _ in range(options.pairs):
        peer.measure_limits()
        if options.attention_bench:
            attention.append(bench_attention(options))
            if peer.torch:
                attention_peers.append(peer.attention())
        for model, (ours, theirs) in models.items():
            ours.append(bench_model(options, model))
            kind = ours[-1][0]["type"]
            if peer.runs(model, kind):
                theirs.append(peer.model(model, kind))
    return attention, attention_peers, models


def report(options, peer, name, measured):
    attention, attention_peers, models = measured
    h200 = "H200" in name
    rows = []
    for model, (ours, theirs) in models.items():
        rows += work.model_rows(model, ours, theirs, peer.limits, h200,
                                "compiled" if options.compile else "eager")
    if attention:
        rows += work.attention_rows(attention, attention_peers, peer.limits, h200)
    if options.no_targets:
        for row in rows:
            row.target = None
    print(f"{name}; {options.pairs} rounds of ours and the peer's in turn, medians")
    if peer.torch:
        print(f"{peer.torch.describe('cuda:0')}: copies {peer.limits['copy'] * 1e-9:,.0f} GB/s, bf16 "
              f"products of 8192^3 {peer.limits['product'] * 1e-12:,.0f} TFLOP/s")
    print("\n" + table(rows))
    missed = sum(row.missed() for row in rows)
    print(f"\n{missed} of {sum(row.target is not None for row in rows)} figures not reached")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"device": name, "limits": peer.limits,
                       "rows": [row.as_dict() for row in rows]}, out, indent=1)
    return 1 if missed else 0


def parse_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rbee", default="build/cuda/bin/rbee")
    parser.add_argument("--attention-bench", help="built with -DRBEE_BENCH=ON; left out otherwise")
    parser.add_argument("--model", action="append", default=[], metavar="PATH",
                        help="may be given several times")
    parser.add_argument("--pairs", type=int, default=2, help="rounds of ours and the peer's")
    parser.add_argument("--repetitions", type=int, default=3, help="of each figure in a round")
    parser.add_argument("--compile", action="store_true", help="the peer's step by torch.compile")
    parser.add_argument("--no-torch", action="store_true", help="our figures only")
    parser.add_argument("--no-targets", action="store_true", help="nothing is to be reached")
    parser.add_argument("--json", metavar="FILE", help="every round's figures")
    options = parser.parse_args(arguments)
    if not options.model and not options.attention_bench:
        parser.error("--model or --attention-bench is needed")
    return options


def main(arguments=None):
    options = parse_options(arguments)
    try:
        name = device_name(options)
        peer = Peer(load_torch(options), options.compile)
        return report(options, peer, name, measure(options, peer))
    except Failed as reason:
        print(reason, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
