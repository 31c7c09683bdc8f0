#!/usr/bin/env python3
"""Sends hostile requests to a worker, or to `rbee serve`, and measures how they affect others.

  hostile.py --programs build/cpu/bin --model MODEL.gguf [--front] [-- FLAGS of the worker ...]
  hostile.py --programs build/cpu/bin --model FOLDER --pictures [--front] [-- FLAGS ...]
  hostile.py --programs build/cpu/bin --model FOLDER --embeddings [--front] [-- FLAGS ...]

Starts the worker (with --front, `rbee serve` with one). For some seconds each, two strangers send
the requests of one family (hostile_corpus.py) again and again, while a plain client asks for 16
tokens (or an embedding, or a small picture) all the time and another one for /health. A stranger
leaves who waited --patience seconds. Strangers and plain clients have loopback addresses of their
own, since workers let addresses take turns. Prints a line a family:

  plain     the plain client's slowest answer, in ms; that without strangers stands above
  health    /health's slowest answer, in ms
  memory    most resident memory above the start, in MiB, of all processes
  stayed    of it, what is there when nobody asks any more: looked at until it is little,
            for --settle seconds at most. Before the start prompts fill the cache, whose pages are
            there from then on
  restarts  of the worker
  answers   that the strangers got, by status; 0 is none

Exits with 1 when a bound does not hold: plain at most --most-wait-ms above the slowest answer without
strangers, health --most-health-ms, memory --most-mib, stayed --most-stayed-mib, no restart, no status
500, no plain request without its answer. Only loopback addresses are asked; each stranger ends with its
family."""

import argparse
import collections
import http.client
import json
import multiprocessing
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import hostile_corpus

PLAIN, STRANGER, WATCHER = "127.0.0.1", "127.0.0.2", "127.0.0.3"
PAUSE = 0.02  # between two questions for /health, and between two looks at the memory
START = 120   # seconds for a worker to be ready
PATIENCE = 120  # for a plain answer

# A plain request is the same for each answer, and costs little.
CHAT = ("/v1/completions", {"prompt": "The bee flies", "max_tokens": 16, "ignore_eos": True,
                            "temperature": 0})
EMBEDDING = ("/v1/embeddings", {"input": "The bee flies from flower to flower and back to its hive."})
PICTURE = ("/sdapi/v1/txt2img", {"prompt": "a bee", "steps": 1, "width": 64, "height": 64})


class Attacker:
    """One stranger's connections, one after another but where a request is of many."""

    def __init__(self, port, path, options):
        self.port, self.path, self.patience = port, path, options.patience
        self.most_bytes = options.most_request_mib * 2**20
        self.statuses = collections.Counter()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), self.patience, (STRANGER, 0))

    def post(self, path, body, kind="application/json"):
        self.raw((f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                  f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)

    def raw(self, data):
        """Sends all, or as much as the server reads; leaves after its time limit."""
        if len(data) > self.most_bytes:
            return
        status, until = 0, time.monotonic() + self.patience
        try:
            with self.connect() as link:
                try:
                    link.sendall(data)
                except (ConnectionError, TimeoutError):
                    pass  # a server that refuses need not read the whole request
                answer = b""
                while time.monotonic() < until:
                    piece = link.recv(65536)
                    if not piece:
                        break
                    answer = (answer + piece)[:65536]
                    status = self.status_of(answer)
        except (OSError, ValueError):
            pass
        self.statuses[status] += 1

    @staticmethod
    def status_of(answer):
        found = re.match(rb"(?:HTTP/1\.[01] 100 [^\r]*\r\n\r\n)?HTTP/1\.[01] (\d+)", answer)
        return int(found[1]) if found else 0

    def many(self, count, begin):
        links = []
        try:
            for _ in range(count):
                link = self.connect()
                links.append(link)
                begin(link)
        except OSError:
            pass
        return links

    def trickle(self, links, data):
        """A byte of each connection now and then, for some seconds."""
        until = time.monotonic() + self.patience
        while time.monotonic() < until:
            for link in links:
                try:
                    link.send(data)
                except OSError:
                    pass
            time.sleep(0.1)
        for link in links:
            link.close()
        self.statuses[0] += len(links)

    def request(self, fields, kind="application/json"):
        body = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
        return (f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body

    def crowd(self, requests):
        """All at once, each a path, a body and where it is no JSON its kind; leaves when its patience
        ends. Those that are larger than the most are left out."""
        waiting = {}
        for self.path, *body in requests:
            data = self.request(*body)
            if len(data) > self.most_bytes:
                continue
            for link in self.many(1, lambda link, data=data: link.sendall(data)):
                waiting[link] = b""
        until = time.monotonic() + self.patience
        while waiting and time.monotonic() < until:
            for link in select.select(list(waiting), [], [], until - time.monotonic())[0]:
                try:
                    piece = link.recv(65536)
                except OSError:
                    piece = b""
                waiting[link] = waiting[link] or piece[:100]
                if not piece or b"\r\nContent-Length: " in piece:
                    self.statuses[self.status_of(waiting.pop(link))] += 1
                    link.close()
        self.statuses[0] += len(waiting)
        for link in waiting:
            link.close()

    def slow_heads(self, count):
        self.trickle(self.many(count, lambda link: link.sendall(b"POST / HTTP/1.1\r\nX: ")), b"a")

    def slow_bodies(self, count):
        head = self.request({"prompt": "a" * 60_000})[:-60_000]
        self.trickle(self.many(count, lambda link: link.sendall(head)), b"a")

    def slow_readers(self, count):
        def begin(link):
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 30)
        self.trickle(self.many(count, begin), b"")

    def idle(self, count):
        self.trickle(self.many(count, lambda link: None), b"")

    def leaving(self, count):
        whole = self.request({"prompt": "a", "max_tokens": 300, "steps": 1, "stream": True})
        for i in range(count):
            for link in self.many(1, lambda link: link.sendall(whole[:1 + i * len(whole) // count])):
                if i % 2:
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                link.close()
        self.statuses[0] += count

    def half_closed(self, count):
        whole = self.request({"prompt": "a", "max_tokens": 2, "steps": 1})
        links = self.many(count, lambda link: link.sendall(whole))
        for link in links:
            try:
                link.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        self.trickle(links, b"")


def attack(attacker, requests, seconds, out):
    """All requests, again and again for so long, but each once at least."""
    os.nice(5)  # a stranger has a machine of its own
    end, sent = time.monotonic() + seconds, 0
    while sent < len(requests) or time.monotonic() < end:
        requests[sent % len(requests)][1](attacker)
        sent += 1
    out.put((sent, attacker.statuses))


def ask(port, source, method, path, body=None, patience=PATIENCE):
    """Status and seconds of one request on a connection of its own."""
    begin = time.monotonic()
    try:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=patience, source_address=(source, 0))
        link.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        answer = link.getresponse()
        answer.read()
        link.close()
        return answer.status, time.monotonic() - begin
    except (OSError, http.client.HTTPException):
        return 0, time.monotonic() - begin


def keep_asking(stop, pause, out, *question):
    """Slowest answer, and statuses, until `stop`."""
    slowest, statuses = 0, collections.Counter()
    while not stop.is_set():
        status, seconds = ask(*question)
        slowest = max(slowest, seconds)
        statuses[status] += 1
        time.sleep(pause)
    out.put((slowest, statuses))


class Target:
    """The worker, or `rbee serve` with one."""

    def __init__(self, options):
        self.options, self.restarts, self.folder = options, 0, tempfile.TemporaryDirectory()
        self.start()

    def command(self):
        options = self.options
        worker = os.path.join(options.programs,
                              "sd-worker-cpu" if options.pictures else "llm-worker-rbee-cpu")
        flags = [part for flag in options.flags for part in shlex.split(flag)]
        if not options.front:
            return [worker, "--model", options.model, "--port", "0", *flags]
        config = os.path.join(self.folder.name, "serve.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"back_off_ms": 100, "models": [
                {"name": "model", "model": os.path.abspath(options.model), "program": worker,
                 "kind": "image" if options.pictures else "embedding" if options.embeddings else "chat",
                 "flags": flags}]}, file)
        return [os.path.join(options.programs, "rbee"), "serve", "--config", config, "--port", "0"]

    def start(self):
        self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.STDOUT,
                                        env={**os.environ, "LLORCH_LOG_FORMAT": "json"})
        said = []
        for line in self.process.stdout:
            said.append(line)
            found = re.search(r'"message":"ready".*"port":"?(\d+)', line)
            if found:
                self.port = int(found[1])
                break
        else:
            sys.exit("the worker does not start:\n" + "".join(said[-10:]))
        threading.Thread(target=collections.deque, args=(self.process.stdout, 0), daemon=True).start()
        end = time.monotonic() + START
        while ask(self.port, WATCHER, "GET", "/health/ready")[0] != 200:
            if time.monotonic() > end:
                sys.exit("the worker is not ready")
            time.sleep(0.1)

    def look(self):
        """Restarts so far; one that ended is started again."""
        if self.process.poll() is not None:
            self.restarts += 1
            print(f"it ended with status {self.process.returncode}")
            self.start()
        if not self.options.front:
            return self.restarts
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        link.request("GET", "/workers")
        workers = json.load(link.getresponse())["models"][0]["workers"]
        return self.restarts + sum(worker["restarts"] for worker in workers)

    def processes(self):
        found, pid = [self.process.pid], self.process.pid
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += [int(child) for child in file.read().split()]
        return found

    def figure(self, name):
        """A figure of /proc/PID/status in MiB, of all processes."""
        total = 0
        for pid in self.processes():
            with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith(name))
        return total / 1024

    def forget_most(self):
        """The most resident memory counts from here on."""
        for pid in self.processes():
            with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
                file.write("5")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "none: it did not end within 30 s"


class Trial:
    def __init__(self, options, target):
        self.options, self.target = options, target
        self.path, self.plain = PICTURE if options.pictures else EMBEDDING if options.embeddings else CHAT
        self.faults, self.alone = [], 0

    def watch(self, seconds, requests):
        """Measures plain clients while others send the hostile requests."""
        stop, out = multiprocessing.Event(), [multiprocessing.Queue() for _ in range(3)]
        port = self.target.port
        asking = [multiprocessing.Process(target=keep_asking, args=one) for one in (
            (stop, 0, out[0], port, PLAIN, "POST", self.path, self.plain),
            (stop, PAUSE, out[1], port, WATCHER, "GET", "/health"))]
        halves = [half for half in (requests[::2], requests[1::2]) if half]
        strangers = [multiprocessing.Process(target=attack, args=(
            Attacker(port, self.path, self.options), half, seconds, out[2]))
            for half in halves]
        for process in asking + strangers:
            process.start()
        if not requests:
            time.sleep(seconds)
        sent, statuses = 0, collections.Counter()
        for _ in strangers:
            count, some = out[2].get()
            sent, statuses = sent + count, statuses + some
        stop.set()
        plain, health = out[0].get(timeout=2 * PATIENCE), out[1].get(timeout=2 * PATIENCE)
        for process in asking + strangers:
            process.join()
        return plain, health, sent, statuses

    def settle(self, start):
        """The memory in use once it is small, or at the end of the wait."""
        end = time.monotonic() + self.options.settle
        while True:
            left = self.target.figure("VmRSS") - start
            if left <= self.options.most_stayed_mib or time.monotonic() > end:
                return left
            time.sleep(0.5)

    def bound(self, name, what, value, most):
        if value > most:
            self.faults.append(f"{name}: {what} is {value:.0f}, {most:.0f} at most")

    def row(self, name, requests, start):
        options, target = self.options, self.target
        restarts = target.look()
        target.forget_most()
        plain, health, sent, statuses = self.watch(options.seconds, requests)
        restarts = target.look() - restarts
        most = target.figure("VmHWM") - start
        stayed = self.settle(start)
        answers = " ".join(f"{status}:{count}" for status, count in sorted(statuses.items()))
        print(f"{name:30} {plain[0] * 1e3:7.0f} {health[0] * 1e3:7.0f} {most:7.0f} {stayed:7.0f} "
              f"{restarts:8}  {answers}", flush=True)
        if not sent:
            self.faults.append(f"{name}: nothing was sent")
        self.bound(name, "plain", plain[0] * 1e3, self.alone * 1e3 + options.most_wait_ms)
        self.bound(name, "health", health[0] * 1e3, options.most_health_ms)
        self.bound(name, "memory", most, options.most_mib)
        self.bound(name, "stayed", stayed, options.most_stayed_mib)
        self.bound(name, "restarts", restarts, 0)
        self.bound(name, "answers of 500", statuses[500], 0)
        for who, seen in (("plain", plain[1]), ("health", health[1])):
            refused = {status: count for status, count in seen.items() if status != 200}
            if refused:
                self.faults.append(f"{name}: {who} got {refused}, by status")

    def fill_cache(self):
        """With prompts as long as the context, until no more memory comes."""
        link = http.client.HTTPConnection("127.0.0.1", self.target.port, timeout=PATIENCE)
        link.request("GET", "/v1/models")
        count = json.load(link.getresponse())["data"][0]["max_model_len"] - 2
        before = 0
        for token in range(100, 200):
            status, _ = ask(self.target.port, PLAIN, "POST", "/v1/completions",
                            {"prompt": [token] * count, "max_tokens": 1})
            if status != 200:
                sys.exit(f"a prompt of {count} tokens got {status}")
            there = self.target.figure("VmRSS")
            if there < before + 4:
                break
            before = there

    def run(self, families):
        if not (self.options.pictures or self.options.embeddings):
            self.fill_cache()
        self.watch(1, [])
        (self.alone, _), health, _, _ = self.watch(max(2, self.options.seconds / 4), [])
        start = self.target.figure("VmRSS")
        print(f"alone: plain {self.alone * 1e3:.0f} ms, health {health[0] * 1e3:.0f} ms, "
              f"resident {start:.0f} MiB")
        print(f"{'family':30}   plain  health  memory  stayed restarts  answers")
        for name, make in families.items():
            requests = make()
            if self.options.each:
                for one, send in requests:
                    self.row(f"{name}: {one}"[:30], [(one, send)], start)
            else:
                self.row(name, requests, start)
        return self.faults


def chosen(options):
    table = {**(hostile_corpus.PICTURES if options.pictures else
                hostile_corpus.EMBEDDINGS if options.embeddings else hostile_corpus.CHAT), **hostile_corpus.BOTH}
    names = options.families.split(",") if options.families else list(table)
    if unknown := set(names) - set(table):
        sys.exit(f"unknown families: {', '.join(sorted(unknown))}; there are {', '.join(table)}")
    return {name: table[name] for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--programs", required=True, help="folder of the programs")
    parser.add_argument("--model", required=True)
    parser.add_argument("--pictures", action="store_true", help="the model makes pictures")
    parser.add_argument("--embeddings", action="store_true", help="the model makes embeddings")
    parser.add_argument("--front", action="store_true", help="through rbee serve")
    parser.add_argument("--families", help="some of them, with commas between")
    parser.add_argument("--each", action="store_true", help="a line for each request")
    parser.add_argument("--seconds", type=float, default=10, help="of a family")
    parser.add_argument("--patience", type=float, default=5, help="seconds that a stranger waits")
    parser.add_argument("--most-request-mib", type=float, default=100, help="larger ones are left out")
    parser.add_argument("--settle", type=float, default=300)
    parser.add_argument("--most-wait-ms", type=float, default=250)
    parser.add_argument("--most-health-ms", type=float, default=100)
    parser.add_argument("--most-mib", type=float, default=512)
    parser.add_argument("--most-stayed-mib", type=float, default=64)
    parser.add_argument("flags", nargs="*", help="the worker's, behind --")
    options = parser.parse_args()
    multiprocessing.set_start_method("fork")
    target = Target(options)
    faults = []
    try:
        faults = Trial(options, target).run(chosen(options))
    finally:
        status = target.end()
    if status != 0:
        faults.append(f"the exit status is {status}")
    for fault in faults:
        print("fault:", fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
