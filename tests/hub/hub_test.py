"""rbee pull and its like against a hub of the test, and huggingface_hub against the same: their caches are compared byte
for byte, and each uses what the other fetched. Usage: hub_test.py FOLDER-OF-PROGRAMS PYTHON-WITH-HUGGINGFACE-HUB [TEST...]
Without such a Python its tests are skipped."""

import fcntl
import functools
import json
import os
import random
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub_server import Repo, TestHub  # noqa: E402

RBEE, WORKER = (os.path.join(sys.argv[1], name) for name in ("rbee", "sd-worker-cpu"))
PYTHON = sys.argv[2] if os.path.exists(sys.argv[2]) else None
TINY_EMOJI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/tiny-emoji")
PART = 16 << 20  # rbee's parts of a large file


@functools.lru_cache
def noise(size, seed):
    return random.Random(seed).randbytes(size)


def repositories():
    return {
        "org/chat-GGUF": Repo({
            "README.md": b"# a model\n", ".gitattributes": b"*.gguf filter=lfs\n",
            "chat-Q4_K_M.gguf": noise(50_000, 1), "chat-Q8_0.gguf": noise(90_000, 2),
            "chat-F16.gguf": noise(150_000, 3), "mmproj-chat-F16.gguf": noise(9_000, 4),
            "big/chat-Q2_K-00001-of-00002.gguf": noise(10_000, 5),
            "big/chat-Q2_K-00002-of-00002.gguf": noise(11_000, 6)}),
        "org/folder": Repo({
            "config.json": b'{"model_type": "llama"}\n', "tokenizer.json": noise(5_000, 7).hex().encode(),
            "model.safetensors.index.json": b"{}\n", "model-00001-of-00002.safetensors": noise(20_000, 8),
            "model-00002-of-00002.safetensors": noise(20_001, 9), "pytorch_model.bin": noise(40_000, 10),
            "weird \u00e9 name.txt": b"a name\n"}),
        "org/large": Repo({"large-Q8_0.gguf": noise(3 * PART + 12_345, 11)}),
        "org/gated": Repo({"gated-Q8_0.gguf": noise(6_000, 12)}, gated=True),
        "org/private": Repo({"private-Q8_0.gguf": noise(6_000, 13)}, private=True),
        "org/hostile": Repo({
            "../../../../escape.gguf": noise(5_000, 14), "/etc/absolute.gguf": noise(5_000, 15),
            "a/../../b.gguf": noise(5_000, 16), "line\nfeed.gguf": noise(5_000, 17), "ok-Q8_0.gguf": noise(5_000, 18),
            "back\\slash.gguf": noise(5_000, 19)}),
    }


def contents(folder):
    """The files below a folder: path -> text of a link, or bytes. Without files that only hold a time or the tool."""
    out = {}
    for here, names, files in os.walk(folder):
        for name in [*names, *files]:
            path = os.path.join(here, name)
            key = os.path.relpath(path, folder)
            if os.path.islink(path):
                out[key] = ("link", os.readlink(path))
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    out[key] = ("file", file.read(), oct(os.stat(path).st_mode & 0o777))
            else:
                out[key] = ("folder",)
    return out


class Case(unittest.TestCase):
    def setUp(self):
        self.hub = self.enterContext(TestHub(repositories()))
        self.home = tempfile.mkdtemp(prefix="rbee-hub-")
        self.addCleanup(shutil.rmtree, self.home)
        self.cache = os.path.join(self.home, "hub")

    def environment(self, home=None, **more):
        kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith("HF_")}
        return {**kept, "HF_ENDPOINT": self.hub.endpoint, "HF_HOME": home or self.home, "HF_HUB_DISABLE_XET": "1",
                "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1", **more}

    def rbee(self, *words, fails=False, home=None, **environment):
        done = subprocess.run([RBEE, *words], env=self.environment(home, **environment), text=True,
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 1 if fails else 0, done.stdout + done.stderr)
        return done.stderr if fails else done.stdout

    def python(self, code, home=None, **environment):
        if PYTHON is None:
            self.skipTest("no Python with huggingface_hub")
        done = subprocess.run([PYTHON, "-c", "from huggingface_hub import *\n" + code],
                              env=self.environment(home, **environment), text=True, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.strip()

    def sent(self, name, command="GET"):
        return [r for r in self.hub.requests if r[0] == name and r[1] == command]

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def folder(self, repo):
        return os.path.join(self.cache, "models--" + repo.replace("/", "--"))


class Fetching(Case):
    def test_a_quantization_and_its_vision_tower(self):
        model, mmproj = self.rbee("pull", "hf:org/chat-GGUF:q4_k_m").split("\n")[:2]
        files = self.hub.repos["org/chat-GGUF"].files
        self.assertEqual(self.read(model), files["chat-Q4_K_M.gguf"])
        self.assertEqual(self.read(mmproj), files["mmproj-chat-F16.gguf"])
        snapshot = os.path.dirname(model)
        self.assertEqual(sorted(os.listdir(snapshot)), ["chat-Q4_K_M.gguf", "mmproj-chat-F16.gguf"])

    def test_all_parts_of_a_split_file(self):
        model = self.rbee("pull", "hf:org/chat-GGUF:Q2_K").split("\n")[0]
        self.assertTrue(model.endswith("big/chat-Q2_K-00001-of-00002.gguf"))
        self.assertEqual(len(os.listdir(os.path.dirname(model))), 2)
        self.assertEqual(os.readlink(model).split("/")[:4], ["..", "..", "..", "blobs"])

    def test_the_best_quantization_is_the_largest_below_16_bits(self):
        self.assertIn("chat-Q8_0.gguf", self.rbee("pull", "org/chat-GGUF"))

    def test_what_is_there_is_taken_before_the_best(self):
        self.rbee("pull", "hf:org/chat-GGUF:Q4_K_M")
        self.assertIn("chat-Q4_K_M.gguf", self.rbee("pull", "hf:org/chat-GGUF"))

    def test_a_folder_without_pickles(self):
        path = self.rbee("pull", "hf:org/folder").strip()
        self.assertEqual(sorted(os.listdir(path)),
                         ["config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                          "model.safetensors.index.json", "tokenizer.json", "weird \u00e9 name.txt"])

    def test_a_second_pull_fetches_nothing(self):
        self.rbee("pull", "hf:org/large")
        before = len(self.hub.requests)
        self.rbee("pull", "hf:org/large")
        self.assertEqual([r[2] for r in self.hub.requests[before:]], ["/api/models/org/large/revision/main"])

    def test_a_commit_in_the_cache_needs_no_hub(self):
        name = "hf:org/chat-GGUF:Q8_0@" + self.hub.repos["org/chat-GGUF"].commit
        self.rbee("pull", name)
        before = len(self.hub.requests)
        self.rbee("pull", name)
        self.assertEqual(self.hub.requests[before:], [])

    def test_several_connections_fetch_the_parts(self):
        self.rbee("pull", "hf:org/large")
        ranges = sorted(r[3].get("Range") for r in self.sent("files"))
        self.assertEqual(len(ranges), 4)
        self.assertIn(f"bytes={PART}-{2 * PART - 1}", ranges)

    def test_a_short_name_of_the_table(self):
        error = self.rbee("pull", "flux-dev", fails=True)
        self.assertIn("/black-forest-labs/FLUX.1-dev is missing or private", error)

    def test_names_that_would_leave_the_cache_are_left_out(self):
        self.rbee("pull", "hf:org/hostile")
        model = self.rbee("pull", "hf:org/hostile").strip()
        self.assertTrue(model.endswith("/ok-Q8_0.gguf"))
        self.assertEqual(os.listdir(os.path.dirname(model)), ["ok-Q8_0.gguf"])
        self.assertFalse(any("escape" in key or "absolute" in key for key in contents(self.home)))
        for name in ("../../x", "/etc/passwd", "a/../../../x", "a\nb"):
            self.assertIn("is no", self.rbee("pull", "hf:org/hostile/" + name, fails=True))

    def test_a_link_in_the_place_of_a_folder_is_not_followed(self):
        outside = os.path.join(self.home, "outside")
        os.makedirs(self.folder("org/folder"))
        os.makedirs(outside)
        os.symlink(outside, os.path.join(self.folder("org/folder"), "blobs"))
        self.assertIn("is a file or a link", self.rbee("pull", "hf:org/folder", fails=True))
        self.assertEqual(os.listdir(outside), [])


class Breaks(Case):
    def kill_while_it_fetches(self, **environment):
        """Kills a pull of the large file that has some of its parts. Gives the folder of blobs."""
        process = subprocess.Popen([RBEE, "pull", "hf:org/large"], env=self.environment(**environment),
                                   stderr=subprocess.DEVNULL)
        blobs = os.path.join(self.folder("org/large"), "blobs")
        for _ in range(3000):
            lists = [n for n in (os.listdir(blobs) if os.path.isdir(blobs) else []) if n.endswith(".parts")]
            if lists and self.read(os.path.join(blobs, lists[0])).count(b"\n") > 1:
                break
            time.sleep(0.02)
        process.kill()
        process.wait()
        return blobs

    def test_cut_connections_go_on_where_they_ended(self):
        self.hub.faults["cut"] = [30_000]
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0")
        ranges = [r[3].get("Range") for r in self.sent("files")][:2]
        self.assertIn("bytes=30000-89999", ranges)

    def test_a_killed_process_leaves_what_it_fetched(self):
        self.hub.faults["slow"] = 0.3
        blobs = self.kill_while_it_fetches()
        self.hub.faults["slow"] = 0
        before = len(self.sent("files"))
        self.rbee("pull", "hf:org/large")
        self.assertLess(len(self.sent("files")) - before, 4)
        self.assertEqual([n for n in os.listdir(blobs) if "rbee" in n], [])

    def test_wrong_bytes_are_fetched_again_and_then_refused(self):
        self.hub.faults["wrong"] = 1
        model = self.rbee("pull", "hf:org/chat-GGUF/chat-Q8_0.gguf").split("\n")[0]
        self.assertEqual(self.read(model), self.hub.repos["org/chat-GGUF"].files["chat-Q8_0.gguf"])
        self.hub.faults["wrong"] = 9
        error = self.rbee("pull", "hf:org/chat-GGUF/chat-F16.gguf", fails=True)
        self.assertIn("has the SHA-256", error)
        self.assertFalse(os.path.exists(os.path.join(os.path.dirname(model), "chat-F16.gguf")))

    def test_a_server_without_ranges(self):
        self.hub.faults["no_ranges"] = True
        model = self.rbee("pull", "hf:org/large").strip()
        self.assertEqual(self.read(model), self.hub.repos["org/large"].files["large-Q8_0.gguf"])

    def test_an_expired_address_is_asked_for_again(self):
        self.hub.faults["cut"] = [30_000]
        self.hub.faults["slow"] = 0.2
        change = threading.Timer(0.3, lambda: setattr(self.hub, "signature", "s2"))
        change.start()
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0")
        self.assertGreaterEqual(len(self.sent("hub", "HEAD")), 2)

    def test_addresses_of_the_bridge_that_expire_are_asked_for_again(self):
        self.hub.faults["uses"] = 2
        model = self.rbee("pull", "hf:org/large").strip()
        self.assertEqual(self.read(model), self.hub.repos["org/large"].files["large-Q8_0.gguf"])
        self.assertGreaterEqual(len(self.sent("hub", "HEAD")), 2)
        for _, _, path, headers in self.sent("files"):
            self.assertTrue(path.startswith("/xet-bridge-us/"), path)
            self.assertRegex(headers["Range"], r"^bytes=\d+-\d+$")
            self.assertNotIn("Authorization", headers)

    def test_a_pull_goes_on_with_another_address(self):
        """A process is killed, and the addresses that it had end meanwhile. The hub wants a token, the bridge none."""
        self.hub.repos["org/large"].private = True
        self.hub.faults["slow"] = 0.3
        self.kill_while_it_fetches(HF_TOKEN="accepted")
        self.hub.faults.update(slow=0, cut=[PART // 2])
        self.hub.signature = "s2"
        begin = len(self.hub.requests)
        model = self.rbee("pull", "hf:org/large", HF_TOKEN="accepted").strip()
        self.assertEqual(self.read(model), self.hub.repos["org/large"].files["large-Q8_0.gguf"])
        later = [r for r in self.hub.requests[begin:] if r[0] == "files"]
        self.assertTrue(all("X-Amz-Signature=s2-" in r[2] and "Authorization" not in r[3] for r in later), later)
        self.assertIn(PART // 2, [int(r[3]["Range"][6:].split("-")[0]) % PART for r in later])  # within a part

    def test_limits_are_waited_for(self):
        self.hub.faults.update(limited=2, retry_after=1)
        begin = time.monotonic()
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0")
        self.assertGreaterEqual(time.monotonic() - begin, 2)

    def test_limits_that_last_are_told(self):
        self.hub.faults.update(limited=99, retry_after=3600)
        error = self.rbee("pull", "hf:org/chat-GGUF:Q8_0", fails=True)
        self.assertIn("try again in 3600 seconds", error)

    def test_a_lock_that_another_process_holds(self):
        repo = self.hub.repos["org/gated"] = Repo({"x-Q8_0.gguf": noise(7_000, 30)})
        locks = os.path.join(self.cache, ".locks", "models--org--gated")
        os.makedirs(locks)
        with open(os.path.join(locks, repo.sum("x-Q8_0.gguf") + ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = subprocess.Popen([RBEE, "pull", "hf:org/gated"], env=self.environment(),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            line = ""
            while "waiting" not in line:
                line = process.stderr.readline()
                self.assertTrue(line, "it ended without waiting")
            self.assertEqual(self.sent("files"), [])
        self.assertEqual(process.wait(60), 0)
        process.communicate()

    def test_two_at_once_fetch_once(self):
        self.hub.faults["slow"] = 0.3
        both = [subprocess.Popen([RBEE, "pull", "hf:org/chat-GGUF/chat-Q8_0.gguf"], env=self.environment(),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
        self.assertEqual([process.wait(60) for process in both], [0, 0])
        self.assertEqual(len([r for r in self.sent("files")]), 2)  # the model and its vision tower


    def test_files_of_one_etag(self):
        self.hub.faults["etag"] = "same"
        path = self.rbee("pull", "hf:org/folder").strip()
        files = self.hub.repos["org/folder"].files
        for name in os.listdir(path):
            self.assertEqual(self.read(os.path.join(path, name)), files[name], name)
        self.assertEqual(len(os.listdir(path)), 6)

    def test_blobs_that_are_not_as_promised_are_fetched_again(self):
        data = self.hub.repos["org/folder"].files["config.json"]
        path = os.path.join(self.rbee("pull", "hf:org/folder").strip(), "config.json")
        for link in (True, False):
            with open(path, "wb") as file:
                file.write(data[:5] if link else bytes(len(data)))
            if not link:
                os.remove(path)
            path = os.path.join(self.rbee("pull", "hf:org/folder").strip(), "config.json")
            self.assertEqual(self.read(path), data)

    def test_what_is_fetched_is_not_deleted(self):
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0")
        locks = os.path.join(self.cache, ".locks", "models--org--chat-GGUF")
        with open(os.path.join(locks, os.listdir(locks)[0])) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("another process fetches it", self.rbee("rm", "org/chat-GGUF", fails=True))
        self.rbee("rm", "org/chat-GGUF")


class Refusals(Case):
    def test_gated_missing_private_and_wrong_tokens(self):
        page = self.hub.endpoint
        for name, token, words in (
                ("org/gated", "", f"org/gated is gated: open {page}/org/gated, accept its terms, and set HF_TOKEN"),
                ("org/gated", "other", "use a token of that account"),
                ("org/none", "", f"{page}/org/none is missing or private; a private repository needs HF_TOKEN"),
                ("org/private", "", "is missing or private"),
                ("org/folder", "bad", f"see {page}/settings/tokens"),
                ("org/folder@nowhere", "", "has no such revision"),
                ("org/folder/none.json", "", "has no file 'none.json'"),
                ("org/chat-GGUF:Q6_K", "", "has no quantization Q6_K; it has Q2_K, Q4_K_M, Q8_0, F16")):
            with self.subTest(name=name, token=token):
                error = self.rbee("pull", "hf:" + name, fails=True, HF_TOKEN=token)
                self.assertIn(words, error)
                self.assertEqual(len([line for line in error.strip().split("\n") if "fetch)" not in line]), 1, error)

    def test_tokens_open_what_they_may(self):
        self.rbee("pull", "hf:org/gated", HF_TOKEN="accepted")
        path = os.path.join(self.home, "token-file")
        with open(path, "w") as file:
            file.write("other\n")
        self.rbee("pull", "hf:org/private", HF_TOKEN_PATH=path)
        os.rename(path, os.path.join(self.home, "token"))
        self.rbee("rm", "hf:org/private")
        self.rbee("pull", "hf:org/private")

    def test_the_token_stays_with_the_hub(self):
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0", HF_TOKEN="accepted")
        self.assertTrue(all(r[3].get("Authorization") == "Bearer accepted" for r in self.hub.requests
                            if r[0] == "hub"))
        self.assertTrue(self.sent("files"))
        self.assertFalse(any("Authorization" in r[3] for r in self.sent("files")))

    def test_redirects_into_the_inner_network_are_not_followed(self):
        for address in ("http://10.0.0.1/x", "http://192.168.1.1/x", "http://169.254.169.254/latest", "http://[fc00::1]/",
                        "http://0x0a000001/", "http://[::ffff:10.0.0.1]/x"):
            with self.subTest(address=address):
                self.hub.faults["location"] = address
                error = self.rbee("pull", "hf:org/chat-GGUF:Q8_0", fails=True)
                self.assertIn("an address of a private network; it is not followed", error)
        self.hub.faults["location"] = "file:///etc/passwd"
        self.assertIn("begins with http", self.rbee("pull", "hf:org/chat-GGUF:Q8_0", fails=True))

    def test_proxies_resolve_the_names(self):
        proxy = {"http_proxy": self.hub.endpoint}
        self.hub.endpoint, self.hub.files_endpoint = "http://hub.example", "http://files.example"
        model = self.rbee("pull", "hf:org/chat-GGUF:Q8_0", HF_TOKEN="accepted", **proxy).split("\n")[0]
        self.assertEqual(self.read(model), self.hub.repos["org/chat-GGUF"].files["chat-Q8_0.gguf"])
        for _, _, path, headers in self.hub.requests:
            self.assertEqual("Authorization" in headers, path.startswith("http://hub.example/"), path)
        self.hub.faults["location"] = "http://10.0.0.1/x"
        self.assertIn("it is not followed", self.rbee("pull", "hf:org/chat-GGUF:Q4_K_M", fails=True, **proxy))

    def test_hosts_of_no_proxy_are_asked_directly(self):
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0", http_proxy="http://127.0.0.1:9", no_proxy="example,127.0.0.1")

    def test_a_certificate_is_one_that_a_trusted_file_vouches_for(self):
        certificate = os.path.join(self.home, "self-signed.pem")
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1",
                               "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", certificate, "-out", certificate + ".crt"], capture_output=True)
        if made.returncode != 0:
            self.skipTest("no openssl")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate + ".crt", certificate)
        server = self.hub.servers[0]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        endpoint = self.hub.endpoint.replace("http:", "https:")
        error = self.rbee("pull", "hf:org/folder", fails=True, HF_ENDPOINT=endpoint)
        self.assertIn("certificate", error)
        self.assertEqual(self.hub.requests, [])
        self.rbee("search", "chat", HF_ENDPOINT=endpoint, SSL_CERT_FILE=certificate + ".crt")

    def test_offline(self):
        error = self.rbee("pull", "hf:org/chat-GGUF:Q8_0", fails=True, HF_HUB_OFFLINE="1")
        self.assertIn("HF_HUB_OFFLINE is set", error)
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0")
        before = len(self.hub.requests)
        self.assertIn("chat-Q8_0.gguf", self.rbee("pull", "hf:org/chat-GGUF", HF_HUB_OFFLINE="1"))
        self.assertEqual(len(self.hub.requests), before)

    def test_a_hub_that_is_down(self):
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0")
        down = {"HF_ENDPOINT": "http://127.0.0.1:9"}
        self.assertIn("chat-Q8_0.gguf", self.rbee("pull", "hf:org/chat-GGUF", **down))
        self.assertIn("127.0.0.1", self.rbee("pull", "hf:org/folder", fails=True, **down))

    def test_a_disk_without_space(self):
        repo = self.hub.repos["org/large"]
        entry = repo.entry
        repo.entry = lambda path: {**entry(path), "lfs": {**entry(path)["lfs"], "size": 1 << 46}}
        error = self.rbee("pull", "hf:org/large", fails=True)
        self.assertIn(" TB are needed", error)


    def test_pages_in_a_circle(self):
        self.hub.faults["circle"] = True
        error = self.rbee("pull", "hf:org/folder", fails=True)
        self.assertIn("leads back to a page that was read", error)

    def test_nested_json(self):
        self.hub.faults["search"] = b'[{"id": "a/b", "downloads": ' + b"[" * 200_000 + b"]" * 200_000 + b"}]"
        self.assertIn("is nested too deeply", self.rbee("search", "chat", fails=True))
        self.rbee("pull", "hf:org/folder")
        trees = os.path.join(self.folder("org/folder"), "trees")
        with open(os.path.join(trees, os.listdir(trees)[0]), "wb") as file:
            file.write(b'{"format_version": ' + b"[" * 200_000 + b"]" * 200_000 + b', "files": {}}')
        self.rbee("pull", "hf:org/folder")

    def test_unsafe_names_are_one_line(self):
        files = {f"../{i}": b"x" for i in range(50)} | {"config.json": b"{}", "model.safetensors": b"12345"}
        self.hub.repos["org/folder"] = Repo(files)
        done = subprocess.run([RBEE, "pull", "hf:org/folder"], env=self.environment(), text=True, capture_output=True)
        lines = [line for line in done.stderr.split("\n") if "not safe" in line]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertIn("50", lines[0])

    def test_errors_name_the_hub_once(self):
        for name, environment in (("org/chat-GGUF:Q6_K", {}), ("org/folder", {"HF_ENDPOINT": "http://127.0.0.1:9"})):
            error = self.rbee("pull", "hf:" + name, fails=True, **environment)
            self.assertEqual(error.count("hub: "), 1, error)


class Commands(Case):
    def test_list_show_search_rm(self):
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0")
        rows = json.loads(self.rbee("list", "--json"))
        self.assertEqual([(r["name"], r["refs"], r["files"], r["bytes"]) for r in rows],
                         [("hf:org/chat-GGUF", ["main"], 2, 99_000)])
        self.assertIn("hf:org/chat-GGUF", self.rbee("list"))
        shown = json.loads(self.rbee("show", "hf:org/chat-GGUF:Q4_K_M", "--json"))
        self.assertEqual([f["path"] for f in shown["files"] if f["chosen"]],
                         ["chat-Q4_K_M.gguf", "mmproj-chat-F16.gguf"])
        self.assertEqual([f["path"] for f in shown["files"] if f["in_cache"]],
                         ["chat-Q8_0.gguf", "mmproj-chat-F16.gguf"])
        self.assertIn("*", self.rbee("show", "org/folder"))
        found = json.loads(self.rbee("search", "chat", "--json"))
        self.assertEqual([row["name"] for row in found], ["hf:org/chat-GGUF"])
        self.assertIn("freed", self.rbee("rm", "org/chat-GGUF"))
        self.assertEqual(json.loads(self.rbee("list", "--json")), [])
        self.assertIn("is not in the cache", self.rbee("rm", "org/chat-GGUF", fails=True))

    def test_rm_takes_a_part_s_name_if_there_is_no_more(self):
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0")
        for other in ("hf:org/chat-GGUF:Q4_K_M", "org/chat-GGUF/chat-F16.gguf"):
            self.assertIn("the repository has no ", self.rbee("rm", other, fails=True), other)
        self.rbee("pull", "hf:org/chat-GGUF:Q4_K_M")
        self.assertIn("name hf:org/chat-GGUF", self.rbee("rm", "hf:org/chat-GGUF:Q8_0", fails=True))
        self.rbee("rm", "hf:org/chat-GGUF")
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0")
        self.assertIn("freed", self.rbee("rm", "hf:org/chat-GGUF:Q8_0"))
        self.assertEqual(json.loads(self.rbee("list", "--json")), [])

    def test_the_model_may_come_first(self):
        for words in (["run", "hf:org/none", "Hi"], ["run", "Hi", "-m", "hf:org/none"], ["run", "hf:org/none", "-p", "Hi"],
                      ["chat", "hf:org/none"], ["chat", "-m", "hf:org/none"]):
            self.assertIn("org/none is missing or private", self.rbee(*words, fails=True), words)

    def test_what_a_command_line_lacks_is_told(self):
        for words, told in ((["run"], "a model (rbee run hf:org/repo) is required"), (["chat"], "rbee chat hf:org/repo"),
                            (["rn"], "'rn' is neither a command nor a flag"), (["run", "-m", "a", "b", "c"], "c"),
                            (["run", "a", "-p", "b", "c"], "c")):
            done = subprocess.run([RBEE, *words], env=self.environment(), text=True, capture_output=True, timeout=120)
            self.assertEqual((done.returncode, told in done.stderr), (2, True), done.stderr)
        done = subprocess.run([RBEE, "list"], env=self.environment(), text=True, capture_output=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout, "rbee pull hf:org/repo" in done.stderr), (0, "", True), done.stderr)

    def test_names_that_need_a_word(self):
        error = self.rbee("inspect", "org/chat-GGUF", fails=True)
        self.assertIn("there is no such file or folder; for the hub write hf:org/chat-GGUF", error)
        self.assertIn("chat-Q8_0.gguf", self.rbee("pull", self.hub.endpoint + "/org/chat-GGUF"))
        self.assertIn("chat-Q4_K_M.gguf",
                      self.rbee("pull", self.hub.endpoint + "/org/chat-GGUF/blob/main/chat-Q4_K_M.gguf"))

    def test_numbers_beyond_63_bits(self):
        self.hub.faults["search"] = b'[{"id": "a/b", "downloads": 18446744073709551615}]'
        self.assertEqual(json.loads(self.rbee("search", "x", "--json"))[0]["downloads"], (1 << 63) - 1)

    def test_other_commands_take_names(self):
        error = self.rbee("inspect", "hf:org/chat-GGUF:Q8_0", fails=True)
        self.assertIn("snapshots", error)  # the file arrived, but is noise
        self.assertIn("chat-Q8_0.gguf", error)


def files_below(folder):
    out = {}
    for here, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(here, name), "rb") as file:
                out[os.path.relpath(os.path.join(here, name), folder)] = file.read()
    return out


class Models(Case):
    def setUp(self):
        super().setUp()
        self.hub.repos["org/tiny-emoji"] = Repo(files_below(TINY_EMOJI))

    def test_a_picture_of_a_model_by_name_is_that_of_its_folder(self):
        words = ("a rocket", "--steps", "1", "--seed", "1", "-q", "-o")
        named, local = (os.path.join(self.home, name) for name in ("named.png", "local.png"))
        self.rbee("imagine", "-m", "hf:org/tiny-emoji", *words, named)
        self.rbee("imagine", "-m", TINY_EMOJI, *words, local)
        begin = b"IDAT"  # before it are the settings, with the model's name
        self.assertEqual(self.read(named).partition(begin)[2], self.read(local).partition(begin)[2])

    def test_a_worker_takes_the_name_that_a_hive_reports(self):
        process = subprocess.Popen([WORKER, "--model-ref", "hf:org/tiny-emoji", "--port", "0", "--host", "127.0.0.1"],
                                   env=self.environment(LLORCH_LOG_FORMAT="json"), stdout=subprocess.PIPE, text=True)
        try:
            port, fetched = None, False
            for line in process.stdout:
                fetched = fetched or '"fetching the model"' in line
                if '"ready"' in line:
                    found = json.loads(line)
                    port = found.get("port") or found.get("fields", {}).get("port")
                    break
            self.assertTrue(port, "it ended before it was ready")
            self.assertTrue(fetched)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=60) as answer:
                self.assertIn("hf:org/tiny-emoji", answer.read().decode())
        finally:
            process.terminate()
            process.communicate()


class SharedWithPython(Case):
    def test_the_caches_are_the_same(self):
        other = os.path.join(self.home, "python")
        for name, patterns in (("org/chat-GGUF", ["chat-Q8_0.gguf", "mmproj-chat-F16.gguf"]),
                               ("org/folder", ["*.json", "*.safetensors", "*.txt"]),
                               ("org/large", ["*"])):
            self.rbee("pull", f"hf:{name}" + (":Q8_0" if name == "org/chat-GGUF" else ""))
            self.python(f"print(snapshot_download({name!r}, allow_patterns={patterns!r}))", home=other)
        ours, theirs = contents(self.cache), contents(os.path.join(other, "hub"))
        # The temporary listing of Python is made for its user alone, and then renamed.
        for found in (ours, theirs):
            for key, value in found.items():
                if "/trees/" in key and value[0] == "file":
                    found[key] = value[:2]
        self.assertEqual(sorted(ours), sorted(theirs))
        for key in ours:
            self.assertEqual(ours[key], theirs[key], key)

    def test_python_uses_what_rbee_fetched(self):
        self.rbee("pull", "hf:org/folder")
        before = len(self.sent("files"))
        path = self.python("print(hf_hub_download('org/folder', 'model-00001-of-00002.safetensors'))")
        self.assertEqual(self.read(path), self.hub.repos["org/folder"].files["model-00001-of-00002.safetensors"])
        self.python("print(snapshot_download('org/folder', allow_patterns=['*.json', '*.safetensors']))")
        self.assertEqual(len(self.sent("files")), before)
        self.python("hf_hub_download('org/folder', 'config.json')", HF_HUB_OFFLINE="1")

    def test_rbee_uses_what_python_fetched(self):
        self.python("snapshot_download('org/chat-GGUF', allow_patterns=['*Q4_K_M*', 'mmproj*'])")
        before = len(self.sent("files"))
        self.assertIn("chat-Q4_K_M.gguf", self.rbee("pull", "hf:org/chat-GGUF"))
        self.assertIn("chat-Q4_K_M.gguf", self.rbee("pull", "hf:org/chat-GGUF", HF_HUB_OFFLINE="1"))
        self.assertEqual(len(self.sent("files")), before)

    def test_python_knows_a_missing_file_that_rbee_asked_for(self):
        self.rbee("pull", "hf:org/folder/none.json", fails=True)
        known = self.python("print(try_to_load_from_cache('org/folder', 'none.json') is _CACHED_NO_EXIST)")
        self.assertEqual(known, "True")

    def test_python_deletes_and_scans_what_rbee_fetched(self):
        self.rbee("pull", "hf:org/chat-GGUF:Q8_0")
        self.assertEqual(self.python("r = scan_cache_dir(); print(len(r.warnings), r.size_on_disk)"), "0 99000")

    def test_both_at_once_fetch_once(self):
        self.hub.faults["slow"] = 0.5
        pull = [RBEE, "pull", "hf:org/chat-GGUF/chat-F16.gguf"]
        process = subprocess.Popen(pull, env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.python("hf_hub_download('org/chat-GGUF', 'chat-F16.gguf')")
        self.assertEqual(process.wait(60), 0)
        blob = self.hub.repos["org/chat-GGUF"].xet_hash("chat-F16.gguf")
        self.assertEqual(sum(blob in r[2] for r in self.sent("files")), 1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
