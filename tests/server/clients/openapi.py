#!/usr/bin/env python3
"""Tests a server against its own OpenAPI document with schemathesis. Usage: openapi.py URL TOKEN
[front]

front: it is `rbee serve`; what only its workers answer gets fewer questions, they are held themselves.
Ends with status 77 and a line that says so when the package `schemathesis` is not installed."""

import pathlib
import subprocess
import sys
import tempfile

try:
    import schemathesis
except ImportError:
    print("SKIP: the Python package schemathesis is not installed")
    sys.exit(77)


# Paths that the front answers itself, or from several kinds of workers.
OWN = ("^/(workers|metrics|version|openapi.json|health.*|ready|v1/ready|v1/health|models.*|"
       "v1/models.*|v1/jobs.*|v1/cancel)$")


def hold(url, token, *more):
    here = pathlib.Path(__file__).resolve().parent
    program = pathlib.Path(sys.executable).parent / "schemathesis"
    command = [
        program, "--config-file", here / "schemathesis.toml", "run", f"{url}/openapi.json",
        "--header", f"Authorization: Bearer {token}", *more,
        # The other job paths have the same handlers, and the worker must keep running.
        "--exclude-path-regex", "^/v1/(inference.*|shutdown)$",
        "--seed", "1", "--request-timeout", "60",
        # Threads that parse Python at the same time can trip over each other in CPython 3.11.
        "--workers", "1",
        "--suppress-health-check", "all", "--no-color"]
    with tempfile.TemporaryDirectory() as folder:  # it leaves files in its folder
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        print(run.stdout[-8000:], run.stderr[-2000:])
        sys.exit(1)
    print(run.stdout.splitlines()[-1])


def main():
    url, token = sys.argv[1:3]
    assert schemathesis.__version__ >= "4", schemathesis.__version__
    if "front" in sys.argv[3:]:
        hold(url, token, "--phases", "coverage", "--include-path-regex", OWN)
        hold(url, token, "--phases", "fuzzing", "--max-examples", "2")
    else:
        hold(url, token, "--phases", "coverage,fuzzing", "--max-examples", "5")


if __name__ == "__main__":
    main()
