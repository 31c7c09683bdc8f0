#!/usr/bin/env python3
"""Drives a worker with requests of every kind for some minutes and watches what it holds.

  soak.py --worker build/cpu/bin/llm-worker-rbee-cpu --model MODEL.gguf [--minutes 10] [-- FLAGS ...]

Starts the worker (FLAGS are its own) and ends it with SIGTERM. Several clients send short and long
prompts, every way of sampling, every API, requests that are cancelled or whose reader goes away,
connections that are cut, reset or half closed at any byte, and bodies that must be refused. Exits with
1 when an answer is not what the request should get, when the worker keeps blocks of its cache, when
its memory or the device's grows, or when it does not end with status 0. --most-drift also bounds by how
many percent the resident memory of the last quarter differs from that of the third.

A CPU's cache has its memory once all of it was used: give a chat worker `-- --cache-tokens 8192`, so
that this is soon."""

import argparse
import http.client
import json
import math
import os
import random
import re
import shlex
import signal
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

WORDS = "the bee flies over a hill and finds one more flower of the same colour by the river".split()
SAMPLING = [{"temperature": 0}, {}, {"top_k": 0, "top_p": 0.9}, {"top_k": 0, "top_p": 1},
            {"repetition_penalty": 1.2, "presence_penalty": 0.4}, {"frequency_penalty": -0.5},
            {"top_k": 0, "top_p": 1, "min_p": 0.05}, {"temperature": 1.7, "top_k": 300}]
BAD_BODIES = ["{", "[]", "{}", '{"prompt":""}', '{"prompt":"a","temperature":-1}',
              '{"prompt":"a","max_tokens":0}', '{"prompt":"a","messages":[]}',
              '{"prompt":"a","stop":["' + "x" * 600 + '"]}']


SCHEMA = {"type": "object", "properties": {"flower": {"enum": ["rose", "daisy"]}},
          "required": ["flower"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "fly", "parameters": SCHEMA}}
FACTS = ["/", "/health", "/info", "/v1/ready", "/v1/models", "/metrics", "/openapi.json"]


class Unexpected(Exception):
    pass


def text(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(words))


class Client(threading.Thread):
    """One after another: requests of random kinds, each with an answer that is known beforehand."""

    def __init__(self, port, seed, stop):
        super().__init__(daemon=True)
        self.port, self.rng, self.stop = port, random.Random(seed), stop
        self.done, self.faults = {}, []

    def kinds(self):
        return [self.answer, self.answer, self.long_prompt, self.leave, self.cancel, self.refused,
                self.too_long, self.nothing_there, self.chat, self.chat_stream, self.choices,
                self.form, self.call_of_a_function, self.response, self.message, self.infer,
                self.tokens, self.facts, self.cut, self.reset, self.half_closed, self.noise]

    def run(self):
        kinds = self.kinds()
        while not self.stop.is_set():
            kind = self.rng.choice(kinds)
            try:
                outcome = self.once(kind)
                name = kind.__name__ + ("" if outcome == "ok" else f" ({outcome})")
                self.done[name] = self.done.get(name, 0) + 1
            except Exception as error:  # a client goes on, whatever it was given
                self.faults.append(f"{kind.__name__}: {type(error).__name__}: {error}")
                time.sleep(0.2)

    def once(self, kind):
        return kind()

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        return connection, connection.getresponse()

    def status(self, method, path, body=None):
        connection, reply = self.call(method, path, body)
        content = reply.read()
        connection.close()
        return reply.status, content

    def create(self, **fields):
        body = {"prompt": text(self.rng, self.rng.randint(1, 30)),
                "max_tokens": self.rng.choice([1, 5, 20, 60]), **self.rng.choice(SAMPLING), **fields}
        status, content = self.status("POST", "/v1/jobs", json.dumps(body))
        if status == 429:
            time.sleep(0.5)
            return None
        if status != 200:
            raise Unexpected(f"a job got {status}: {content[:200]}")
        return json.loads(content)

    def events(self, job, most=None):
        """Types and payloads of a job's events; leaves after `most` of them."""
        connection, reply = self.call("GET", job["sse_url"])
        found = []
        for line in reply:
            line = line.strip()
            if line == b"data: [DONE]":
                break
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
            if most is not None and len(found) >= most:
                break
        reply.close()
        connection.close()
        return found

    def whole(self, job):
        if job is None:
            return "overloaded"
        found = self.events(job)
        if not found or found[-1]["type"] != "end":
            raise Unexpected(f"a stream ended with {found[-1:]}")
        return "ok"

    def answer(self):
        return self.whole(self.create())

    def long_prompt(self):
        return self.whole(self.create(prompt=text(self.rng, 600), max_tokens=8))

    def leave(self):
        job = self.create(max_tokens=400)
        if job is None:
            return "overloaded"
        self.events(job, most=self.rng.randint(1, 5))
        return "ok"

    def cancel(self):
        job = self.create(max_tokens=400)
        if job is None:
            return "overloaded"
        if self.status("DELETE", f"/v1/jobs/{job['job_id']}")[0] != 202:
            raise Unexpected("a cancelled job was not accepted")
        last = self.events(job)[-1]
        if last["type"] != "end" and last.get("code") != "CANCELLED":
            raise Unexpected(f"a cancelled stream ended with {last}")
        return "ok"

    def refused(self):
        status, content = self.status("POST", "/v1/jobs", self.rng.choice(BAD_BODIES))
        if status != 400 or b"INVALID_REQUEST" not in content:
            raise Unexpected(f"a bad body got {status}: {content[:200]}")
        return "ok"

    def too_long(self):
        found = self.ask("/v1/jobs", {"prompt": text(self.rng, 20000)}, expected=(400,))
        if found is None:
            return "overloaded"
        if found["error"]["code"] != "INVALID_REQUEST":
            raise Unexpected(f"a prompt beyond the context got {found}")
        return "ok"

    def nothing_there(self):
        status, _ = self.status("GET", "/v1/jobs/job-unknown/stream")
        if status != 404:
            raise Unexpected(f"an unknown job got {status}")
        return "ok"

    def ask(self, path, body, expected=(200,)):
        """The answer's JSON; None where the worker has too much to do."""
        status, content = self.status("POST", path, json.dumps(body))
        if status == 429:
            time.sleep(0.5)
            return None
        if status not in expected:
            raise Unexpected(f"{path} got {status}: {content[:200]}")
        return json.loads(content)

    def lines(self, path, body):
        """Payloads of an event stream, without [DONE] but with whether it came."""
        connection, reply = self.call("POST", path, json.dumps({**body, "stream": True}))
        content = reply.read()
        connection.close()
        if reply.status == 429:
            time.sleep(0.5)
            return None, False
        if reply.status != 200:
            raise Unexpected(f"{path} got {reply.status}: {content[:200]}")
        found = [line[6:] for line in content.split(b"\n") if line.startswith(b"data: ")]
        done = bool(found) and found[-1] == b"[DONE]"
        return [json.loads(line) for line in found if line != b"[DONE]"], done

    def chat_body(self, **fields):
        return {"messages": [{"role": "user", "content": text(self.rng, self.rng.randint(1, 30))}],
                "max_tokens": self.rng.choice([1, 5, 20, 60]), **fields}

    def chat(self):
        found = self.ask("/v1/chat/completions", self.chat_body())
        if found is None:
            return "overloaded"
        if found["choices"][0]["finish_reason"] not in ("stop", "length"):
            raise Unexpected(f"a chat ended with {found}")
        return "ok"

    def chat_stream(self):
        pieces, done = self.lines("/v1/chat/completions",
                                  self.chat_body(stream_options={"include_usage": True}))
        if pieces is None:
            return "overloaded"
        # A model may end at once.
        ended = any(choice["finish_reason"] == "stop" for piece in pieces for choice in piece["choices"])
        if not done or (pieces[-1]["usage"]["completion_tokens"] < 1 and not ended):
            raise Unexpected(f"a chat's stream ended with {pieces[-1:]}")
        return "ok"

    def choices(self):
        found = self.ask("/v1/completions", {"prompt": text(self.rng, 5), "max_tokens": 8, "n": 2,
                                             "best_of": 3, "logprobs": 2})
        if found is None:
            return "overloaded"
        # A model may end at once; then there are no figures.
        scored = [bool(choice["logprobs"] and choice["logprobs"]["tokens"])
                  or (choice["text"] == "" and choice["finish_reason"] == "stop")
                  for choice in found["choices"]]
        if scored != [True, True]:
            raise Unexpected(f"two choices are {found}")
        return "ok"

    def form(self):
        found = self.ask("/v1/chat/completions", self.chat_body(max_tokens=60, response_format={
            "type": "json_schema", "json_schema": {"name": "f", "schema": SCHEMA}}))
        if found is None:
            return "overloaded"
        choice = found["choices"][0]
        if choice["finish_reason"] == "stop" and "flower" not in json.loads(
                choice["message"]["content"]):
            raise Unexpected(f"an answer under a schema is {choice}")
        return "ok"

    def call_of_a_function(self):
        found = self.ask("/v1/chat/completions", self.chat_body(
            max_tokens=100, tools=[TOOL], tool_choice="required"), expected=(200, 422))
        if found is None:
            return "overloaded"
        if "error" in found:
            return "ok"  # of a model without a form of calls
        choice = found["choices"][0]
        if choice["finish_reason"] not in ("tool_calls", "length"):
            raise Unexpected(f"a call is {choice}")
        return "ok"

    def response(self):
        pieces, _ = self.lines("/v1/responses", {"input": text(self.rng, 5), "max_output_tokens": 20})
        if pieces is None:
            return "overloaded"
        if pieces[-1]["type"] not in ("response.completed", "response.incomplete"):
            raise Unexpected(f"a response's stream ended with {pieces[-1:]}")
        return "ok"

    def message(self):
        pieces, _ = self.lines("/v1/messages", self.chat_body())
        if pieces is None:
            return "overloaded"
        if pieces[-1]["type"] != "message_stop":
            raise Unexpected(f"a message's stream ended with {pieces[-1:]}")
        return "ok"

    def infer(self):
        found = self.ask("/v1/infer", {"prompt": text(self.rng, 5), "max_tokens": 10})
        if found is not None and found["tokens_generated"] < 1 and found["stop_reason"] != "EOS":
            raise Unexpected(f"an answer is {found}")
        return "overloaded" if found is None else "ok"

    def tokens(self):
        said = text(self.rng, 50)
        found = self.ask("/tokenize", {"content": said})
        again = found and self.ask("/detokenize", {"tokens": found["tokens"]})
        if again and again["content"] != said:
            raise Unexpected(f"tokens of {said} are {again}")
        return "ok" if again else "overloaded"

    def facts(self):
        path = self.rng.choice(FACTS)
        status, content = self.status("GET", path)
        if status != 200 or not content:
            raise Unexpected(f"{path} got {status}")
        return "ok"

    def raw(self):
        """A connection and the bytes of a request for a stream."""
        body = json.dumps({**self.chat_body(max_tokens=400), "stream": True}).encode()
        head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
        return socket.create_connection(("127.0.0.1", self.port), 300), head.encode() + body

    def cut(self):
        connection, content = self.raw()
        with connection:
            connection.sendall(content[:self.rng.randint(0, len(content))])
        return "ok"

    def reset(self):
        connection, content = self.raw()
        with connection:
            connection.sendall(content)
            connection.recv(self.rng.choice([1, 300, 2000]))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return "ok"

    def half_closed(self):
        connection, content = self.raw()
        with connection:
            connection.sendall(content[:self.rng.choice([20, len(content)])])
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
        return "ok"

    def noise(self):
        connection, _ = self.raw()
        with connection:
            connection.sendall(self.rng.randbytes(self.rng.randint(1, 3000)) + b"\r\n\r\n")
            answer = connection.recv(4096)
        if answer and not re.match(rb"HTTP/1\.1 [45]\d\d ", answer):
            raise Unexpected(f"noise got {answer[:100]}")
        return "ok"


class Worker:
    def __init__(self, options):
        self.process = subprocess.Popen(
            self.command(options),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "LLORCH_LOG_FORMAT": "json"})
        self.problems = []
        self.port = self.read_port()
        threading.Thread(target=self.read_log, daemon=True).start()

    def command(self, options):
        return [*shlex.split(options.worker), "--model", options.model, "--port", "0", *options.flags]

    def read_port(self):
        said = []
        for line in self.process.stdout:
            said.append(line)
            found = re.search(r'"message":"ready".*"port":"?(\d+)', line)
            if found:
                return int(found.group(1))
        sys.exit("the worker does not start:\n" + "".join(said[-10:]))

    def read_log(self):
        for line in self.process.stdout:
            if re.search(r'"level":"(error|critical)"', line, re.IGNORECASE):
                self.problems.append(line.strip())

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024
        return 0.0

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/metrics")
        values = {}
        for line in connection.getresponse().read().decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name and not line.startswith("#"):
                values[name] = float(value)
        connection.close()
        return values

    def device_mib(self):
        """Of the device, in use by anybody; 0 where the worker does not tell."""
        metrics = self.metrics()
        return (metrics.get("rbee_device_memory_bytes", 0)
                - metrics.get("rbee_device_memory_free_bytes", 0)) / 2**20

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "none: it did not end within 30 s"


# Of pictures, and of chat.
BUSY = ("rbee_requests_running", "rbee_requests_waiting",
        "vllm:num_requests_running", "vllm:num_requests_waiting")


def wait_idle(worker, faults):
    for _ in range(300):
        metrics = worker.metrics()
        if sum(value for name, value in metrics.items() if name.partition("{")[0] in BUSY) == 0:
            break
        time.sleep(0.2)
    else:
        faults.append("requests are left a minute after the last client")
    # Workers of pictures have no cache; a front's figures are of several.
    kept = sum(value for name, value in metrics.items()
               if name.partition("{")[0] == "rbee_kv_cache_blocks_used")
    if kept != 0:
        faults.append(f"{kept:.0f} blocks of the cache are kept")


def growth(samples):
    """From the second quarter's median to the last quarter's: the first fills caches."""
    quarter = max(len(samples) // 4, 1)
    return statistics.median(samples[-quarter:]) - statistics.median(samples[quarter:2 * quarter]
                                                                     or samples)


def drift(samples):
    """Percent from the third quarter's median to the last quarter's."""
    quarter = max(len(samples) // 4, 1)
    third = statistics.median(samples[-2 * quarter:-quarter] or samples)
    return 100 * (statistics.median(samples[-quarter:]) / third - 1)


def tenths(samples):
    """Medians of ten spans of the time, for who looks for where it grows."""
    edges = [len(samples) * i // 10 for i in range(11)]
    return " ".join(f"{statistics.median(samples[begin:end]):.0f}"
                    for begin, end in zip(edges, edges[1:]) if end > begin)


def watch(worker, options, make_client):
    stop = threading.Event()
    clients = [make_client(worker.port, options.seed + i, stop) for i in range(options.clients)]
    for client in clients:
        client.start()
    resident, device, faults = [], [], []
    end = time.monotonic() + options.minutes * 60
    while time.monotonic() < end and worker.process.poll() is None:
        time.sleep(1)
        try:
            resident.append(worker.resident_mib())
            device.append(worker.device_mib())
        except (OSError, http.client.HTTPException) as error:
            faults.append(f"metrics: {error}")
            break
    stop.set()
    for client in clients:
        client.join(300)
        faults += client.faults
        if client.is_alive():
            faults.append("a client still waits for its answer")
    return clients, resident, device, faults


def report(options, clients, resident, device, faults):
    total = {}
    for client in clients:
        for name, count in client.done.items():
            total[name] = total.get(name, 0) + count
    for name in sorted(total):
        print(f"{total[name]:7d}  {name}")
    for name, samples, most in (("resident", resident, options.most_growth),
                                ("device", device, options.most_device_growth)):
        if not any(samples):
            continue
        grown = growth(samples)
        print(f"{name} memory: {samples[0]:.0f} MiB at first, {max(samples):.0f} at most, "
              f"{samples[-1]:.0f} at last, grown by {grown:.1f}, "
              f"from the third to the last quarter by {drift(samples):.2f} %; "
              f"in tenths of the time: {tenths(samples)}")
        if name == "resident" and abs(drift(samples)) > options.most_drift:
            faults.append(f"{name} memory changed by {drift(samples):.2f} % in the last half")
        if grown > most:
            faults.append(f"{name} memory grew by {grown:.1f} MiB, more than {most}")
    for fault, count in sorted({f: faults.count(f) for f in faults}.items()):
        print(f"FAULT ({count}x): {fault}")


def parser_of(description):
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-growth", type=float, default=24, metavar="MiB")
    parser.add_argument("--most-device-growth", type=float, default=64, metavar="MiB")
    parser.add_argument("--most-drift", type=float, default=math.inf, metavar="PERCENT")
    parser.add_argument("flags", nargs="*", help="flags of the worker, after --")
    return parser


def main(client_class=Client, description=__doc__):
    parser = parser_of(description)
    parser.add_argument("--worker", required=True, help="the worker's program, or a command")
    parser.add_argument("--model", required=True)
    options = parser.parse_args()
    worker = Worker(options)
    clients, resident, device, faults = watch(worker, options, client_class)
    if worker.process.poll() is None:
        wait_idle(worker, faults)
    status = worker.end()
    if status != 0:
        faults.append(f"the worker's exit status is {status}")
    faults += worker.problems
    report(options, clients, resident, device, faults)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
