"""Ollama's routes about files of models, of rbee serve. Usage: as hub_test.py; its Python may have Ollama's client."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hub_serve_test  # noqa: E402
import hub_test  # noqa: E402
from hub_server import Repo  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "nomic-embed-text"
REPO = "nomic-ai/nomic-embed-text-v1.5-GGUF"
CLIENT = os.path.join(HERE, "../server/clients/ollama_files_client.py")


def model_file(padding=0):
    """A tiny model; no reader looks behind its tensors."""
    with open(os.path.join(HERE, "../models/embedding/data/nomic/model.gguf"), "rb") as file:
        return file.read() + bytes(padding)


def run_client(case, script, model, *flags):
    """A script of Ollama's Python client against `rbee serve` with these flags; skips without the client."""
    python = hub_test.PYTHON
    if not python or subprocess.run([python, "-c", "import ollama"], capture_output=True).returncode != 0:
        case.skipTest("no Python with ollama")
    port, process = case.serve(*flags)
    done = subprocess.run([python, script, f"http://127.0.0.1:{port}", model], text=True, capture_output=True,
                          env={**os.environ, "NO_PROXY": "*"}, timeout=120)
    case.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    process.terminate()
    case.assertEqual(process.wait(30), 0)


def ask(port, method, path, body=None):
    """Status and bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body if isinstance(body, bytes | None) else json.dumps(body),
                       {"Content-Type": "application/json"})
    answer = connection.getresponse()
    with contextlib.closing(connection):
        return answer.status, answer.read()


def lines_of(data):
    return [json.loads(line) for line in data.splitlines() if line.strip()]


class Case(hub_serve_test.Case):
    padding = 3_000_000

    def setUp(self):
        super().setUp()
        file = model_file(self.padding)
        self.hub.repos[REPO] = Repo({"README.md": b"# a model\n", "nomic-embed-text-v1.5.f16.gguf": file})

    def tags(self, port):
        status, answer = ask(port, "GET", "/api/tags")
        self.assertEqual(status, 200)
        return sorted(model["name"] for model in json.loads(answer)["models"])

    def error(self, port, method, path, body):
        status, answer = ask(port, method, path, body)
        fields = json.loads(answer)
        self.assertEqual(list(fields), ["error"])
        return status, fields["error"]

    def blobs(self):
        try:
            return os.listdir(os.path.join(self.folder(REPO), "blobs"))
        except FileNotFoundError:
            return []

    def fetched(self):
        return [r for r in self.sent("files") if self.hub.repos[REPO].xet_hash("nomic-embed-text-v1.5.f16.gguf") in r[2]]


class Pulling(Case):
    def test_lines_tell_how_far_it_is(self):
        self.hub.faults["hold"] = lambda: None
        port, process = self.serve("--pull")
        status, answer = ask(port, "POST", "/api/pull", {"model": NAME + ":latest", "insecure": True})
        self.assertEqual(status, 200)
        lines = lines_of(answer)
        self.assertEqual(lines[0], {"status": "pulling manifest"})
        self.assertEqual([line["status"] for line in lines[-3:]],
                         ["verifying sha256 digest", "writing manifest", "success"])
        parts = lines[1:-3]
        total = len(model_file(self.padding))
        digest = "sha256:" + self.hub.repos[REPO].sum("nomic-embed-text-v1.5.f16.gguf")
        for part in parts:
            self.assertEqual(part["digest"], digest)
            self.assertEqual(part["status"], "pulling " + digest[7:19])
            self.assertEqual(part["total"], total)
        done = [part.get("completed", 0) for part in parts]
        self.assertEqual(done, sorted(done))
        self.assertEqual((done[0], done[-1]), (0, total))
        self.assertGreater(len(done), 2)

        self.assertIn(NAME, self.tags(port))
        for path, body in (("/api/embed", {"model": NAME + ":latest", "input": "a"}),
                           ("/v1/embeddings", {"model": NAME, "input": "a"}),
                           ("/api/embed", {"model": "nomic-embed-text:v1.5", "input": "a"})):
            status, answer = ask(port, "POST", path, body)
            self.assertEqual(status, 200, answer)
        _, models = ask(port, "GET", "/v1/models")
        self.assertIn(NAME, [model["id"] for model in json.loads(models)["data"]])
        process.terminate()
        self.assertEqual(process.wait(30), 0)

    def test_without_a_stream_there_is_one_answer(self):
        port, _ = self.serve("--pull")
        for name in (NAME, "hf.co/" + REPO, "hf:" + REPO):  # the second and third have it
            status, answer = ask(port, "POST", "/api/pull", {"name": name, "stream": False})
            self.assertEqual((status, json.loads(answer)), (200, {"status": "success"}))
        self.assertEqual(len(self.fetched()), 1)
        self.assertIs(json.loads(ask(port, "GET", "/health")[1])["pull"], True)
        served, = json.loads(ask(port, "GET", "/workers")[1])["models"]
        for name in (NAME, "hf.co/" + REPO, "hf:" + REPO):
            self.assertIn(name, [served["name"], *served["aliases"]])
        lines = lines_of(ask(port, "POST", "/api/pull", {"name": NAME})[1])
        self.assertEqual([line["status"].split()[0] for line in lines],
                         ["pulling", "pulling", "verifying", "writing", "success"])
        self.assertEqual(lines[1]["completed"], lines[1]["total"])

    def test_errors_are_ollamas(self):
        port, _ = self.serve("--pull")
        missing = "pull model manifest: file does not exist"
        status, text = self.error(port, "POST", "/api/pull", {"model": "nobody", "stream": False})
        self.assertEqual((status, text), (500, missing))
        for name in ("nobody", "hf:org/none", "hf:" + REPO + ":Q2_K"):
            status, answer = ask(port, "POST", "/api/pull", {"model": name})
            lines = lines_of(answer)
            self.assertEqual((status, lines[0]), (200, {"status": "pulling manifest"}))
            self.assertEqual(list(lines[-1]), ["error"])
            self.assertTrue(lines[-1]["error"].startswith(missing), lines)
        self.assertIn("F16", lines[-1]["error"])  # what there is
        self.assertEqual(self.error(port, "POST", "/api/pull", {}), (400, "invalid model name"))
        for body in (b"{", {"model": 1}, {"model": NAME, "stream": "no"}):
            self.assertEqual(self.error(port, "POST", "/api/pull", body)[0], 400)
        status, text = self.error(port, "POST", "/api/push", {"model": NAME})
        self.assertEqual(status, 501)
        self.assertIn("push", text)

    def test_names_that_no_model_can_have(self):
        port, _ = self.serve("--pull", "--manage")
        names = ("hf:org/a--b", "hf:", "hf:org/../x", "../../etc/passwd", "a//b", "a b", "a\n", "hf.co/..", "x" * 2000,
                 "x" * 100_000, "hf:" + REPO + ":Q 4", "\ud83d\ude00")
        routes = (("POST", "/api/pull"), ("DELETE", "/api/delete"), ("POST", "/api/show"), ("POST", "/api/chat"),
                  ("POST", "/api/generate"), ("POST", "/api/embed"), ("POST", "/api/embeddings"))
        for method, path in routes:
            for name in names:
                status, text = self.error(port, method, path, {"model": name, "stream": True})
                self.assertEqual((status, text[:7]), (400, "model: "), f"{path} {name[:99]} {text[:200]}")
                self.assertLess(len(text), 8000)
            for name in ("", None, 1, [NAME], {"name": NAME}, True):
                status, text = self.error(port, method, path, {"model": name})
                self.assertEqual(status, 400, f"{path} {name}")
                self.assertIn("model", text)
        for path in ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/messages", "/v1/responses"):
            for name in (*names, 1, [NAME]):
                status, answer = ask(port, "POST", path, {"model": name})
                self.assertEqual(status, 400, f"{path} {name} {answer}")
                self.assertIn("model: ", json.loads(answer)["error"]["message"])
        self.assertEqual(self.sent("hub"), [])

    def test_the_kind_is_known_after_the_first_fetch(self):
        port, _ = self.serve("--pull")
        status, text = self.error(port, "POST", "/api/chat", {"model": NAME, "messages": [{"role": "user", "content": "a"}]})
        self.assertEqual((status, text), (400, f'"hf:{REPO}:F16" does not support chat'))
        self.assertEqual(len(self.fetched()), 1)
        for path in ("/api/embed", "/v1/embeddings"):
            status, answer = ask(port, "POST", path, {"model": NAME, "input": "a"})
            self.assertEqual(status, 200, answer)
        _, models = ask(port, "GET", "/v1/models")
        self.assertEqual({model["kind"] for model in json.loads(models)["data"]}, {"embedding"})

    def test_a_model_for_vectors_is_fetched_by_its_first_request(self):
        port, _ = self.serve("--pull")
        status, answer = ask(port, "POST", "/api/embed", {"model": NAME, "input": "a"})
        self.assertEqual(status, 200, answer)
        self.assertEqual(len(self.fetched()), 1)
        shown = json.loads(ask(port, "POST", "/api/show", {"model": NAME})[1])  # of the file, which the name does not have
        self.assertEqual((shown["details"]["format"], shown["modelfile"]), ("gguf", "FROM nomic-embed-text-v1.5.f16.gguf\n"))
        tags = json.loads(ask(port, "GET", "/api/tags")[1])["models"]
        self.assertEqual({tag["details"]["format"] for tag in tags}, {"gguf"})

    def test_tags_tell_when_the_files_were_written(self):
        path = self.rbee("pull", NAME).strip()
        os.utime(path, (981173106, 981173106))
        port, _ = self.serve()
        for loaded in (False, True):
            if loaded:
                self.assertEqual(ask(port, "POST", "/api/embed", {"model": NAME, "input": "a"})[0], 200)
                shown = json.loads(ask(port, "POST", "/api/show", {"model": NAME})[1])
                self.assertEqual(shown["modified_at"], "2001-02-03T04:05:06.000Z")
            for tag in json.loads(ask(port, "GET", "/api/tags")[1])["models"]:
                self.assertEqual(tag["modified_at"], "2001-02-03T04:05:06.000Z", tag)

    def test_a_tag_that_is_not_known_says_what_is(self):
        port, _ = self.serve("--pull")
        status, text = self.error(port, "POST", "/api/chat", {"model": "llama3.2:3b-text-q4_0", "messages": []})
        self.assertEqual(status, 404)
        self.assertIn("bartowski/Llama-3.2-3B-Instruct-GGUF", text)
        status, text = self.error(port, "POST", "/api/pull", {"model": "llama3.2:9b", "stream": False})
        self.assertEqual(status, 500)
        self.assertIn("bartowski/Llama-3.2-3B-Instruct-GGUF", text)
        for name in (NAME + ":137m-v1.5-fp16", "ollama.com/library/" + NAME, "registry.ollama.ai/library/" + NAME,
                     "library/" + NAME, "hf.co/" + REPO + ":F16", "huggingface.co/" + REPO + ":f16"):
            status, answer = ask(port, "POST", "/api/embed", {"model": name, "input": "a"})
            self.assertEqual(status, 200, f"{name} {answer}")
        self.assertEqual(len(self.fetched()), 1)

    def test_the_flag_is_needed(self):
        port, _ = self.serve()
        status, text = self.error(port, "POST", "/api/pull", {"model": NAME})
        self.assertEqual(status, 403)
        self.assertIn("--pull", text)
        self.assertIs(json.loads(ask(port, "GET", "/health")[1])["pull"], False)
        self.assertEqual(self.sent("hub"), [])

    def test_two_clients_share_a_download(self):
        gate, held = threading.Event(), threading.Event()
        self.hub.faults["hold"] = lambda: (held.set(), gate.wait(30))
        self.addCleanup(gate.set)
        port, _ = self.serve("--pull")
        answers = {}
        threads = [threading.Thread(target=lambda i=i, stream=stream: answers.update(
            {i: ask(port, "POST", "/api/pull", {"model": NAME, "stream": stream})})) for i, stream in ((0, True), (1, False))]
        threads[0].start()
        self.assertTrue(held.wait(30))
        threads[1].start()
        time.sleep(0.3)
        gate.set()
        for thread in threads:
            thread.join(60)
        self.assertEqual(lines_of(answers[0][1])[-1], {"status": "success"})
        self.assertEqual(answers[1], (200, b'{"status":"success"}'))
        self.assertEqual(len(self.fetched()), 1)

    def test_eight_models_are_pulled_at_once(self):
        gate = threading.Event()
        self.hub.faults["hold"] = lambda: gate.wait(60)
        self.addCleanup(gate.set)
        for i in range(9):
            self.hub.repos[f"org/m{i}"] = Repo({"m.Q8_0.gguf": model_file(1_000_000 + i)})
        port, _ = self.serve("--pull")
        clients = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(8)]
        for i, client in enumerate(clients):
            self.addCleanup(client.close)
            client.request("POST", "/api/pull", json.dumps({"model": f"hf:org/m{i}"}))
            self.assertEqual(json.loads(client.getresponse().readline()), {"status": "pulling manifest"})
        status, text = self.error(port, "POST", "/api/pull", {"model": "hf:org/m8", "stream": False})
        self.assertEqual((status, text), (429, "too many models are pulled at once"))

    def test_a_signal_ends_a_front_that_pulls(self):
        gate, held = threading.Event(), threading.Event()
        self.hub.faults["hold"] = lambda: (held.set(), gate.wait(60))
        self.addCleanup(gate.set)
        port, process = self.serve("--pull")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(ask(port, "POST", "/api/pull", {"model": NAME})))
        thread.start()
        self.assertTrue(held.wait(30))
        process.terminate()
        self.assertEqual(process.wait(30), 0, self.log)
        thread.join(30)
        self.assertEqual(lines_of(answers[0][1])[-1], {"error": "the server is stopping"})

    def test_a_client_that_leaves_ends_it_and_the_next_goes_on(self):
        gate, held = threading.Event(), threading.Event()
        self.hub.faults["hold"] = lambda: (held.set(), gate.wait(30))
        self.addCleanup(gate.set)
        port, _ = self.serve("--pull")
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        client.request("POST", "/api/pull", json.dumps({"model": NAME}))
        answer = client.getresponse()
        self.assertEqual(json.loads(answer.readline()), {"status": "pulling manifest"})
        self.assertTrue(held.wait(30))
        answer.close()
        client.close()
        for _ in range(600):
            if any("a pull ended early" in line for line in self.log):
                break
            time.sleep(0.05)
        self.assertTrue(any("nobody waits" in line for line in self.log), self.log)
        self.assertTrue(any(name.endswith(".rbee.incomplete") for name in self.blobs()), self.blobs())
        self.hub.faults.clear()
        gate.set()
        status, answer = ask(port, "POST", "/api/pull", {"model": NAME, "stream": False})
        self.assertEqual((status, json.loads(answer)), (200, {"status": "success"}))
        self.assertEqual(self.blobs(), [self.hub.repos[REPO].sum("nomic-embed-text-v1.5.f16.gguf")])


class Deleting(Case):
    padding = 0

    def test_a_loaded_model_is_unloaded_first(self):
        self.rbee("pull", NAME)
        port, process = self.serve("--pull", "--manage")
        status, answer = ask(port, "POST", "/api/embed", {"model": NAME, "input": "a"})
        self.assertEqual(status, 200, answer)
        self.assertEqual(self.worker(port, "hf:" + REPO)["state"], "ready")
        self.assertEqual(ask(port, "DELETE", "/api/delete", {"model": NAME}), (200, b""))
        self.assertFalse(os.path.exists(self.folder(REPO)))
        self.assertEqual(self.tags(port), [])
        for path in ("/v1/models", "/workers", "/health"):
            self.assertNotIn(REPO, ask(port, "GET", path)[1].decode())
        self.assertEqual(self.error(port, "DELETE", "/api/delete", {"model": NAME}), (404, f"model '{NAME}' not found"))

        self.assertEqual(ask(port, "POST", "/api/pull", {"model": NAME, "stream": False})[0], 200)
        self.assertIn(NAME, self.tags(port))
        status, answer = ask(port, "POST", "/api/embed", {"model": NAME, "input": "a"})
        self.assertEqual(status, 200, answer)
        process.terminate()
        self.assertEqual(process.wait(30), 0)

    def test_errors_are_ollamas(self):
        self.hub.repos[REPO].files["nomic-embed-text-v1.5.Q8_0.gguf"] = model_file() + b"0"
        self.hub.repos[REPO] = Repo(self.hub.repos[REPO].files)
        for quantization in ("F16", "Q8_0"):
            self.rbee("pull", f"hf:{REPO}:{quantization}")
        port, _ = self.serve("--manage")
        self.assertEqual(self.error(port, "DELETE", "/api/delete", {"name": "nobody"}), (404, "model 'nobody' not found"))
        self.assertEqual(self.error(port, "DELETE", "/api/delete", {}), (400, "invalid model name"))
        self.assertEqual(self.error(port, "DELETE", "/api/delete", b"[]")[0], 400)
        status, text = self.error(port, "DELETE", "/api/delete", {"model": f"hf:{REPO}:F16"})
        self.assertEqual(status, 400)
        self.assertIn("deleted together", text)
        self.assertEqual(len(self.blobs()), 2)
        self.assertEqual(ask(port, "DELETE", "/api/delete", {"model": f"hf:{REPO}"})[0], 200)
        self.assertEqual(self.blobs(), [])

    def test_a_part_that_is_not_here_deletes_nothing(self):
        self.hub.repos[REPO].files["nomic-embed-text-v1.5.Q8_0.gguf"] = model_file() + b"0"
        self.hub.repos[REPO] = Repo(self.hub.repos[REPO].files)
        self.rbee("pull", f"hf:{REPO}:Q8_0")
        port, _ = self.serve("--manage")
        # Ollama's name means F16.
        for name in (f"hf:{REPO}:F16", NAME, f"hf:{REPO}@nosuch", f"hf:{REPO}/none.gguf"):
            status, text = self.error(port, "DELETE", "/api/delete", {"model": name})
            self.assertEqual((status, len(self.blobs())), (404, 1), f"{name}: {text}")
        self.assertEqual(ask(port, "DELETE", "/api/delete", {"model": f"hf:{REPO}:q8_0"})[0], 200)
        self.assertEqual(self.blobs(), [])

    def test_the_flag_is_needed(self):
        self.rbee("pull", NAME)
        port, _ = self.serve("--pull")
        status, text = self.error(port, "DELETE", "/api/delete", {"model": NAME})
        self.assertEqual(status, 403)
        self.assertIn("--manage", text)
        self.assertEqual(len(self.blobs()), 1)


class Names(Case):
    padding = 0

    def test_commands_take_ollamas_names(self):
        path = self.rbee("pull", NAME).strip()
        self.assertTrue(path.endswith("/nomic-embed-text-v1.5.f16.gguf"), path)
        vectors = self.rbee("embed", "-m", NAME + ":latest", "a text", HF_HUB_OFFLINE="1")
        self.assertTrue(vectors)
        self.assertIn("freed", self.rbee("rm", NAME))  # the cache has no more of its repository
        self.assertIn("is not in the cache", self.rbee("rm", "hf:" + REPO, fails=True))


class Clients(Case):
    padding = 3_000_000

    def test_ollamas_own_python_client(self):
        run_client(self, CLIENT, NAME, "--pull", "--manage")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
