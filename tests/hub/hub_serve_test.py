"""rbee serve without a file: the cache's models on demand, and with --pull the hub's. Usage: as hub_test.py."""

import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hub_test  # noqa: E402
import hub_worker_test  # noqa: E402
from hub_server import Repo  # noqa: E402

BERT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../models/embedding/data/bert/hf")
EMOJI_BODY = {"model": "hf:org/tiny-emoji", "prompt": "a dog", "n": 1}


class Case(hub_test.Case):
    def serve(self, *words, **environment):
        """The port, and the process."""
        process = subprocess.Popen([hub_test.RBEE, "serve", *words, "--port", "0", "--host", "127.0.0.1"],
                                   env=self.environment(LLORCH_LOG_FORMAT="json", **environment), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        line = next(line for line in process.stdout if '"ready"' in line and '"port"' in line)
        self.log = []
        threading.Thread(target=lambda: self.log.extend(process.stdout), daemon=True).start()
        return int(re.search(r'"port": ?"(\d+)"', line)[1]), process

    def post(self, port, path, body):
        status, _, answer = hub_worker_test.asked(port, path, json.dumps(body).encode())
        return status, answer

    def worker(self, port, name):
        _, _, answer = hub_worker_test.asked(port, "/workers")
        return next(m["workers"][0] for m in answer["models"] if m["name"] == name)


class Serving(Case):
    def setUp(self):
        super().setUp()
        self.hub.repos["org/tiny-emoji"] = Repo(hub_test.files_below(hub_test.TINY_EMOJI))
        self.hub.repos["org/bert"] = Repo(hub_test.files_below(BERT))

    def test_the_models_of_the_cache_are_served(self):
        self.rbee("pull", "hf:org/tiny-emoji", "hf:org/bert", "hf:org/chat-GGUF:Q8_0")
        port, process = self.serve(HF_ENDPOINT="http://127.0.0.1:9")  # nothing is there
        _, _, models = hub_worker_test.asked(port, "/v1/models")
        # The third is noise, which no reader opens.
        self.assertEqual({m["id"]: m["kind"] for m in models["data"]},
                         {"hf:org/tiny-emoji": "image", "hf:org/bert": "embedding"})
        self.assertEqual(self.worker(port, "hf:org/bert")["state"], "unloaded")
        status, answer = self.post(port, "/v1/embeddings", {"model": "hf:org/bert", "input": "a"})
        self.assertEqual(status, 200, answer)
        self.assertEqual(self.worker(port, "hf:org/bert")["state"], "ready")
        status, answer = self.post(port, "/api/embed", {"model": "hf.co/org/bert:latest", "input": "a", "keep_alive": 0})
        self.assertEqual(status, 200, answer)
        for _ in range(600):
            if self.worker(port, "hf:org/bert")["state"] == "unloaded":
                break
            time.sleep(0.05)
        self.assertEqual(self.worker(port, "hf:org/bert")["state"], "unloaded")
        status, answer = self.post(port, "/v1/images/generations", EMOJI_BODY)
        self.assertEqual(status, 200, answer)
        status, answer = self.post(port, "/v1/chat/completions", {"model": "hf:org/large", "messages": []})
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))
        self.assertIn("is not in the cache", answer["error"]["message"])
        process.terminate()
        self.assertEqual(process.wait(30), 0)

    def test_a_model_that_is_named_is_fetched(self):
        port, process = self.serve("--pull")
        _, _, models = hub_worker_test.asked(port, "/v1/models")
        self.assertEqual(models["data"], [])
        status, answer = self.post(port, "/v1/images/generations", EMOJI_BODY)
        self.assertEqual(status, 200, answer)
        _, _, models = hub_worker_test.asked(port, "/v1/models")
        self.assertEqual([m["id"] for m in models["data"]], ["hf:org/tiny-emoji"])
        for name in ("hf:org/none", "hf:no", "other"):
            status, answer = self.post(port, "/v1/images/generations", {**EMOJI_BODY, "model": name})
            self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"), answer)
        process.terminate()
        self.assertEqual(process.wait(30), 0)

    def test_a_model_larger_than_the_memory_is_not_fetched(self):
        port, process = self.serve("--pull", "--max-memory", "100MB")
        status, answer = self.post(port, "/v1/chat/completions", {"model": "hf:org/large", "messages": []})
        self.assertEqual((status, answer["error"]["code"]), (503, "MODEL_TOO_LARGE"), answer)
        self.assertRegex(answer["error"]["message"], r"'hf:org/large' needs \d+ MB of memory, and 100 MB are available")
        self.assertFalse(any(".incomplete" in path for path in hub_test.contents(self.home)))
        process.terminate()
        self.assertEqual(process.wait(30), 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
