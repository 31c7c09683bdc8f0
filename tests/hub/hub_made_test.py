"""Models that clients of rbee serve make of others: /api/create and /api/copy. Usage: as hub_test.py; its Python may have
Ollama's client."""

import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import re
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hub_ollama_test  # noqa: E402
import hub_test  # noqa: E402
from hub_ollama_test import ask, lines_of  # noqa: E402
from hub_server import Repo  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LLAMA = os.path.join(HERE, "../models/language/data/smollm/hf")
CLIENT = os.path.join(HERE, "../server/clients/ollama_made_client.py")
BASE = "hf:org/tiny"
TEMPLATE = "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}"
PIRATE = "Say Arr."
ZERO = {"num_predict": 4, "temperature": 0}


def tokenizer():
    """A token for each printable character of ASCII, and one merge, since GGUF files have some."""
    vocab = {"<s>": 0, "</s>": 1}
    for code in range(ord("!"), ord("~") + 1):
        vocab[chr(code)] = len(vocab)
    vocab["\u0120"] = len(vocab)
    vocab["~~"] = len(vocab)
    special = [{"id": i, "content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False} for i, text in enumerate(("<s>", "</s>"))]
    return {"added_tokens": special, "decoder": {"type": "ByteLevel"},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "model": {"type": "BPE", "vocab": vocab, "merges": ["~ ~"]}}


def chat_model():
    return {**hub_test.files_below(LLAMA), "tokenizer.json": json.dumps(tokenizer()).encode(),
            "tokenizer_config.json": json.dumps({"chat_template": TEMPLATE, "eos_token": "</s>"}).encode()}


class Case(hub_ollama_test.Case):
    padding = 0

    def setUp(self):
        super().setUp()
        self.hub.repos["org/tiny"] = Repo(chat_model())
        self.rbee("pull", BASE)
        self.records = os.path.join(self.home, "rbee-models")

    def create(self, port, **body):
        return ask(port, "POST", "/api/create", {"stream": False, **body})

    def chat(self, port, model, *messages, **more):
        sent = [{"role": role, "content": text} for role, text in messages]
        status, answer = ask(port, "POST", "/api/chat", {"model": model, "messages": sent, "stream": False, **more})
        self.assertEqual(status, 200, answer)
        return json.loads(answer)

    def count(self, port, model, *messages, **more):
        """Tokens of the prompt, and the answer."""
        answer = self.chat(port, model, *messages, options=ZERO, **more)
        return answer["prompt_eval_count"], answer["message"]["content"]

    def files(self):
        return sorted(name for name in os.listdir(self.records) if name != "lock")


class Making(Case):
    def test_the_settings_are_those_of_requests_without_them(self):
        port, process = self.serve("--manage")
        made = {"model": "mario", "from": BASE, "system": PIRATE, "parameters": {"num_predict": 3, "temperature": 0, "seed": 7},
                "messages": [{"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}], "license": "MIT"}
        status, answer = ask(port, "POST", "/api/create", made)
        self.assertEqual((status, lines_of(answer)[-1]), (200, {"status": "success"}))
        whole = (("system", PIRATE), ("user", "c"), ("assistant", "d"), ("user", "Hi"))
        self.assertEqual(self.count(port, "mario", ("user", "Hi")), self.count(port, BASE, *whole))
        self.assertEqual(self.count(port, "Mario:latest", ("user", "Hi")), self.count(port, BASE, *whole))
        own = (("system", "X"), ("user", "Hi"))
        self.assertEqual(self.count(port, "mario", *own), self.count(port, BASE, own[0], *whole[1:3], own[1]))
        answer = self.chat(port, "mario", ("user", "Hi"))
        self.assertEqual((answer["eval_count"], answer["model"]), (3, "mario"))
        self.assertEqual(self.chat(port, "mario", ("user", "Hi"), options={"num_predict": 2})["eval_count"], 2)

        def generated(model, **more):
            status, answer = ask(port, "POST", "/api/generate", {"model": model, "prompt": "Hi", "stream": False, **more})
            self.assertEqual(status, 200, answer)
            fields = json.loads(answer)
            return fields["prompt_eval_count"], fields["eval_count"], fields["response"]

        three = {"num_predict": 3, "temperature": 0, "seed": 7}
        self.assertEqual(generated("mario"), generated(BASE, system=PIRATE, options=three))
        self.assertEqual(generated("mario", system="Z"), generated(BASE, system="Z", options=three))
        self.assertEqual(generated("mario", raw=True), generated(BASE, raw=True, options=three))

        status, answer = ask(port, "POST", "/v1/chat/completions",
                             {"model": "mario", "messages": [{"role": "user", "content": "Hi"}]})
        usage = json.loads(answer)["usage"]
        self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"]), (self.count(port, BASE, *whole)[0], 3))
        status, answer = ask(port, "POST", "/v1/completions", {"model": "mario", "prompt": "Hi"})
        self.assertEqual(status, 400, answer)
        self.assertIn("/api/chat", json.loads(answer)["error"]["message"])
        _, workers = ask(port, "GET", "/workers")
        self.assertEqual([model["name"] for model in json.loads(workers)["models"]], [BASE])  # one process
        process.terminate()
        self.assertEqual(process.wait(30), 0)

    def test_lists_and_show_know_it(self):
        port, _ = self.serve("--manage")
        body = {"model": "mario", "from": BASE, "system": PIRATE, "parameters": {"stop": ["x", "y"], "top_k": 3}, "license": ["a", "b"]}
        self.assertEqual(self.create(port, **body)[0], 200)
        self.assertEqual(self.tags(port), [BASE, "mario"])
        _, models = ask(port, "GET", "/v1/models")
        self.assertEqual({m["id"]: m.get("parent") for m in json.loads(models)["data"]}, {BASE: None, "mario": BASE})
        shown = json.loads(ask(port, "POST", "/api/show", {"model": "mario:latest"})[1])
        self.assertEqual((shown["system"], shown["license"]), (PIRATE, "a\nb"))
        self.assertEqual([line.split() for line in shown["parameters"].splitlines()],
                         [["stop", '"x"'], ["stop", '"y"'], ["top_k", "3"]])
        self.assertEqual((shown["details"]["parent_model"], shown["template"]), (BASE, TEMPLATE))
        self.assertIn(f'FROM {BASE}\nSYSTEM """{PIRATE}"""', shown["modelfile"])
        tags = {m["name"]: m for m in json.loads(ask(port, "GET", "/api/tags")[1])["models"]}
        self.assertNotEqual(tags[BASE]["digest"], tags["mario"]["digest"])
        self.assertEqual(tags[BASE]["details"]["family"], tags["mario"]["details"]["family"])
        loaded = json.loads(ask(port, "GET", "/api/ps")[1])["models"]
        self.assertEqual([m["name"] for m in loaded], [BASE, "mario"])

    def test_a_model_is_the_same_in_the_lists_whether_it_is_loaded_or_not(self):
        port, _ = self.serve("--manage")
        self.assertEqual(self.create(port, model="mario", **{"from": BASE, "system": PIRATE})[0], 200)

        def known(path):
            return {m["name"]: (m["digest"], m["size"]) for m in json.loads(ask(port, "GET", path)[1])["models"]}

        before = known("/api/tags")
        self.count(port, "mario", ("user", "Hi"))
        self.assertEqual(known("/api/tags"), before)
        self.assertEqual({name: digest for name, (digest, _) in known("/api/ps").items()},
                         {name: digest for name, (digest, _) in before.items()})

    def test_pictures_are_refused_before_the_template_sees_them(self):
        port, _ = self.serve("--manage")
        template = "{% for m in messages %}{{ 'a' + m.content }}{% endfor %}"
        self.assertEqual(self.create(port, model="plus", **{"from": BASE, "template": template})[0], 200)
        picture = ["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="]
        for path, body in (("/api/chat", {"messages": [{"role": "user", "content": "x", "images": picture}]}),
                           ("/api/generate", {"prompt": "x", "images": picture})):
            status, answer = ask(port, "POST", path, {"model": "plus", **body})
            self.assertEqual((status, "reads text alone" in answer.decode()), (400, True), answer)

    def test_pages_know_it(self):
        port, _ = self.serve("--manage")
        self.assertEqual(self.create(port, model="mario", **{"from": BASE, "system": PIRATE})[0], 200)
        self.assertEqual(self.create(port, model="long", **{"from": BASE, "template": TEMPLATE + "ab"})[0], 200)
        for loaded in (False, True):
            if loaded:
                self.assertEqual(self.count(port, "long", ("user", "Hi")), self.count(port, "long", ("user", "Hi")))
                self.count(port, BASE + "@main", ("user", "Hi"))
            listed = json.loads(ask(port, "GET", "/health")[1])["models"]
            self.assertEqual([(m["name"], m["kind"], m.get("parent")) for m in listed],
                             [(BASE, "chat", None), ("long", "chat", BASE), ("mario", "chat", BASE)])
            of_base = json.loads(ask(port, "GET", "/workers")[1])["models"][0]
            self.assertEqual((of_base["name"], of_base["made"]), (BASE, ["mario"]))  # "long" has a worker of its own

        def opened(name):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            with contextlib.closing(connection):
                connection.request("GET", "/?model=" + name, headers={"Accept": "text/html"})
                answer = connection.getresponse()
                return answer.status, answer.getheader("Location") or answer.read()[:15]
        for name, own in (("Mario:latest", "mario"), ("LONG", "long"), ("hf.co/Org/tiny", "hf%3Aorg%2Ftiny"),
                          (BASE + "@main", "hf%3Aorg%2Ftiny")):
            self.assertEqual(opened(name), (302, "/?model=" + own))
            self.assertEqual(opened(own), (200, b"<!doctype html>"))

    def test_a_template_has_its_own_worker(self):
        port, _ = self.serve("--manage")
        long = TEMPLATE + "abcdefgh"
        self.assertEqual(self.create(port, model="long", **{"from": BASE, "template": long})[0], 200)
        short, more = self.count(port, BASE, ("user", "Hi"))[0], self.count(port, "long", ("user", "Hi"))[0]
        self.assertEqual(more, short + 8)
        _, workers = ask(port, "GET", "/workers")
        self.assertEqual([model["name"] for model in json.loads(workers)["models"]], [BASE, "long"])
        self.assertEqual(self.tags(port), [BASE, "long"])
        self.assertEqual([m["name"] for m in json.loads(ask(port, "GET", "/api/ps")[1])["models"]], [BASE, "long"])
        self.assertEqual(json.loads(ask(port, "POST", "/api/show", {"model": "long"})[1])["template"], long)
        # Another one in its place is another worker.
        self.assertEqual(self.create(port, model="long", **{"from": BASE, "template": long + "ij"})[0], 200)
        self.assertEqual(self.count(port, "long", ("user", "Hi"))[0], short + 10)
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(ask(port, "DELETE", "/api/delete", {"model": "long"}), (200, b""))
        self.assertEqual((self.files(), self.tags(port)), ([], [BASE]))

    def test_a_template_in_gos_form(self):
        port, _ = self.serve("--manage")
        same = "{{ range .Messages }}{{ slice .Role 0 1 }}{{ .Content }}{{ end }}"
        turns = "{{ if .System }}s{{ .System }}{{ end }}u{{ .Prompt }}a{{ .Response }}"
        for name, template in (("same", same), ("turns", turns)):
            status, answer = self.create(port, model=name, **{"from": BASE, "template": template})
            self.assertEqual(status, 200, answer)
            self.assertEqual(json.loads(ask(port, "POST", "/api/show", {"model": name})[1])["template"], template)
        chat = (("system", "X"), ("user", "Hi"), ("assistant", "Yes"), ("user", "Z"))
        self.assertEqual(self.count(port, "same", *chat), self.count(port, BASE, *chat))
        self.assertEqual(self.count(port, "turns", *chat)[0], len("sXuHiaYesuZa"))
        self.assertEqual(self.count(port, "turns", *chat), self.count(port, BASE, *chat, ("assistant", "")))

    def test_a_template_fills_a_gap(self):
        port, _ = self.serve("--manage")
        gap = "{{ if .Suffix }}P{{ .Prompt }}S{{ .Suffix }}M{{ else }}{{ .Prompt }}{{ end }}"

        def generated(model, **more):
            body = {"model": model, "stream": False, "options": ZERO, **more}
            status, answer = ask(port, "POST", "/api/generate", body)
            return (status, *(json.loads(answer).get(key) for key in ("prompt_eval_count", "response", "error")))

        def capabilities(model):
            return json.loads(ask(port, "POST", "/api/show", {"model": model})[1])["capabilities"]
        self.assertEqual(self.create(port, model="gap", **{"from": BASE, "template": gap, "system": "X"})[0], 200)
        self.assertEqual((capabilities("gap"), capabilities(BASE)), (["completion", "tools", "insert"], ["completion", "tools"]))
        # What looks like a token in a client's text is text: of four characters here.
        self.assertEqual(generated("gap", prompt="ab", suffix="</s>")[1], generated(BASE, raw=True, prompt="PabS</s>M")[1] + 3)
        self.assertEqual(generated("gap", prompt="ab", suffix="cd"), generated(BASE, raw=True, prompt="PabScdM"))
        self.assertEqual(generated("gap", prompt="ab"), generated(BASE, raw=True, prompt="ab"))
        self.assertIn("does not support insert", generated(BASE, prompt="ab", suffix="cd")[3])

    def test_a_copy_is_the_same_model(self):
        port, _ = self.serve("--manage")
        self.assertEqual(self.create(port, model="mario", **{"from": BASE, "system": PIRATE})[0], 200)
        for source, copy in ((BASE, "user/two:v1"), ("mario", "three"), ("hf.co/org/tiny", "four")):
            self.assertEqual(ask(port, "POST", "/api/copy", {"source": source, "destination": copy}), (200, b""))
        self.assertEqual(self.tags(port), ["four", BASE, "mario", "three", "user/two:v1"])
        self.assertEqual(self.count(port, "three", ("user", "Hi")), self.count(port, "mario", ("user", "Hi")))
        self.assertEqual(self.count(port, "user/two:v1", ("user", "Hi")), self.count(port, BASE, ("user", "Hi")))
        status, answer = ask(port, "POST", "/v1/completions", {"model": "four", "prompt": "Hi"})  # no settings
        self.assertEqual(status, 200, answer)
        # Made of a made one, with its settings where it gives none.
        self.assertEqual(self.create(port, model="five", **{"from": "mario", "parameters": {"num_predict": 1, "temperature": 0}})[0], 200)
        self.assertEqual(self.chat(port, "five", ("user", "Hi"))["eval_count"], 1)
        self.assertEqual(self.count(port, "five", ("user", "Hi")), self.count(port, "mario", ("user", "Hi")))

    def test_it_is_deleted_alone_and_before_its_model(self):
        port, _ = self.serve("--manage")
        other, _ = self.serve("--manage")
        self.assertEqual(self.create(port, model="mario", **{"from": BASE, "system": PIRATE})[0], 200)
        self.assertEqual(self.tags(other), [BASE, "mario"])  # another front on the same cache
        status, text = self.error(port, "DELETE", "/api/delete", {"model": BASE})
        self.assertEqual(status, 400)
        self.assertIn("'mario'", text)
        self.assertEqual(ask(other, "DELETE", "/api/delete", {"model": "mario:latest"}), (200, b""))
        for front in (port, other):
            self.assertEqual(self.tags(front), [BASE])
            self.assertEqual(self.error(front, "POST", "/api/show", {"model": "mario"}), (404, "model 'mario' not found"))
        self.assertEqual(self.error(port, "DELETE", "/api/delete", {"model": "mario"}), (404, "model 'mario' not found"))
        self.assertEqual(ask(port, "DELETE", "/api/delete", {"model": BASE}), (200, b""))

    def test_they_are_there_after_a_restart(self):
        port, process = self.serve("--manage")
        self.assertEqual(self.create(port, model="mario", **{"from": BASE, "system": PIRATE})[0], 200)
        process.kill()
        process.wait(30)
        with open(os.path.join(self.records, "unfinished"), "w") as file:
            file.write('{"name":')  # of a process that was killed
        with open(os.path.join(self.records, "0" * 64 + ".json"), "w") as file:
            file.write('{"name":')
        port, _ = self.serve()  # without --manage they are served
        self.assertEqual(self.tags(port), [BASE, "mario"])
        self.assertEqual(self.count(port, "mario", ("user", "Hi")), self.count(port, BASE, ("system", PIRATE), ("user", "Hi")))
        self.rbee("rm", BASE)
        time.sleep(2.1)
        self.assertEqual(self.tags(port), [])

    def test_what_is_refused_is_named(self):
        port, _ = self.serve("--manage")
        for field, value in (("quantize", "q9_K"), ("files", {"a.gguf": "sha256:00"}), ("adapters", {"a": "sha256:00"}),
                             ("modelfile", "FROM x"), ("parameters", {"temperature": "hot"}), ("parameters", [1]),
                             ("messages", [{"content": "a"}]), ("messages", "a"), ("system", 1), ("license", {"a": 1}),
                             ("template", "{{ if .System }}{{ .Sistem }}{{ end }}"), ("template", "{% for %}"),
                             ("template", "{{ html .Prompt }}"), ("template", "{{ range .Messages }}{{ .Rolle }}{{ end }}"),
                             ("template", "{{ if .System }}"), ("template", "{{ raise_exception('never') }}"),
                             ("from", ""), ("from", 1), ("model", "a//b"), ("from", "../x"), ("model", BASE),
                             ("model", "nomic-embed-text"), ("system", "x" * 1_100_000)):
            status, text = self.error(port, "POST", "/api/create", {"model": "m", "from": BASE, field: value})
            self.assertEqual(status, 400, f"{field} {str(value)[:99]} {text[:99]}")
            named = "settings" if len(str(value)) > 1000 else field
            self.assertIn(named, text, str(value)[:99])
        self.assertEqual(self.error(port, "POST", "/api/create", {"from": BASE}), (400, "invalid model name"))
        for missing in ("nobody", "hf:org/none", "nomic-embed-text"):
            status, text = self.error(port, "POST", "/api/create", {"model": "m", "from": missing})
            if missing == "nobody":
                self.assertEqual((status, text), (404, "model 'nobody' not found"))
            else:
                self.assertEqual(status, 400)
                self.assertIn("--pull", text)
            self.assertEqual(self.error(port, "POST", "/api/copy", {"source": missing, "destination": "m"})[0], 404)
        for body in ({"source": BASE}, {"destination": "m"}, {"source": 1, "destination": "m"},
                     {"source": BASE, "destination": "a b"}, {"source": BASE, "destination": BASE}):
            self.assertEqual(self.error(port, "POST", "/api/copy", body)[0], 400, body)
        for field in ("source", "destination"):
            _, text = self.error(port, "POST", "/api/copy", {"source": BASE, "destination": "m", field: "a//b"})
            self.assertTrue(text.startswith(field + ": "), text)
        self.assertEqual(self.error(port, "POST", "/api/push", {"model": "m"})[0], 501)
        self.assertEqual(self.tags(port), [BASE])

    def test_the_flag_is_needed(self):
        port, _ = self.serve("--pull")
        for path in ("/api/create", "/api/copy"):
            status, text = self.error(port, "POST", path, {"model": "m", "from": BASE, "source": BASE, "destination": "m"})
            self.assertEqual(status, 403)
            self.assertIn("--manage", text)
        self.assertFalse(os.path.exists(self.records))

    def test_of_a_model_for_vectors(self):
        self.rbee("pull", hub_ollama_test.NAME)
        port, _ = self.serve("--manage")
        self.assertEqual(ask(port, "POST", "/api/copy", {"source": hub_ollama_test.NAME, "destination": "vectors"})[0], 200)
        status, answer = ask(port, "POST", "/api/embed", {"model": "vectors", "input": "a"})
        self.assertEqual(status, 200, answer)
        status, text = self.error(port, "POST", "/api/create", {"model": "m", "from": "vectors", "system": "a"})
        self.assertEqual(status, 400)
        self.assertIn("embeddings", text)


class Changing(Case):
    """One with a template, whose worker must not outlive its record."""

    def template(self, port, name, tokens, base=BASE):
        """Makes one whose prompts have so many tokens more."""
        status, answer = self.create(port, model=name, **{"from": base, "template": TEMPLATE + "x" * tokens})
        self.assertEqual(status, 200, answer)

    def more(self, port, name):
        """How many more."""
        return self.count(port, name, ("user", "Hi"))[0] - len("uHi")

    def gone(self, port, name):
        self.assertEqual(self.error(port, "POST", "/api/chat", {"model": name, "messages": [{"role": "user", "content": "Hi"}]}),
                         (404, f"model '{name}' not found"))

    def base(self, port, name):
        """The repository whose files its worker has."""
        with open(f"/proc/{self.worker(port, name)['pid']}/cmdline", encoding="utf-8") as words:
            return re.search(r"models--(\w+--\w+)", words.read())[1]

    def test_another_spelling_replaces_and_deletes_it(self):
        port, _ = self.serve("--manage")
        self.template(port, "Mario", 3)
        self.assertEqual(self.more(port, "mario"), 3)
        self.template(port, "mario:latest", 5)
        self.assertEqual(self.more(port, "mario"), 5)
        self.assertEqual(self.tags(port), [BASE, "mario:latest"])
        self.template(port, "Luigi", 7)
        self.assertEqual(self.more(port, "luigi"), 7)
        self.assertEqual(ask(port, "POST", "/api/copy", {"source": "mario", "destination": "luigi"}), (200, b""))
        self.assertEqual(self.more(port, "Luigi"), 5)
        for name, other in (("MARIO", "mario"), ("luigi:latest", "Luigi")):
            self.assertEqual(ask(port, "DELETE", "/api/delete", {"model": name}), (200, b""))
            self.gone(port, other)
        _, workers = ask(port, "GET", "/workers")
        self.assertEqual([m["name"] for m in json.loads(workers)["models"]], [BASE])

    def test_another_base_is_another_worker(self):
        self.hub.repos["org/two"] = Repo(chat_model())
        self.rbee("pull", "hf:org/two")
        port, _ = self.serve("--manage")
        other, _ = self.serve("--manage")
        self.template(port, "t", 3)
        for front in (port, other):
            self.assertEqual((self.more(front, "t"), self.base(front, "t")), (3, "org--tiny"))
        self.template(port, "T", 3, base="hf:org/two")
        for front in (port, other):
            self.assertEqual((self.more(front, "t"), self.base(front, "T")), (3, "org--two"))

    def test_another_front_notices_at_the_next_request(self):
        port, _ = self.serve("--manage")
        other, _ = self.serve("--manage")
        self.template(port, "mario", 3)
        self.template(port, "keeps", 3)  # the template's file stays in use
        self.assertEqual(self.more(other, "mario"), 3)
        self.template(port, "mario", 5)
        # One that was asked to stay loaded, too.
        self.assertEqual(self.count(other, "mario", ("user", "Hi"), keep_alive=-1)[0], len("uHi") + 5)
        self.template(port, "same", 5)
        self.assertEqual(ask(port, "DELETE", "/api/delete", {"model": "mario"}), (200, b""))
        self.gone(other, "mario")
        self.assertEqual(self.more(other, "keeps"), 3)
        self.assertEqual(self.tags(other), [BASE, "keeps", "same"])

    def test_replacing_while_it_is_loaded(self):
        port, _ = self.serve("--manage")
        self.template(port, "mario", 1)
        answers, over = [], threading.Event()

        def chats():
            while not over.is_set():
                answers.append(ask(port, "POST", "/api/chat", {"model": "mario", "messages": [{"role": "user", "content": "Hi"}],
                                                               "stream": False, "options": ZERO, "keep_alive": 0}))

        thread = threading.Thread(target=chats)
        thread.start()
        for tokens in range(2, 14):
            count = len(answers)
            self.template(port, "mario", tokens)
            while len(answers) == count and thread.is_alive():  # a request meets one change at most
                time.sleep(0.01)
        over.set()
        thread.join()
        self.assertEqual([answer for answer in answers if answer[0] != 200], [])
        self.assertEqual(self.more(port, "mario"), 13)

    def test_a_damaged_record_is_left_out(self):
        port, _ = self.serve("--manage")
        self.assertEqual(self.create(port, model="mario", **{"from": BASE, "system": PIRATE})[0], 200)
        with open(os.path.join(self.records, self.files()[0]), encoding="utf-8") as file:
            whole = json.load(file)

        def write(fields, name):
            digest = hashlib.sha256(name.encode()).hexdigest()
            with open(os.path.join(self.records, digest + ".json"), "w", encoding="utf-8") as file:
                json.dump({**whole, **fields}, file)

        write({"name": "c1", "from": "../../etc"}, "c1")
        write({"name": "a b"}, "a b")
        write({"name": "luigi"}, "wario")
        write({"name": "peach"}, "peach")
        self.assertEqual(self.tags(port), [BASE, "mario", "peach"])
        for name in ("mario", "peach", BASE):
            self.assertEqual(ask(port, "DELETE", "/api/delete", {"model": name}), (200, b""))
        log = "".join(self.log)
        for words in ("../../etc", "a b", "luigi"):
            self.assertIn(words, log)

    def test_only_what_changed_is_read_again(self):
        port, _ = self.serve("--manage")
        for name in ("mario", "peach"):
            self.assertEqual(self.create(port, model=name, **{"from": BASE, "system": PIRATE})[0], 200)

        def path_of(name):
            return os.path.join(self.records, hashlib.sha256(name.encode()).hexdigest() + ".json")
        for name in ("mario", "peach"):
            os.utime(path_of(name), (1_000_000_000, 1_000_000_000))  # long ago: a change would show by the time
        self.assertEqual(self.create(port, model="luigi", **{"from": BASE})[0], 200)
        self.assertEqual(self.tags(port), [BASE, "luigi", "mario", "peach"])
        for name, then in (("mario", 1_000_000_000), ("peach", 1_000_000_001)):
            with open(path_of(name), "r+b") as file:
                file.write(b"x")  # no record any more
            os.utime(path_of(name), (then, then))
        self.assertEqual(ask(port, "DELETE", "/api/delete", {"model": "luigi"}), (200, b""))
        self.assertEqual(self.tags(port), [BASE, "mario"])  # whose file looks as before

    def test_a_held_lock_is_told(self):
        port, _ = self.serve("--manage")
        self.template(port, "mario", 3)
        with open(os.path.join(self.records, "lock"), encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for method, path, body in (("POST", "/api/create", {"model": "m", "from": BASE}),
                                       ("POST", "/api/copy", {"source": "mario", "destination": "m"}),
                                       ("DELETE", "/api/delete", {"model": "mario"})):
                status, text = self.error(port, method, path, body)
                self.assertEqual(status, 503, text)
                self.assertIn("another process", text)
        self.assertEqual(ask(port, "DELETE", "/api/delete", {"model": "mario"}), (200, b""))


class Clients(Case):
    def test_ollamas_own_python_client(self):
        hub_ollama_test.run_client(self, CLIENT, BASE, "--manage")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
