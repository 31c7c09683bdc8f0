#!/usr/bin/env python3
"""A hive: starts chat workers as rbee's does, receives their heartbeats, loses and replaces them.
Usage: hive.py WORKER MODEL

It waits for what must happen, minutes at most on a busy machine, and needs nothing but Python."""

import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

PATIENCE = 150


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited in vain: {what}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Hive:
    """Takes heartbeats, unless it is down."""

    def __init__(self, port):
        self.port = port
        self.beats = []
        self.server = None
        self.up()

    def up(self):
        hive = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/worker-heartbeat", self.path
                hive.beats.append(json.loads(body))
                answer = b'{"status":"ok"}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        http.server.HTTPServer.allow_reuse_address = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def down(self):
        self.server.shutdown()
        self.server.server_close()

    def statuses(self, worker, first=0):
        """Heartbeats of one worker, starting at index `first` of all workers'."""
        return [beat["worker"]["status"] for beat in self.beats[first:]
                if beat["worker"]["id"] == worker]


class Worker:
    """A worker's process with the arguments and the closed streams that the hive gives it."""

    def __init__(self, program, model, hive):
        self.port = free_port()
        self.id = f"worker-cpu-{self.port}"
        self.process = subprocess.Popen(
            [program, "--worker-id", self.id, "--model", model, "--device", "0", "--port",
             str(self.port), "--queen-url", f"http://localhost:{hive.port}", "--threads", "1",
             "--context", "8192"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("2xx at /", self.answers)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("localhost", self.port, timeout=PATIENCE)
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"} if body else {})
        response = connection.getresponse()
        return response.status, response.read().decode()

    def answers(self):
        assert self.process.poll() is None, self.process.returncode
        try:
            return self.ask("GET", "/")[0] == 200
        except OSError:
            return False

    def events(self, body):
        """What the queen does with /v1/inference: a job, then the lines of its stream."""
        status, text = self.ask("POST", "/v1/inference", body)
        assert status == 200, text
        job = json.loads(text)
        status, stream = self.ask("GET", job["sse_url"])
        assert status == 200, stream
        lines = [line[6:] for line in stream.split("\n") if line.startswith("data: ")]
        assert lines[-1] == "[DONE]", lines
        return [json.loads(line) for line in lines[:-1]]

    def stop(self):
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == 0
        return time.monotonic() - begin


def check_contract(worker):
    """rbee's worker-contract, and what its hive and queen rely on."""
    with open(f"/proc/{worker.process.pid}/cmdline", encoding="utf-8") as file:
        words = file.read().split("\0")
    assert "worker-rbee" in words[0] and "--model" in words, words
    status, text = worker.ask("GET", "/info")
    info = json.loads(text)
    assert status == 200 and set(info) == {"id", "model_id", "device", "port", "status",
                                           "implementation", "version"}, info
    assert info["id"] == worker.id and info["port"] == worker.port, info
    assert json.loads(worker.ask("GET", "/health")[1])["status"] == "healthy"
    assert worker.ask("GET", "/metrics")[0] == 200
    scheduler = {"prompt": "Hi", "max_tokens": 5, "temperature": 0.5}
    tagged = dict(scheduler, operation="infer", hive_id="localhost", model="m")
    for body in (scheduler, tagged):
        events = worker.events(body)
        kinds = [event["type"] for event in events]
        assert kinds[0] == "started" and kinds[-1] == "end" and "token" in kinds, kinds
    assert worker.ask("DELETE", "/v1/jobs/job-unknown")[0] == 202


def check_hive_down(hive, worker):
    """Every change is reported; a worker goes on without its hive, and reports to one that is back
    without waiting for its next turn, 30 s later."""
    seen = len(hive.beats)
    # Long enough to still run when the heartbeat is written, on any machine.
    endless = {"prompt": "Hi", "max_tokens": 100000, "ignore_eos": True}
    jobs = []
    for _ in range(8):
        status, text = worker.ask("POST", "/v1/jobs", endless)
        assert status == 200, text
        jobs.append(json.loads(text)["job_id"])
    wait_for("busy", lambda: "busy" in hive.statuses(worker.id, seen))
    hive.down()
    seen = len(hive.beats)
    for job in jobs:
        assert worker.ask("DELETE", f"/v1/jobs/{job}")[0] == 202
    for _ in range(3):
        assert worker.events({"prompt": "Hi", "max_tokens": 3})[-1]["type"] == "end"
    time.sleep(2)  # for the worker to notice; without it the test would see less, not fail
    assert worker.process.poll() is None
    hive.up()
    wait_for("a heartbeat after the hive is back", lambda: len(hive.beats) > seen)
    wait_for("ready again", lambda: hive.statuses(worker.id)[-1] == "ready")
    beat = hive.beats[-1]
    memory = {"vram_bytes_used", "device_memory_bytes", "device_memory_free_bytes"}
    assert set(beat) == {"worker", "timestamp"} | memory, beat
    assert beat["timestamp"].endswith("Z") and beat["vram_bytes_used"] > 0, beat


def main():
    program, model = sys.argv[1:3]
    hive = Hive(free_port())
    workers = [Worker(program, model, hive) for _ in range(2)]
    for worker in workers:
        check_contract(worker)
        wait_for("the first heartbeat", lambda: "ready" in hive.statuses(worker.id))
    # One is lost: the other does not notice, and a new one takes its place.
    lost, kept = workers
    lost.process.kill()
    assert lost.process.wait() == -signal.SIGKILL
    assert kept.events({"prompt": "Hi", "max_tokens": 3})[-1]["type"] == "end"
    assert "stopping" not in hive.statuses(lost.id)
    replacement = Worker(program, model, hive)
    check_contract(replacement)
    wait_for("the replacement's heartbeat", lambda: "ready" in hive.statuses(replacement.id))
    check_hive_down(hive, kept)
    for worker in (kept, replacement):
        worker.stop()
        # One that was already sent may be read after it.
        wait_for("the last heartbeats",
                 lambda: {"stopping", "stopped"} <= set(hive.statuses(worker.id)))
    assert not os.path.exists(f"/proc/{kept.process.pid}/exe")
    print("ok")


if __name__ == "__main__":
    main()
