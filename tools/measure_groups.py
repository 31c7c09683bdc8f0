#!/usr/bin/env python3
"""Checks a worker whose model several processes hold (-tp).

  measure_groups.py texts --worker build/cpu/bin/llm-worker-rbee-cpu --model smol-f32.gguf [--ranks 1,2,3] [-- FLAGS ...]
  measure_groups.py kills --worker build/cpu/bin/llm-worker-rbee-cpu --model MODEL.gguf [--runs 200] [--ranks 2] [-- FLAGS ...]

`texts` asks the same prompts greedily of each number of ranks, 64 tokens each, and compares the texts. Where
two differ, it looks at the first token that does: a tie, if its two best log probabilities are nearer than
--tie, which the rounding of sums may decide. Exits with 1 for a difference that is none. `rbee quantize FILE
smol-f32.gguf f32` makes a file whose sums are in f32.

`kills` starts the worker, kills (SIGKILL) or stops (SIGSTOP) one of its processes at its start, while it loads,
in a prompt or in a step, all in turns, and waits until all are gone. It prints the seconds of each run, and
exits with 1 if a process was left after a minute or the worker's status is not what it should be. On a loaded
machine seconds say little: the load is printed too."""

import argparse
import http.client
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

PROMPTS = ["The capital of France is", "Once upon a time there was", "def fibonacci(n):", "Water boils at",
           "The three primary colours are", "In 1969 the first man", "A recipe for pancakes:", "Dear Sir or Madam,",
           "The speed of light is", "My favourite book is", "Bees make honey by", "The square root of 144 is",
           "SELECT name FROM", "Roses are red,", "The largest planet of the solar system", "To be or not to be,",
           "The chemical symbol of gold is", "How do airplanes fly?", "The opposite of hot is", "1, 1, 2, 3, 5, 8,"]
PATIENCE = 60


class Worker:
    """A worker's process, its children and its log."""

    def __init__(self, options, ranks, more=()):
        command = [options.worker, "--model", options.model, "--port", "0", "--threads", "1", *more, *options.flags]
        if ranks > 1:
            command += ["-tp", str(ranks)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines, self.log, self.pids = queue.Queue(), [], {self.process.pid}
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def wait_for(self, words):
        """The line of the log that has these words; waits for it."""
        while True:
            line = self.lines.get(timeout=600)
            if line is None:
                raise SystemExit(f"the worker ended before it said \"{words}\":\n" + "".join(self.log[-20:]))
            self.log.append(line)
            if words in line:
                return line

    def port(self):
        return json.loads(self.wait_for('"ready"'))["port"]

    def children(self, count):
        """Waits for as many, and returns all of the worker's processes, its own first."""
        path, end, found = f"/proc/{self.process.pid}/task", time.monotonic() + PATIENCE, []
        while len(found) < count:
            if time.monotonic() > end:
                raise SystemExit("the worker has not started its ranks")
            found = [int(pid) for task in os.listdir(path) for pid in open(f"{path}/{task}/children").read().split()]
            time.sleep(0.005)
        self.pids |= set(found)
        return [self.process.pid, *found]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return connection.getresponse()


def texts_of(options, ranks):
    """For each prompt the tokens with their log probabilities and those of the two best."""
    worker = Worker(options, ranks)
    port, out = worker.port(), [None] * len(PROMPTS)

    def ask(index):
        body = {"prompt": PROMPTS[index], "max_tokens": options.tokens, "temperature": 0, "logprobs": 2}
        out[index] = json.loads(post(port, "/v1/completions", body).read())["choices"][0]["logprobs"]

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(len(PROMPTS))]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begin
    print(f"{ranks} ranks: {len(PROMPTS)} texts in {seconds:.1f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    if worker.end() != 0:
        raise SystemExit("the worker has not ended with 0")
    return out


def compare_texts(options):
    ranks = [int(number) for number in options.ranks.split(",")]
    wanted, faults = texts_of(options, ranks[0]), 0
    for other in ranks[1:]:
        same = ties = 0
        for prompt, one, two in zip(PROMPTS, wanted, texts_of(options, other)):
            pairs = itertools.zip_longest(one["tokens"], two["tokens"])
            at = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
            if at is None:
                same += 1
                continue
            best = sorted(one["top_logprobs"][at].values(), reverse=True)
            apart = best[0] - best[1]
            ties += apart < options.tie
            faults += apart >= options.tie
            print(f"  {other} ranks, \"{prompt}\", token {at}: the two best are {apart:.6f} apart")
        print(f"{other} ranks: {same} of {len(PROMPTS)} texts are those of {ranks[0]}, {ties} differ at a tie")
    return 1 if faults else 0


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(") ")[2][0] == "Z"
    except FileNotFoundError:
        return True


def kill_once(options, moment, number, victim):
    """Seconds until all processes are gone, and the worker's status."""
    ranks = int(options.ranks)
    worker = Worker(options, ranks, ["--context", "4096"])
    processes = worker.children(ranks - 1)
    if moment == "loading":
        worker.wait_for("the group is there")
    if moment in ("prompt", "step"):
        port = worker.port()
        prompt = " and ".join(str(i) for i in range(700 if moment == "prompt" else 3))
        body = {"prompt": prompt, "max_tokens": 2000, "temperature": 0, "stream": True, "ignore_eos": True}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        if moment == "step":
            connection.getresponse().readline()
    begin = time.monotonic()
    os.kill(processes[victim], number)
    status = None
    while time.monotonic() - begin < PATIENCE:
        status = worker.process.poll()
        if status is not None and all(gone(pid) for pid in worker.pids):
            break
        time.sleep(0.01)
    seconds = time.monotonic() - begin
    left = [pid for pid in worker.pids if not gone(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    # A stopped leader is killed by the others.
    wanted = -signal.SIGKILL if victim == 0 else 3
    fault = f"left: {left}" if left else "" if status == wanted else f"status {status}, not {wanted}"
    if fault:
        print("".join(worker.log[-5:]))
    return seconds, fault


def kill_many(options):
    ranks = range(int(options.ranks))
    cases = itertools.cycle(itertools.product(("start", "loading", "prompt", "step"),
                                              (signal.SIGKILL, signal.SIGSTOP), ranks))
    times, faults = [], 0
    for run, (moment, number, victim) in zip(range(options.runs), cases):
        seconds, fault = kill_once(options, moment, number, victim)
        times.append(seconds)
        faults += bool(fault)
        print(f"{run + 1},{moment},{number.name},rank {victim},{seconds:.2f} s,load {os.getloadavg()[0]:.1f},{fault}",
              flush=True)
    late = sum(seconds > 10 for seconds in times)
    print(f"{len(times)} runs: {faults} faults, {late} later than 10 s, the longest {max(times):.2f} s, the median "
          f"{sorted(times)[len(times) // 2]:.2f} s")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["texts", "kills"])
    parser.add_argument("--worker", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--ranks", help="texts: 1,2,3; kills: 2")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--tie", type=float, default=1e-4)
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:cut])
    options.flags = given[cut + 1:]
    options.ranks = options.ranks or ("2" if options.what == "kills" else "1,2,3")
    return kill_many(options) if options.what == "kills" else compare_texts(options)


if __name__ == "__main__":
    sys.exit(main())
