"""Workers that fetch their model: what they say meanwhile. Usage: as hub_test.py."""

import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hub_test  # noqa: E402
from hub_server import Repo  # noqa: E402

CHAT_WORKER = os.path.join(sys.argv[1], "llm-worker-rbee-cpu")


def asked(port, path, body=None):
    """Status, headers and JSON of an answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, {"Content-Type": "application/json"})
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers, json.load(answer)


class Hive(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Loading(hub_test.Case):
    def worker(self, program, *words):
        """A worker, and the port that its log names first."""
        process = subprocess.Popen([program, *words, "--port", "0"], env=self.environment(LLORCH_LOG_FORMAT="json"),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        line = next(line for line in process.stdout if '"listening"' in line)
        return process, int(re.search(r'"port": ?"(\d+)"', line)[1])

    def progress(self, port, least):
        """The first that has so many bytes."""
        for _ in range(600):
            status, headers, health = asked(port, "/health")
            self.assertEqual((status, health["status"]), (503, "starting"))
            self.assertGreaterEqual(int(headers["Retry-After"]), 1)
            progress = health.get("progress", {"done": -1})
            if progress["done"] >= least:
                return progress
            time.sleep(0.05)
        self.fail(f"no progress to {least} bytes: {health}")

    def test_a_worker_tells_how_much_it_has_fetched(self):
        self.hub.repos["org/tiny-emoji"] = Repo(hub_test.files_below(hub_test.TINY_EMOJI))
        go_on = threading.Semaphore(0)
        self.hub.faults["hold"] = go_on.acquire
        hive = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hive)
        hive.heard = []
        threading.Thread(target=hive.serve_forever, daemon=True).start()
        self.addCleanup(hive.server_close)
        self.addCleanup(hive.shutdown)
        process, port = self.worker(hub_test.WORKER, "--model", "hf:org/tiny-emoji", "--worker-id", "w-7", "--hive-url",
                                    f"http://127.0.0.1:{hive.server_address[1]}")
        first = self.progress(port, 1)
        self.assertEqual(first["phase"], "fetching")
        self.assertGreater(first["total"], first["done"])
        go_on.release()
        second = self.progress(port, first["done"] + 1)
        self.assertEqual(second["total"], first["total"])
        go_on.release(100)
        ready = next(line for line in process.stdout if '"ready"' in line)
        self.assertIn(f'"port":"{port}"', ready.replace('": "', '":"'))
        status, _, health = asked(port, "/health")
        self.assertEqual((status, health["status"], "progress" in health), (200, "healthy", False))
        process.terminate()
        self.assertEqual(process.wait(30), 0)
        told = [beat["progress"] for beat in hive.heard if "progress" in beat]
        self.assertEqual({beat["worker"]["status"] for beat in hive.heard if "progress" in beat}, {"starting"})
        phases = [p["phase"] for p in told]  # the model may be loaded before the next heartbeat
        self.assertEqual(phases, sorted(phases))
        self.assertEqual(phases[0], "fetching")
        self.assertEqual(told[0]["total"], first["total"])

    def test_a_signal_ends_a_worker_that_fetches(self):
        self.hub.faults["hold"] = threading.Event().wait
        process, port = self.worker(CHAT_WORKER, "--model", "hf:org/large", "--worker-id", "w")
        first = self.progress(port, 1)
        self.assertGreater(first["total"], 3 * hub_test.PART)
        self.assertGreater(first["bytes_per_second"], 0)
        for _ in range(300):
            stalled = self.progress(port, 1)
            if stalled["bytes_per_second"] == 0:
                break
            time.sleep(0.1)
        self.assertEqual(stalled["bytes_per_second"], 0)
        self.assertNotIn("seconds_left", stalled)
        status, headers, answer = asked(port, "/v1/chat/completions", b'{"messages":[{"role":"user","content":"Hi"}]}')
        self.assertEqual((status, answer["error"]["code"]), (503, "MODEL_LOADING"))
        self.assertGreaterEqual(int(headers["Retry-After"]), 1)
        process.terminate()
        self.assertEqual(process.wait(30), 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
