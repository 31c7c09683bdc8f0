"""rbee, native inference workers: where the program of this wheel is, and a server that lives as long as a block.

    with rbee.Server("hf:org/repo-GGUF:Q4_K_M") as server:
        requests.post(server.url + "/v1/chat/completions", json={...})
"""

import collections
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import threading
import time
import urllib.request

__all__ = ["Server", "program"]


def _own_opener():
    """To ask this module's own server whether it is ready: its certificate may be for another name, and no proxy of
    this machine leads to it."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))


_OWN = _own_opener()
# The line that says "ready" has the level info, whatever the user's own programs log.
_ENVIRONMENT = {"LLORCH_LOG_FORMAT": "json", "RUST_LOG": "info"}


def program():
    """The path of the program rbee."""
    return os.fspath(pathlib.Path(__file__).parent / "bin" / "rbee")


def _is_given(value):
    return value is not None and value is not False


def _words(flags):
    """max_waiting=3 is --max-waiting 3; a list repeats its flag, True is the flag alone, None and False are none."""
    words = []
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif _is_given(value):
            for one in value if isinstance(value, (list, tuple)) else [value]:
                if one is None or isinstance(one, bool):
                    raise ValueError(f"{name} has {one!r} in its list: it must have texts or numbers")
                words += [flag, str(one)]
    return words


class Server:
    """Runs `rbee serve --model MODEL` with these flags while the block runs: kind="image", device="cuda", name="chat",
    worker_flag=["--max-running", "64"], ... (docs/reference/serve.md lists them). The block begins when the model is
    loaded; RuntimeError has the program's last lines if it cannot be. A server can run again after its block, but has one
    block at a time."""

    def __init__(self, model, *, program=None, timeout=600.0, **flags):
        """`timeout`: seconds for the model to load; None: as long as it takes. Without `host` and `port`, or where they are
        None, it listens on a free port of 127.0.0.1."""
        model = os.fspath(model)
        if not model:
            raise ValueError("model is empty: name a file, a folder or a model of the hub")
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout is {timeout!r}: it must be seconds from 0 on, or None")
        # Always with an address: without one, the program takes what OLLAMA_HOST and LLORCH_API_TOKEN say.
        given = {name: value for name, value in flags.items() if _is_given(value)}
        self._command = [program or globals()["program"](), "serve", "--model", model,
                         *_words({"host": "127.0.0.1", "port": 0, **given})]
        self._scheme = "https" if flags.get("tls_cert") else "http"
        self._timeout = timeout
        self._process = None
        self._forget()

    def _forget(self):
        """What is known of the last run."""
        self._lines = collections.deque(maxlen=50)
        self._problem = None
        self._address = None  # host and port

    @property
    def url(self):
        """Without a slash at its end; known inside the block."""
        if self._address is None:
            raise RuntimeError("the server was not started")
        host, port = self._address
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def __enter__(self):
        if self._process is not None:
            raise RuntimeError("the server runs already: a second one needs a Server of its own")
        self._forget()
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True, errors="replace",
                                         env={**os.environ, **_ENVIRONMENT})
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)
        self._process = None
        self._address = None

    def _read(self, lines):
        # To the end: a full pipe would stop the program.
        for line in lines:
            self._lines.append(line.rstrip("\n"))
            entry = _entry(line)
            if entry.get("message") == "ready":
                self._address = entry["host"], int(entry["port"])
            elif str(entry.get("message")).startswith("a worker ended"):
                self._problem = entry.get("problem", line)
        lines.close()

    def _wait(self):
        end = float("inf") if self._timeout is None else time.monotonic() + self._timeout
        while self._address is None or not self._ready():
            status = self._process.poll()
            if status is not None:
                self._reader.join(10)
                raise self._error(f"rbee serve ended with status {status}")
            if self._problem is not None:
                raise RuntimeError(self._problem)
            if time.monotonic() > end:
                raise self._error(f"the model was not ready after {self._timeout} seconds")
            time.sleep(0.02)

    def _ready(self):
        try:
            with _OWN.open(self.url + "/health/ready", timeout=10):
                return True
        except (OSError, http.client.HTTPException):
            return False

    def _error(self, reason):
        return RuntimeError("\n".join([reason + ":", *self._lines]))


def _entry(line):
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
