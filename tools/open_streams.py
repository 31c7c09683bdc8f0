#!/usr/bin/env python3
"""Opens many streams of a chat worker at once, several times, and measures the worker's memory, threads and files.

  open_streams.py --worker build/cpu/bin/llm-worker-rbee-cpu --model MODEL [--streams 1000]
                  [--running 1024] [--rounds 5] [--tokens 16] [-- FLAGS ...]

Starts the worker (FLAGS are its own) and ends it with SIGTERM. In each round every stream is opened
before any is read on; then all are read to their end. Prints for each round the files that the worker
had open with the streams, the seconds it took, and the worker's resident memory, threads and open
files after it. Exits with 1 when a stream did not end with [DONE] or has an error, or when the worker
held more than 1 % more after the last round than after the second: it forgets what ended a minute
ago, so the script waits that long after both."""

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request


KEPT_SECONDS = 65  # a minute, plus the worker's interval of checks


def worker_facts(pid):
    with open(f"/proc/{pid}/status") as file:
        status = dict(line.split(":", 1) for line in file)
    return (int(status["VmRSS"].split()[0]) / 1024, int(status["Threads"]),
            len(os.listdir(f"/proc/{pid}/fd")))


async def open_stream(port, number, tokens):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"prompt": f"Story {number}: a bee", "max_tokens": tokens, "stream": True,
                       "seed": number, "user": f"user{number % 50}"})
    writer.write(f"POST /v1/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.split(b"\r\n")[0].decode())
    return reader, writer


async def read_stream(reader, writer):
    text = await reader.read()
    writer.close()
    return b"data: [DONE]" in text, b'"error"' in text


async def one_round(port, pid, streams, tokens):
    gate = asyncio.Semaphore(100)  # connections that are being made at the same time

    async def opened(number):
        async with gate:
            return await open_stream(port, number, tokens)

    pairs = await asyncio.gather(*(opened(i) for i in range(streams)))
    files = worker_facts(pid)[2]  # a connection is closed after its stream
    ends = await asyncio.gather(*(read_stream(*pair) for pair in pairs))
    return files, sum(1 for done, failed in ends if not done or failed)


def start(options, rest):
    command = [options.worker, "--model", options.model, "--port", "0", "--max-connections",
               str(options.streams + 10), "--max-running", str(options.running),
               "--max-waiting", str(options.streams), *rest]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "RUST_LOG": "warn",
                                   "LLORCH_LOG_FORMAT": "json", "LLORCH_API_TOKEN": ""})
    return worker


def port_of(worker):
    with open(f"/proc/{worker.pid}/net/tcp") as file:
        table = file.read()
    inodes = set()
    for entry in os.listdir(f"/proc/{worker.pid}/fd"):
        found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{worker.pid}/fd/{entry}"))
        inodes.add(found.group(1) if found else "")
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in inodes:
            return int(fields[1].split(":")[1], 16)
    return 0


def is_ready(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return True
    except OSError:  # also 503, while the model loads
        return False


def wait_for_port(worker):
    while worker.poll() is None:
        port = port_of(worker)
        if port and is_ready(port):
            return port
        time.sleep(0.1)
    sys.exit(f"the worker ended: {worker.stdout.read()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--running", type=int, default=1024, help="of them at the same time")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("rest", nargs="*")
    options = parser.parse_args()
    worker = start(options, options.rest)
    failures, memory = 0, []
    try:
        port = wait_for_port(worker)
        print("before: %.0f MiB, %d threads, %d files" % worker_facts(worker.pid), flush=True)
        for number in range(options.rounds):
            begin = time.monotonic()
            files, failed = asyncio.run(
                one_round(port, worker.pid, options.streams, options.tokens))
            failures += failed
            took = time.monotonic() - begin
            if number in (1, options.rounds - 1):
                time.sleep(KEPT_SECONDS)
                memory.append(worker_facts(worker.pid)[0])
            print(f"round {number + 1}: {options.streams} streams, {files} files open at "
                  f"once, {failed} failures, {took:.1f} s, "
                  + "%.0f MiB, %d threads, %d files" % worker_facts(worker.pid), flush=True)
        grown = memory[-1] > memory[0] * 1.01
    finally:
        worker.send_signal(signal.SIGTERM)
        status = worker.wait(30)
    print(f"the worker ended with status {status}; memory", "grew" if grown else "did not grow")
    sys.exit(1 if failures or grown or status != 0 else 0)


if __name__ == "__main__":
    main()
