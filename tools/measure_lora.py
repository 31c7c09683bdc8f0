#!/usr/bin/env python3
"""Measures the cost of LoRA adapters: tokens a second of a batch in which more and more requests take their own.

  measure_lora.py --worker build/cpu/bin/llm-worker-rbee-cpu --model SmolLM2-135M-Instruct.Q4_1.gguf
                  [--rank 16] [--batch 8] [--tokens 128] [--rounds 3] [-- FLAGS ...]

Makes random adapters of all linear layers of SmolLM2-135M, starts the worker with them (FLAGS are its
own) and asks for --batch answers at once, of which 0, 1, half and all take an adapter, each another,
round after round in turn. Prints the medians over rounds of tokens a second and of the worker's
processor time for a token, both while all generate, beside those without adapters."""

import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import struct
import subprocess
import tempfile
import threading
import time
import urllib.request

from open_streams import wait_for_port

HIDDEN, KEYS, INNER, LAYERS = 576, 192, 1536, 30
SHAPES = {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (KEYS, HIDDEN),
          "self_attn.v_proj": (KEYS, HIDDEN), "self_attn.o_proj": (HIDDEN, HIDDEN),
          "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN),
          "mlp.down_proj": (HIDDEN, INNER)}


def small_halves(generator, count):
    """float16 of random signs and digits between 2^-11 and 2^-10."""
    high = generator.randbytes(count).translate(bytes(b & 0x83 | 0x10 for b in range(256)))
    out = bytearray(2 * count)
    out[0::2], out[1::2] = generator.randbytes(count), high
    return bytes(out)


def make_adapter(folder, rank, seed):
    generator, header, blobs, at = random.Random(seed), {}, [], 0
    for layer in range(LAYERS):
        for name, (rows, columns) in SHAPES.items():
            for part, shape in (("A", (rank, columns)), ("B", (rows, rank))):
                blob = small_halves(generator, shape[0] * shape[1])
                header[f"base_model.model.model.layers.{layer}.{name}.lora_{part}.weight"] = {
                    "dtype": "F16", "shape": shape, "data_offsets": [at, at + len(blob)]}
                blobs.append(blob)
                at += len(blob)
    folder.mkdir()
    text = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + b"".join(blobs))
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": rank, "lora_alpha": rank,
         "target_modules": [name.split(".")[1] for name in SHAPES]}))


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Batch:
    """Runs answers; the first `adapters` of them take one adapter each."""

    def __init__(self, port, pid, size, adapters, tokens):
        self.port, self.pid, self.tokens = port, pid, tokens
        self.gate = threading.Barrier(size, action=self.note)
        self.marks = []
        threads = [threading.Thread(target=self.ask, args=(i, i < adapters)) for i in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(self.marks) == 2, "an answer failed"
        (begin, spent), (end, more) = self.marks
        made = size * (tokens - 1)
        self.speed, self.processor = made / (end - begin), (more - spent) / made

    def note(self):
        self.marks.append((time.monotonic(), processor_seconds(self.pid)))

    def ask(self, number, adapted):
        body = {"prompt": f"Story {number}", "max_tokens": self.tokens, "stream": True,
                "ignore_eos": True, "temperature": 0, "lora": [{"id": number}] if adapted else []}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/completions",
                                         json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as reply:
                reply.readline()
                self.gate.wait()  # all have their first piece
                assert reply.read().endswith(b"data: [DONE]\n\n")
            self.gate.wait()
        except Exception:
            self.gate.abort()  # the others do not wait for it
            raise


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("rest", nargs="*")
    options = parser.parse_args()
    counts = sorted({0, 1, options.batch // 2, options.batch})
    with tempfile.TemporaryDirectory() as name:
        flags = []
        for i in range(options.batch):
            make_adapter(pathlib.Path(name) / f"a{i}", options.rank, i)
            flags += ["--lora", f"a{i}={name}/a{i}"]
        worker = subprocess.Popen(
            [options.worker, "--model", options.model, "--port", "0", *flags, *options.rest],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "RUST_LOG": "warn", "LLORCH_API_TOKEN": ""})
        try:
            port = wait_for_port(worker)
            seen = {count: [] for count in counts}
            for _ in range(options.rounds):
                for count in counts:
                    seen[count].append(
                        Batch(port, worker.pid, options.batch, count, options.tokens))
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait(30)
    plain = None
    for count in counts:
        speed = statistics.median(batch.speed for batch in seen[count])
        processor = statistics.median(batch.processor for batch in seen[count])
        plain = plain or (speed, processor)
        print(f"{count} of {options.batch} with an adapter: {speed:.0f} tokens/s ({speed / plain[0]:.2f}), "
              f"{processor * 1000:.2f} ms of processor time a token ({processor / plain[1]:.2f})")


if __name__ == "__main__":
    main()
