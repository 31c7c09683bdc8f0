"""Files that clients upload to rbee serve, and the models that it makes of them: /api/blobs, and files, adapters and quantize
of /api/create. Usage: as hub_test.py; its Python may have Ollama's client."""

import contextlib
import hashlib
import http.client
import json
import os
import socket
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hub_made_test  # noqa: E402
import hub_ollama_test  # noqa: E402
import hub_test  # noqa: E402
from hub_made_test import BASE, TEMPLATE  # noqa: E402
from hub_ollama_test import ask, lines_of  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LORA = os.path.join(HERE, "../models/language/data/lora/smollm")
CLIENT = os.path.join(HERE, "../server/clients/ollama_uploads_client.py")
PATIENCE = 60


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def peft_adapter(module, outputs, inputs):
    """PEFT's files of an adapter of rank 1, with zeros, of one matrix (outputs, inputs)."""
    config = {"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": [module.rpartition(".")[2]]}
    ends = (0, 4 * inputs, 4 * (inputs + outputs))
    header = {f"base_model.model.{module}.lora_{part}.weight": {"dtype": "F32", "shape": shape, "data_offsets": ends[i:i + 2]}
              for i, (part, shape) in enumerate((("A", [1, inputs]), ("B", [outputs, 1])))}
    head = json.dumps(header).encode()
    return {"adapter_config.json": json.dumps(config).encode(),
            "adapter_model.safetensors": struct.pack("<Q", len(head)) + head + bytes(ends[2])}


def gguf_adapter(layers, architecture):
    """A GGUF file of a LoRA adapter of rank 1, with zeros. layers: (rows, columns) of each matrix."""
    def text(words):
        return struct.pack("<Q", len(words)) + words.encode()
    pairs = [text(key) + struct.pack("<I", 8) + text(value) for key, value in
             (("general.type", "adapter"), ("adapter.type", "lora"), ("general.architecture", architecture))]
    pairs.append(text("adapter.lora.alpha") + struct.pack("<If", 6, 1))
    tensors, data = [], b""
    for name, (rows, columns) in layers.items():
        for part, shape in (("a", (columns, 1)), ("b", (1, rows))):  # innermost first
            tensors.append(text(f"{name}.weight.lora_{part}") + struct.pack("<IQQIQ", 2, *shape, 0, len(data)))
            data += bytes(shape[0] * shape[1] * 4)
            data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data


def wait_until(true, what):
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise AssertionError(what)
        time.sleep(0.01)


class Case(hub_made_test.Case):
    def blob(self, port, data, digest=None):
        """Uploads it; the status and the answer."""
        return ask(port, "POST", "/api/blobs/" + (digest or digest_of(data)), data)

    def put(self, port, files):
        """Uploads files: the field that names them."""
        for data in files.values():
            status, answer = self.blob(port, data)
            self.assertIn(status, (200, 201), answer)
        return {name: digest_of(data) for name, data in files.items()}

    def has(self, port, data):
        return ask(port, "HEAD", "/api/blobs/" + digest_of(data))[0]

    def stored(self):
        """Digests of the files that are kept, and what is unfinished."""
        folder = os.path.join(self.records, "blobs")
        names = os.listdir(folder) if os.path.exists(folder) else []
        kept = sorted(name.replace("-", ":") for name in names if name != "unfinished")
        unfinished = os.path.join(folder, "unfinished")
        return kept, os.listdir(unfinished) if os.path.exists(unfinished) else []

    def begin(self, port, data, length):
        """A connection that has sent this much of a longer file."""
        client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        client.sendall(f"POST /api/blobs/{digest_of(data)} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
                       .encode() + data)
        return client

    def gguf(self, kind="f32"):
        """The chat model of the hub as a GGUF file."""
        folder, path = os.path.join(self.home, "folder"), os.path.join(self.home, f"{kind}.gguf")
        os.makedirs(folder, exist_ok=True)
        for name, data in hub_made_test.chat_model().items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        self.rbee("quantize", folder, path, kind)
        return self.read(path)


class Uploading(Case):
    def test_a_file_is_kept_under_its_sum(self):
        port, process = self.serve("--manage")
        data = hub_test.noise(3_000_000, 1)
        self.assertEqual(self.has(port, data), 404)
        self.assertEqual(self.blob(port, data), (201, b""))
        self.assertEqual(self.has(port, data), 200)
        self.assertEqual(self.blob(port, data), (200, b""))  # it is there
        self.assertEqual(self.blob(port, b""), (201, b""))
        upper = "sha256-" + hashlib.sha256(data).hexdigest().upper()
        self.assertEqual(ask(port, "HEAD", "/api/blobs/" + upper)[0], 200)
        self.assertEqual(self.stored(), (sorted([digest_of(data), digest_of(b"")]), []))
        self.assertEqual(self.read(os.path.join(self.records, "blobs", digest_of(data).replace(":", "-"))), data)
        process.terminate()
        self.assertEqual(process.wait(30), 0)

    def test_chunks_are_a_file_too(self):
        port, _ = self.serve("--manage")
        pieces = [hub_test.noise(70_000, i) for i in range(9)]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("POST", "/api/blobs/" + digest_of(b"".join(pieces)), iter(pieces), encode_chunked=True,
                               headers={"Transfer-Encoding": "chunked"})
            self.assertEqual(connection.getresponse().status, 201)

    def test_another_sum_keeps_nothing(self):
        port, _ = self.serve("--manage")
        status, text = self.error(port, "POST", "/api/blobs/" + digest_of(b"b"), b"a")
        self.assertEqual((status, self.stored()), (400, ([], [])))
        self.assertIn(digest_of(b"a"), text)
        self.assertIn(digest_of(b"b"), text)
        for digest in ("sha256:00", "sha1:" + "0" * 64, "sha256:" + "g" * 64, "sha256:" + "0" * 65, "..%2f..%2fx"):
            self.assertEqual(self.error(port, "POST", "/api/blobs/" + digest, b"a")[0], 400, digest)
            self.assertEqual(ask(port, "GET", "/api/blobs/" + digest)[0], 400, digest)

    def test_one_that_breaks_off_leaves_nothing(self):
        port, process = self.serve("--manage")
        data = hub_test.noise(700_000, 2)
        with self.begin(port, data, 900_000):
            wait_until(lambda: self.stored()[1], "nothing is written")
        wait_until(lambda: self.stored() == ([], []), "the file stays")
        self.assertEqual(self.has(port, data), 404)
        with self.begin(port, data, 900_000):  # the server ends during one
            wait_until(lambda: self.stored()[1], "nothing is written")
            process.terminate()
            self.assertEqual(process.wait(30), 0)
        self.assertEqual(self.stored(), ([], []))

    def test_a_killed_server_leaves_nothing_for_the_next(self):
        port, process = self.serve("--manage")
        data = hub_test.noise(700_000, 3)
        with self.begin(port, data, 900_000):
            wait_until(lambda: self.stored()[1], "nothing is written")
            process.kill()
            process.wait(30)
        self.assertEqual(len(self.stored()[1]), 1)
        old = os.path.join(self.records, "blobs/unfinished", self.stored()[1][0])
        os.utime(old, (1, 1))  # one that is younger may be of a process that makes it just now
        self.serve("--manage")
        self.assertEqual(self.stored(), ([], []))

    def test_what_nobody_uses_goes_after_a_day(self):
        port, process = self.serve("--manage")
        for data in (b"old", b"new"):
            self.blob(port, data)
        process.terminate()
        process.wait(30)
        os.utime(os.path.join(self.records, "blobs", digest_of(b"old").replace(":", "-")), (1, 1))
        self.serve("--manage")
        self.assertEqual(self.stored(), ([digest_of(b"new")], []))

    def test_limits(self):
        port, _ = self.serve("--manage", "--max-upload-bytes", "1000", "--max-uploads", "4")
        self.assertEqual(self.blob(port, b"x" * 1000)[0], 201)
        self.assertEqual(self.error(port, "POST", "/api/blobs/" + digest_of(b"a"), b"x" * 1001)[0], 413)
        two = [self.begin(port, b"a", 900), self.begin(port, b"a", 900)]  # half of four
        status = None

        def refused():
            nonlocal status
            status = self.blob(port, b"y")[0]
            return status == 429

        wait_until(refused, "a third one is taken")
        self.assertEqual(ask(port, "GET", "/api/tags")[0], 200)
        for one in two:
            one.close()
        wait_until(lambda: not refused(), "none is taken")
        self.assertIn(status, (200, 201))

    def test_who_may(self):
        port, _ = self.serve("--pull")
        self.assertEqual(self.error(port, "POST", "/api/blobs/" + digest_of(b"a"), b"a")[0], 403)
        self.assertEqual(self.has(port, b"a"), 403)
        self.assertFalse(os.path.exists(self.records))
        port, _ = self.serve("--manage")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("POST", "/api/blobs/" + digest_of(b"a"), b"a", {"Origin": "https://other.example"})
            self.assertEqual(connection.getresponse().status, 403)
        self.assertEqual(self.stored(), ([], []))

    def test_a_full_disk(self):
        port, _ = self.serve("--manage", "--max-upload-bytes", "1000TB")
        with self.begin(port, b"a", 900_000_000_000_000) as client:
            answer = client.recv(9999)
        self.assertIn(b" 507 ", answer.split(b"\r\n")[0])
        self.assertIn(b"free", answer)
        self.assertEqual(self.stored(), ([], []))


class Making(Case):
    def test_of_a_gguf_file(self):
        port, process = self.serve("--manage")
        status, answer = ask(port, "POST", "/api/create", {"model": "own", "files": self.put(port, {"model": self.gguf()})})
        self.assertEqual((status, lines_of(answer)[-1]), (200, {"status": "success"}))
        self.assertEqual(self.count(port, "own", ("user", "Hi")), self.count(port, BASE, ("user", "Hi")))
        self.assertEqual(self.tags(port), [BASE, "own"])
        shown = json.loads(ask(port, "POST", "/api/show", {"model": "own"})[1])
        self.assertEqual((shown["template"], shown["details"]["format"]), (TEMPLATE, "gguf"))
        self.assertEqual([m["name"] for m in json.loads(ask(port, "GET", "/api/ps")[1])["models"]], [BASE, "own"])
        # Others are made of it, without its files once more.
        self.assertEqual(self.create(port, model="two", **{"from": "own", "system": "X"})[0], 200)
        self.assertEqual(ask(port, "POST", "/api/copy", {"source": "own", "destination": "three"}), (200, b""))
        self.assertEqual(len(self.stored()[0]), 1)
        self.assertEqual(self.count(port, "two", ("user", "Hi")), self.count(port, BASE, ("system", "X"), ("user", "Hi")))
        self.assertEqual(self.count(port, "three", ("user", "Hi")), self.count(port, BASE, ("user", "Hi")))
        process.terminate()
        self.assertEqual(process.wait(30), 0)
        port, _ = self.serve("--manage")
        self.assertEqual(self.tags(port), [BASE, "own", "three", "two"])
        self.assertEqual(self.count(port, "own", ("user", "Hi")), self.count(port, BASE, ("user", "Hi")))
        for name in ("own", "two", "three"):
            self.assertEqual(len(self.stored()[0]), 1)
            self.assertEqual(ask(port, "DELETE", "/api/delete", {"model": name}), (200, b""))
        self.assertEqual((self.stored(), os.listdir(os.path.join(self.records, "files"))), (([], []), []))
        self.assertEqual(self.tags(port), [BASE])

    def test_of_a_folder(self):
        port, _ = self.serve("--manage")
        files = self.put(port, hub_made_test.chat_model())
        self.assertEqual(self.create(port, model="own", files=files)[0], 200)
        self.assertEqual(self.count(port, "own", ("user", "Hi")), self.count(port, BASE, ("user", "Hi")))
        # Another one in its place.
        self.assertEqual(self.create(port, model="own", files=self.put(port, {"m.gguf": self.gguf("f16")}))[0], 200)
        self.assertEqual(len(self.stored()[0]), 1)
        self.assertEqual(self.count(port, "own", ("user", "Hi"))[0], self.count(port, BASE, ("user", "Hi"))[0])

    def test_adapters(self):
        port, _ = self.serve("--manage")
        adapters = self.put(port, hub_test.files_below(LORA))
        self.assertEqual(self.create(port, model="tuned", **{"from": BASE, "adapters": adapters})[0], 200)
        self.assertEqual(self.create(port, model="both", files=self.put(port, {"m.gguf": self.gguf()}), adapters=adapters)[0], 200)
        plain, tuned = (self.count(port, name, ("user", "Hello")) for name in (BASE, "tuned"))
        self.assertEqual(plain[0], tuned[0])
        self.assertNotEqual(plain[1], tuned[1])
        self.assertEqual(self.count(port, "both", ("user", "Hello")), tuned)
        self.assertEqual(self.create(port, model="again", **{"from": "tuned", "system": "X"})[0], 200)
        own = (("system", "X"), ("user", "Hello"))
        self.assertEqual(self.count(port, "again", *own[1:]), self.count(port, "tuned", *own))
        self.assertEqual(self.tags(port), ["again", "both", BASE, "tuned"])

    def test_an_adapter_of_another_model_is_refused_at_once(self):
        port, _ = self.serve("--manage")
        files = self.put(port, {"m.gguf": self.gguf()})
        with open(os.path.join(hub_made_test.LLAMA, "config.json"), encoding="utf-8") as file:
            width = json.load(file)["hidden_size"]
        fits = {"blk.0.attn_output": (width, width)}
        for layers, architecture, words in (
                (fits, "llama", None), ({"blk.0.attn_output": (width + 32, width)}, "llama", "blk.0.attn_output"),
                ({"blk.99.attn_output": (width, width)}, "llama", "blk.99.attn_output"), (fits, "gemma", "gemma")):
            adapters = self.put(port, {"a.gguf": gguf_adapter(layers, architecture)})
            body = {"model": "m", "files": files, "adapters": adapters}
            if words is None:
                self.assertEqual(self.create(port, **body)[0], 200)
                self.count(port, "m", ("user", "Hi"))
                status, problem = self.error(port, "POST", "/api/create", {"model": "n", "from": BASE, "adapters": adapters})
                self.assertEqual((status, "PEFT" in problem), (400, True), problem)
                continue
            status, problem = self.error(port, "POST", "/api/create", body)
            self.assertEqual((status, words in problem, "adapters" in problem), (400, True, True), problem)
        # PEFT's, over both forms of the model: of a wider one, of a deeper one, and of experts that it has not.
        for module, inputs, bases in (("layers.0.self_attn.o_proj", width + 32, 2), ("layers.99.self_attn.o_proj", width, 1),
                                      ("layers.0.mlp.experts.1.up_proj", width, 1)):
            adapters = self.put(port, peft_adapter(f"model.{module}", width, inputs))
            for base in ({"files": files}, {"from": BASE})[:bases]:
                status, problem = self.error(port, "POST", "/api/create", {"model": "n", "adapters": adapters, **base})
                self.assertEqual((status, module in problem), (400, True), problem)
        adapters = self.put(port, peft_adapter("model.layers.0.self_attn.o_proj", width, width))
        self.assertEqual(self.create(port, model="n", files=files, adapters=adapters)[0], 200)

    def test_matrices_that_adapters_may_not_change_are_refused_at_once(self):
        port, _ = self.serve("--manage")
        for family, architecture, matrices in (
                ("mixtral", "llama", lambda c: {"ffn_gate_inp": (c["num_local_experts"], c["hidden_size"])}),
                ("deepseek_v2", "deepseek2", lambda c: {
                    "attn_kv_a_mqa": (c["kv_lora_rank"] + c["qk_rope_head_dim"], c["hidden_size"]),
                    "attn_output": (c["hidden_size"], c["num_attention_heads"] * c["v_head_dim"])})):
            folder = os.path.join(HERE, "../models/language/data", family)
            with open(os.path.join(folder, "hf/config.json"), encoding="utf-8") as file:
                config = json.load(file)
            with open(os.path.join(folder, "model.gguf"), "rb") as file:
                files = self.put(port, {"m.gguf": file.read()})
            for name, shape in matrices(config).items():
                layer = f"blk.0.{name}"
                adapters = self.put(port, {"a.gguf": gguf_adapter({layer: shape}, architecture)})
                status, problem = self.error(port, "POST", "/api/create", {"model": "n", "files": files, "adapters": adapters})
                self.assertEqual((status, f"{layer}, which is no layer of the model that adapters may change" in problem),
                                 (400, True), problem)

    def test_quantize(self):
        port, _ = self.serve("--manage")
        files = self.put(port, {"m.gguf": self.gguf("f16")})
        body = {"model": "small", "files": files, "quantize": "Q8_0"}
        status, answer = ask(port, "POST", "/api/create", body)
        self.assertEqual(status, 200, answer)
        lines = lines_of(answer)
        self.assertEqual(lines[-1], {"status": "success"})
        grew = [line for line in lines if line["status"] == "quantizing model to Q8_0"]
        self.assertEqual(grew[-1]["completed"], grew[-1]["total"])
        done = [line.get("completed", 0) for line in grew]
        self.assertEqual(done, sorted(done))
        path = os.path.join(self.home, "q8_0.gguf")
        self.rbee("quantize", os.path.join(self.home, "f16.gguf"), path, "q8_0")
        digest = digest_of(self.read(path))
        self.assertIn(digest, self.stored()[0])
        shown = json.loads(ask(port, "POST", "/api/show", {"model": "small"})[1])
        self.assertEqual(shown["details"]["format"], "gguf")
        self.assertEqual(self.create(port, model="of-hub", **{"from": BASE, "quantize": "q4_K_M"})[0], 200)
        self.assertEqual(self.count(port, "of-hub", ("user", "Hi"))[0], self.count(port, BASE, ("user", "Hi"))[0])
        self.assertEqual(self.stored()[1], [])

    def test_a_client_that_leaves_ends_it(self):
        port, _ = self.serve("--manage")
        files = self.put(port, {"m.gguf": self.gguf("f16")})
        body = json.dumps({"model": "small", "files": files, "quantize": "q2_k"}).encode()
        for _ in range(3):  # at whatever point it leaves
            client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            client.sendall(b"POST /api/create HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            client.recv(1)
            client.close()
            wait_until(lambda: not self.stored()[1], "an unfinished file stays")
        links = os.path.join(self.records, "files")
        wait_until(lambda: not [name for name in os.listdir(links) if name.startswith("work-")], "a folder stays")

    def test_what_is_not_here_is_pulled(self):
        self.rbee("rm", BASE)
        port, process = self.serve("--manage")
        status, text = self.error(port, "POST", "/api/create", {"model": "m", "from": BASE})
        self.assertEqual(status, 400)
        self.assertIn("--pull", text)
        process.terminate()
        process.wait(30)
        port, _ = self.serve("--manage", "--pull")
        status, answer = ask(port, "POST", "/api/create", {"model": "m", "from": BASE, "system": "X"})
        self.assertEqual((status, lines_of(answer)[-1]), (200, {"status": "success"}), answer)
        self.assertTrue(any(line.get("total") for line in lines_of(answer)), answer)
        self.assertEqual(self.count(port, "m", ("user", "Hi")), self.count(port, BASE, ("system", "X"), ("user", "Hi")))
        self.assertEqual(self.error(port, "POST", "/api/create", {"model": "m", "from": "hf:org/none", "stream": False})[0], 404)

    def test_what_is_refused_is_named(self):
        port, _ = self.serve("--manage")
        gguf = self.put(port, {"m.gguf": self.gguf()})
        text = self.put(port, {"a.txt": b"text"})["a.txt"]
        folder = self.put(port, hub_made_test.chat_model())
        lora = self.put(port, hub_test.files_below(LORA))
        absent = "sha256:" + "0" * 64
        without = {name: digest for name, digest in folder.items() if name != "config.json"}
        for field, more in (("files", {"files": {"m.gguf": absent}}), ("files", {"files": {"m.gguf": "sha256:00"}}),
                            ("files", {"files": {"../m.gguf": text}}), ("files", {"files": {"/m.gguf": text}}),
                            ("files", {"files": {"a.txt": text}}), ("files", {"files": without}),
                            ("files", {"files": {**gguf, "other.gguf": gguf["m.gguf"]}}), ("files", {"files": [text]}),
                            ("files", {"files": gguf, "from": BASE}), ("files", {"files": {"m.gguf": text}}),
                            ("adapters", {"from": BASE, "adapters": {"a.gguf": absent}}),
                            ("adapters", {"from": BASE, "adapters": {"a.txt": text}}),
                            ("adapter", {"from": BASE, "adapters": gguf}), ("files", {"files": lora}),
                            ("q4_k_m", {"from": BASE, "quantize": "q9"}), ("quantize", {"from": BASE, "quantize": 1})):
            status, problem = self.error(port, "POST", "/api/create", {"model": "m", "stream": False, **more})
            self.assertEqual(status, 400, f"{more} {problem}")
            self.assertIn(field, problem, more)
            self.assertNotIn(self.home, problem)
        self.assertEqual(self.tags(port), [BASE])


class Clients(Case):
    def test_ollamas_own_python_client(self):
        self.gguf("f16")
        hub_ollama_test.run_client(self, CLIENT, os.path.join(self.home, "f16.gguf") + "," + LORA, "--manage")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
