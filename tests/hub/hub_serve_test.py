"""rbee serve without a file: the cache's models on demand, and with --pull the hub's. Usage: as hub_test.py."""

import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

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
        self.wait_unloaded(port)
        status, answer = self.post(port, "/v1/images/generations", EMOJI_BODY)
        self.assertEqual(status, 200, answer)
        status, answer = self.post(port, "/v1/chat/completions", {"model": "hf:org/large", "messages": []})
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))
        self.assertIn("is not in the cache", answer["error"]["message"])
        process.terminate()
        self.assertEqual(process.wait(30), 0)

    def listed(self, port):
        """The names of the models, from a look at the cache that is new."""
        time.sleep(2.1)
        _, _, models = hub_worker_test.asked(port, "/v1/models")
        return [m["id"] for m in models["data"]]

    def embed(self, port, name="hf:org/bert", **more):
        path = "/api/embed" if more else "/v1/embeddings"
        return self.post(port, path, {"model": name, "input": "a", **more})

    def loaded_commit(self, port, name="hf:org/bert"):
        with open(f"/proc/{self.worker(port, name)['pid']}/cmdline", encoding="utf-8") as words:
            return re.search(r"snapshots/(\w{40})", words.read())[1]

    def wait_unloaded(self, port, name="hf:org/bert"):
        for _ in range(600):
            if self.worker(port, name)["state"] == "unloaded":
                return
            time.sleep(0.05)
        self.fail("it stays loaded")

    def change_bert(self):
        self.hub.repos["org/bert"] = Repo({**hub_test.files_below(BERT), "README.md": b"# newer\n"})
        self.rbee("pull", "hf:org/bert")
        return self.hub.repos["org/bert"].commit

    def test_an_update_is_loaded_next_time(self):
        self.rbee("pull", "hf:org/bert")
        old = self.hub.repos["org/bert"].commit
        port, _ = self.serve()
        self.assertEqual(self.embed(port)[0], 200)
        new = self.change_bert()
        self.assertEqual(self.embed(port)[0], 200)
        self.assertEqual(self.listed(port), ["hf:org/bert"])
        self.assertEqual(self.loaded_commit(port), old)  # a loaded model is left
        self.assertEqual(self.embed(port, keep_alive=0)[0], 200)
        self.wait_unloaded(port)
        self.assertEqual(self.embed(port, keep_alive=0)[0], 200)
        self.wait_unloaded(port)
        self.assertEqual(self.embed(port)[0], 200)
        self.assertEqual(self.loaded_commit(port), new)
        self.assertEqual(self.listed(port), ["hf:org/bert"])

    def test_a_model_that_left_the_cache_is_gone(self):
        self.rbee("pull", "hf:org/bert")
        port, _ = self.serve()
        self.rbee("rm", "hf:org/bert")
        status, answer = self.embed(port)
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"), answer)
        self.assertEqual(self.listed(port), [])
        self.rbee("pull", "hf:org/bert")
        self.assertEqual(self.embed(port)[0], 200)
        pid = self.worker(port, "hf:org/bert")["pid"]
        self.rbee("rm", "hf:org/bert")
        self.assertEqual(self.listed(port), [])  # though it is loaded
        self.assertEqual(self.embed(port)[0], 404)
        self.wait_ended(pid)

    def wait_ended(self, pid):
        for _ in range(600):
            if not os.path.exists(f"/proc/{pid}"):
                return
            time.sleep(0.05)
        self.fail("it stays loaded")

    def test_a_deletion_at_another_front_is_seen(self):
        self.rbee("pull", "hf:org/bert")
        one, _ = self.serve("--manage")
        other, _ = self.serve()
        self.assertEqual(self.embed(other)[0], 200)
        pid = self.worker(other, "hf:org/bert")["pid"]
        delete = urllib.request.Request(f"http://127.0.0.1:{one}/api/delete", b'{"model": "hf:org/bert"}', method="DELETE")
        with urllib.request.urlopen(delete, timeout=60) as answer:
            self.assertEqual(answer.status, 200)
        time.sleep(2.1)
        self.embed(other)  # nobody asks for the list, and this one may still be answered
        self.wait_ended(pid)
        self.assertEqual(self.embed(other)[0], 404)
        self.assertEqual(self.listed(other), [])
        self.assertEqual(self.worker_names(other), [])

    def worker_names(self, port):
        _, _, answer = hub_worker_test.asked(port, "/workers")
        return [model["name"] for model in answer["models"]]

    def test_what_is_pulled_meanwhile_is_listed(self):
        port, _ = self.serve()
        status, answer = self.post(port, "/v1/embeddings", {"input": "a"})
        self.assertEqual(status, 404)
        self.assertIn("rbee pull", answer["error"]["message"])
        self.rbee("pull", "hf:org/bert")
        self.assertEqual(self.listed(port), ["hf:org/bert"])
        _, _, tags = hub_worker_test.asked(port, "/api/tags")
        self.assertEqual([m["name"] for m in tags["models"]], ["hf:org/bert"])
        self.assertEqual(self.post(port, "/v1/embeddings", {"input": "a"})[0], 200)

    def test_repositories_without_an_organisation(self):
        self.hub.repos["bert"] = Repo({**hub_test.files_below(BERT), "README.md": b"# old\n"})
        self.rbee("pull", "bert")
        self.assertTrue(os.path.isdir(os.path.join(self.cache, "models--bert")))
        self.assertIn("hf:bert ", self.rbee("list"))
        self.assertIn("model.safetensors", self.rbee("show", "hf:bert"))
        port, _ = self.serve("--manage")
        self.assertEqual(self.listed(port), ["hf:bert"])
        for name in ("hf:bert", "hf.co/bert", "hf:bert@main"):
            self.assertEqual(self.embed(port, name)[0], 200, name)
        self.assertEqual(self.post(port, "/api/show", {"model": "hf.co/bert:latest"})[0], 200)
        self.rbee("rm", "hf:bert")
        self.assertEqual(self.listed(port), [])
        port, _ = self.serve("--pull")
        self.assertEqual(self.embed(port, "hf:bert")[0], 200)

    def test_names_of_the_same_files_are_one_model(self):
        self.rbee("pull", "hf:org/bert")
        commit = self.hub.repos["org/bert"].commit
        port, _ = self.serve()
        for name in ("hf:org/bert", "hf:org/bert@main", f"hf:org/bert@{commit}", "hf.co/org/bert"):
            self.assertEqual(self.embed(port, name)[0], 200, name)
        for name in (f"hf.co/org/bert@{commit}:latest", f"hf:org/bert@{commit}", "hf:org/bert@main", "HF.co/Org/Bert"):
            status, answer = self.embed(port, name, truncate=True)
            self.assertEqual(status, 200, answer)
        self.assertEqual(self.post(port, "/api/show", {"model": "hf:org/bert@main"})[0], 200)
        self.assertEqual(self.listed(port), ["hf:org/bert"])
        new = self.change_bert()  # the name of the old commit still means the old files
        self.assertEqual(self.embed(port, keep_alive=0)[0], 200)
        self.wait_unloaded(port)
        self.assertEqual(self.embed(port)[0], 200)
        self.assertEqual(self.loaded_commit(port), new)
        self.assertEqual(self.embed(port, f"hf:org/bert@{commit}")[0], 200)
        self.assertEqual(self.loaded_commit(port, f"hf:org/bert@{commit}"), commit)

    def test_what_cannot_be_loaded_is_not_kept(self):
        port, _ = self.serve("--pull")
        for name in ("hf:org/chat-GGUF:q8_0", "hf:org/chat-GGUF:Q4_K_M", "hf:org/chat-GGUF/chat-Q8_0.gguf"):
            status, answer = self.post(port, "/v1/chat/completions", {"model": name, "messages": []})
            self.assertEqual((status, answer["error"]["code"]), (503, "MODEL_UNAVAILABLE"), answer)
        self.assertEqual(self.listed(port), [])

    def test_a_damaged_file_is_no_missing_model(self):
        self.rbee("pull", "hf:org/bert")
        blob = os.path.realpath(os.path.join(self.folder("org/bert"), "snapshots", self.hub.repos["org/bert"].commit,
                                             "model.safetensors"))
        os.chmod(blob, 0o644)
        with open(blob, "r+b") as file:
            file.write(b"\xff" * 64)
        port, _ = self.serve()
        status, answer = self.embed(port)
        self.assertEqual((status, answer["error"]["code"]), (503, "MODEL_UNAVAILABLE"), answer)
        self.assertIn("hf:org/bert", answer["error"]["message"])
        self.assertIn("rbee pull", answer["error"]["message"])
        self.assertNotIn(self.home, answer["error"]["message"])

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
