"""Our worker, for the clients: one each for chats, embeddings, rankings and pictures, started once."""

import os
import subprocess
import time
import urllib.error
import urllib.request

import pytest

START_SECONDS = 60


def serve(worker, model, port, *more):
    process = subprocess.Popen(
        [worker, "--model", model, "--port", str(port), *more],
        stdout=subprocess.DEVNULL,
    )
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
            return process
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    process.kill()
    raise RuntimeError("the worker does not start")


def served(variable, offset, *more, worker="RBEE_WORKER"):
    port = int(os.environ["PORT"]) + offset
    process = serve(os.environ[worker], os.environ[variable], port, *more)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=10)


@pytest.fixture(scope="session")
def chat():
    yield from served("RBEE_CHAT_MODEL", 0, "--alias", "small", "--n-predict", "64")


@pytest.fixture(scope="session")
def embeddings():
    yield from served("RBEE_EMBEDDING_MODEL", 1, "--alias", "vectors")


@pytest.fixture(scope="session")
def ranking():
    yield from served("RBEE_RANKING_MODEL", 2, "--alias", "ranks")


@pytest.fixture(scope="session")
def pictures():
    yield from served("RBEE_IMAGE_MODEL", 3, worker="RBEE_IMAGE_WORKER")
