#!/usr/bin/env python3
"""Drives `rbee serve` with requests of every kind for some minutes, and ends workers meanwhile.

  soak_front.py --rbee build/cpu/bin/rbee --config serve.json [--minutes 10] [--kill-seconds 15] \\
      [-- FLAGS ...]

The clients are soak.py's and soak_pictures.py's; each request names one of the models. Every
--kill-seconds a worker that is ready gets SIGKILL, SIGTERM or SIGSTOP. What is no stream, and is no
job, has to be answered all the same. Streams and jobs may be lost with their worker, of each client
one at most. Exits with 1 when an answer is not what the request should get, when a worker does not
come back, when the front's memory grows, or when it does not end with status 0 and all its workers.

The file should have a short `stable_seconds`, as workers that end too often are given up, and a
`health_interval_ms` that finds those that stand still soon."""

import http.client
import json
import os
import random
import signal
import sys
import threading
import time

import soak
import soak_pictures

SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP]
PATIENCE = 120  # seconds for a worker to be there again


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    content = json.loads(connection.getresponse().read())
    connection.close()
    return content


def workers(port):
    return [worker for model in get(port, "/workers")["models"] for worker in model["workers"]]


class Killer(threading.Thread):
    """Ends workers, and knows when each was away."""

    def __init__(self, front, options, stop):
        super().__init__(daemon=True)
        self.front, self.seconds, self.stop = front, options.kill_seconds, stop
        self.rng, self.counts, self.away, self.faults = random.Random(options.seed), {}, [], []

    def run(self):
        while not self.stop.wait(self.seconds):
            self.end_one()

    def end_one(self):
        ready = [worker for worker in workers(self.front.port) if worker["state"] == "ready"]
        if not ready:
            return
        victim, number = self.rng.choice(ready), self.rng.choice(SIGNALS)
        begin = time.monotonic()
        outage = [begin, float("inf")]
        self.away.append(outage)
        os.kill(victim["pid"], number)
        self.counts[number.name] = self.counts.get(number.name, 0) + 1
        while time.monotonic() < begin + PATIENCE:
            now = [worker for worker in workers(self.front.port) if worker["name"] == victim["name"]]
            if now[0].get("pid") != victim["pid"] and now[0]["state"] == "ready":
                break
            time.sleep(0.1)
        else:
            self.faults.append(f"{victim['name']} is not back after {number.name}: {now}")
        outage[1] = time.monotonic()

    def was_away(self, begin):
        """Whether some worker was, at any time since."""
        return any(end >= begin for _, end in self.away)


class OfFront:
    """What a client of the front does otherwise than one of a worker."""

    bound_to_a_worker = {"answer", "long_prompt", "leave", "cancel", "chat_stream", "response",
                         "message", "from_picture", "second_pass", "too_long"}

    def __init__(self, port, seed, stop, killer, models):
        super().__init__(port, seed, stop)
        self.killer, self.models, self.model = killer, models, models[0]

    def once(self, kind):
        self.model = self.rng.choice(self.models)
        begin = time.monotonic()
        try:
            return kind()
        except Exception:
            if kind.__name__ in self.bound_to_a_worker and self.killer.was_away(begin):
                return "lost"
            raise

    def call(self, method, path, body=None):
        if body and body.startswith("{\""):
            body = json.dumps({"model": self.model, **json.loads(body)})
        return super().call(method, path, body)


class ChatClient(OfFront, soak.Client):
    def kinds(self):
        return [kind for kind in super().kinds() if kind.__name__ != "facts"] + [
            self.own_paths, self.unknown_model]

    def own_paths(self):
        path = self.rng.choice(["/", "/health", "/v1/models", "/metrics", "/openapi.json", "/workers"])
        status, content = self.status("GET", path)
        if status != 200 or not content:
            raise soak.Unexpected(f"{path} got {status}")
        return "ok"

    def unknown_model(self):
        status, content = self.status("POST", "/v1/chat/completions",
                                      json.dumps(self.chat_body(model="none such")))
        if status != 404 or b"model_not_found" not in content:
            raise soak.Unexpected(f"an unknown model got {status}: {content[:200]}")
        return "ok"


class PictureClient(OfFront, soak_pictures.PictureClient):
    pass


class Front(soak.Worker):
    def command(self, options):
        return [options.rbee, "serve", "--config", options.config, "--port", "0", *options.flags]

    def wait_ready(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = workers(self.port)
            if all(worker["state"] == "ready" for worker in found):
                return found
            time.sleep(0.2)
        sys.exit(f"workers are not ready: {found}")


def models_of(port):
    """Names, by the kind of model."""
    out = {}
    for model in get(port, "/v1/models")["data"]:
        out.setdefault(model["kind"], []).append(model["id"])
    return out


def drive(front, options):
    """Clients, samples of memory, faults and the killer."""
    front.wait_ready()
    models, stop = models_of(front.port), threading.Event()
    killer = Killer(front, options, stop)
    of_kind = {"chat": ChatClient, "image": PictureClient}
    turns = [kind for kind in ("chat", "chat", "image") if kind in models]
    if not turns:
        sys.exit("the file has no model of chats or pictures")
    made = []

    def make_client(port, seed, client_stop):
        kind = turns[len(made) % len(turns)]
        made.append(of_kind[kind](port, seed, client_stop, killer, models[kind]))
        return made[-1]

    killer.start()
    clients, resident, device, faults = soak.watch(front, options, make_client)
    stop.set()
    killer.join(2 * PATIENCE)
    lost = sum(count for client in clients for name, count in client.done.items()
               if name.endswith("(lost)"))
    if lost > len(killer.away) * len(clients):
        faults.append(f"{lost} streams and jobs are lost, with {len(killer.away)} workers")
    return clients, resident, device, faults + killer.faults, killer


def problems_of(front, killer):
    """Errors of the log, but of the workers that were made to stand still."""
    told = [line for line in front.problems if "a worker does not answer" in line]
    if len(told) <= killer.counts.get("SIGSTOP", 0):
        return [line for line in front.problems if line not in told]
    return front.problems


def main():
    parser = soak.parser_of(__doc__)
    parser.add_argument("--rbee", required=True, help="the program")
    parser.add_argument("--config", required=True, help="the file of rbee serve")
    parser.add_argument("--kill-seconds", type=float, default=15)
    options = parser.parse_args()
    front = Front(options)
    clients, resident, device, faults, killer = drive(front, options)
    pids = []
    if front.process.poll() is None:
        soak.wait_idle(front, faults)
        pids = [worker["pid"] for worker in front.wait_ready()]
    status = front.end()
    if status != 0:
        faults.append(f"the front's exit status is {status}")
    faults += [f"the worker {pid} outlives the front" for pid in pids
               if os.path.exists(f"/proc/{pid}")]
    faults += problems_of(front, killer)
    print("workers ended:", ", ".join(f"{count} by {name}"
                                      for name, count in sorted(killer.counts.items())))
    soak.report(options, clients, resident, device, faults)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
