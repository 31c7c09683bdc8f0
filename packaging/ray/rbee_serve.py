"""Chat workers behind Ray Serve: an example for a Ray cluster.

    RBEE_COMMAND="llm-worker-rbee-cpu --model /models/m.gguf --threads 4" RBEE_REPLICAS=2 \
      serve run --app-dir packaging/ray rbee_serve:app

Each replica of `Worker` runs one worker's process; `RBEE_GPUS=1` reserves a GPU for each. `Front`
takes HTTP requests of any path of the worker and hands the answer on while it comes. A request whose
worker ends before the first piece of its answer goes to a worker again."""

import asyncio
import json
import os
import shlex
import subprocess
import threading

import aiohttp
from ray import serve
from ray.exceptions import RayError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse

COMMAND = shlex.split(os.environ.get("RBEE_COMMAND", "llm-worker-rbee-cpu"))
REPLICAS = int(os.environ.get("RBEE_REPLICAS", "2"))
GPUS = float(os.environ.get("RBEE_GPUS", "0"))
CPUS = float(os.environ.get("RBEE_CPUS", "1"))
TRIES = 60  # about a second apart, while a replica is replaced
# Of one connection, or of the program at its end; all other headers pass, either way.
OWN = {"connection", "content-length", "date", "expect", "host", "keep-alive", "server", "te", "trailer",
       "transfer-encoding", "upgrade"}


class WorkerLost(Exception):
    """The worker's process ended before the answer did."""


def passed_on(headers):
    return {name.lower(): value for name, value in headers.items() if name.lower() not in OWN}


def start(command):
    """The process and its port, which its log names."""
    process = subprocess.Popen(command + ["--host", "127.0.0.1", "--port", "0"],
                               stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "LLORCH_LOG_FORMAT": "json", "RUST_LOG": "info"})
    for line in process.stdout:
        record = json.loads(line)
        if record["message"] == "ready":
            # Somebody has to read on, or the worker waits for its log.
            threading.Thread(target=lambda: [None for _ in process.stdout], daemon=True).start()
            return process, int(record["port"])
    raise RuntimeError(f"the worker ended with status {process.wait()}")


@serve.deployment(num_replicas=REPLICAS, max_ongoing_requests=64, health_check_period_s=1,
                  ray_actor_options={"num_cpus": CPUS, "num_gpus": GPUS})
class Worker:
    def __init__(self, command):
        self.process, self.port = start(command)
        self.client = None

    def check_health(self):
        """Ray replaces a replica for which this raises."""
        if self.process.poll() is not None:
            raise WorkerLost(f"exit status {self.process.returncode}")

    def __del__(self):
        if self.process.poll() is None:
            self.process.terminate()

    async def ask(self, method, path, headers, body):
        """Status and headers, then the body's pieces."""
        if self.client is None:  # needs the loop that runs now
            self.client = aiohttp.ClientSession(f"http://127.0.0.1:{self.port}", auto_decompress=False,
                                                timeout=aiohttp.ClientTimeout(total=None))
        try:
            async with self.client.request(method, path, headers=headers, data=body) as answer:
                yield answer.status, passed_on(answer.headers)
                async for piece in answer.content.iter_any():
                    yield piece
        except aiohttp.ClientError as error:
            raise WorkerLost(str(error)) from error


@serve.deployment(max_ongoing_requests=1000, ray_actor_options={"num_cpus": 0})
class Front:
    def __init__(self, workers):
        self.workers = workers.options(stream=True)

    async def begin(self, request, body):
        """A worker's answer that has begun: its head, its first piece, and what follows."""
        headers = passed_on(request.headers)
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        for _ in range(TRIES):
            pieces = self.workers.ask.remote(request.method, path, headers, body)
            try:
                head = await anext(pieces)
                return head, await anext(pieces, b""), pieces
            except (WorkerLost, RayError):
                await asyncio.sleep(1)
        return None

    async def __call__(self, request: Request):
        begun = await self.begin(request, await request.body())
        if begun is None:
            return PlainTextResponse("no worker\n", status_code=503)
        (status, headers), first, rest = begun

        async def body():
            yield first
            async for piece in rest:
                yield piece

        return StreamingResponse(body(), status_code=status, headers=headers)


app = Front.bind(Worker.bind(COMMAND))
