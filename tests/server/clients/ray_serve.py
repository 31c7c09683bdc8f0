#!/usr/bin/env python3
"""Two chat workers behind Ray Serve, as packaging/ray/rbee_serve.py runs them; one is killed under
load, and no request that had not begun to stream may fail. Usage: ray_serve.py WORKER MODEL

Ends with status 77 and a line that says so when Ray is not installed."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

FOLDER = str(pathlib.Path(__file__).parents[3] / "packaging" / "ray")
# Ray's processes read these. Without the first they run at niceness 15: on a machine that others use
# too, Serve's proxy then does not start in its time.
os.environ.update({"RAY_worker_niceness": "0", "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",
                   "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled",
                   "PYTHONPATH": FOLDER})

try:
    import ray
    from ray import serve
except ImportError as missing:
    print(f"SKIP: {missing}")
    sys.exit(77)

CLIENTS = 6
REQUESTS = 15
KEY = "ray-key"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, stream):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    body = {"prompt": "Once upon a time", "max_tokens": 24, "stream": stream}
    connection.request("POST", "/v1/completions", json.dumps(body),
                       {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"})
    response = connection.getresponse()
    begun = False
    try:
        text = b""
        while piece := response.read1():
            begun = True
            text += piece
    except http.client.HTTPException:
        return "broken" if begun else "failed"
    if response.status != 200:
        return "failed"
    whole = text.endswith(b"data: [DONE]\n\n") if stream else b'"usage"' in text
    return "whole" if whole else "broken" if stream and begun else "failed"


def head(port, **headers):
    """Status and headers of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", "/info", headers=headers)
    response = connection.getresponse()
    response.read()
    return response.status, response.headers


def workers_of(model):
    found = subprocess.run(["pgrep", "-f", f"worker-rbee.*{model}"], capture_output=True, text=True,
                           check=False).stdout.split()
    pids = []
    for pid in found:
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
        except OSError:
            continue
        if model in words and "--worker-id" in words:
            pids.append(int(pid))
    return pids


def main():
    worker, model = sys.argv[1:3]
    os.environ["RBEE_COMMAND"] = (f"{worker} --model {model} --threads 1 --context 256 "
                                  "--worker-id ray")
    os.environ["RBEE_CPUS"] = "0.1"
    os.environ["LLORCH_API_TOKEN"] = KEY
    sys.path.insert(0, FOLDER)
    import rbee_serve  # reads the variables
    port = free_port()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
             configure_logging=False, object_store_memory=100_000_000)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(rbee_serve.app)
    assert ask(port, False) == "whole"
    status, headers = head(port)
    assert status == 401 and headers["www-authenticate"] == "Bearer", (status, headers)
    status, headers = head(port, **{"x-api-key": KEY, "x-correlation-id": "c-1"})
    assert status == 200 and headers["x-correlation-id"] == "c-1", (status, headers)
    first = workers_of(model)
    assert len(first) == 2, first
    outcomes = []

    def client(number):
        for _ in range(REQUESTS):
            outcomes.append((number % 2 == 1, ask(port, number % 2 == 1)))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while len(outcomes) < CLIENTS * REQUESTS // 4:
        time.sleep(0.01)
    os.kill(first[0], signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert len(outcomes) == CLIENTS * REQUESTS
    kinds = {kind: outcomes.count(kind) for kind in set(outcomes)}
    assert not any(outcome == "failed" for _, outcome in outcomes), kinds
    assert not any(outcome == "broken" and not stream for stream, outcome in outcomes), kinds
    end = time.monotonic() + 120
    while first[0] in workers_of(model) or len(workers_of(model)) < 2:
        assert time.monotonic() < end, "no worker took the killed one's place"
        time.sleep(0.2)
    assert ask(port, True) == "whole"
    serve.shutdown()
    ray.shutdown()
    print(kinds)


if __name__ == "__main__":
    main()
