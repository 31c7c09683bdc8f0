"""The Python module of packaging/python, and the wheel that holds it. Usage: python_module_test.py RBEE"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY_EMOJI = ROOT / "models" / "tiny-emoji"
sys.path.insert(0, str(ROOT / "packaging" / "python"))
import rbee  # noqa: E402
sys.path.insert(0, str(ROOT / "packaging"))
import check_symbols  # noqa: E402

RBEE = os.path.abspath(sys.argv[1])


def fetched(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


class Server(unittest.TestCase):
    def test_the_block_begins_when_the_model_is_loaded_and_ends_the_program(self):
        with rbee.Server(TINY_EMOJI, program=RBEE, kind="image", name="emoji") as server:
            self.assertTrue(server.url.startswith("http://127.0.0.1:"), server.url)
            self.assertIn(b'"state":"ready"', fetched(server.url + "/workers").replace(b" ", b""))
            self.assertIn(b"emoji", fetched(server.url + "/v1/models"))
            url = server.url
        with self.assertRaises(urllib.error.URLError):
            fetched(url + "/health")
        with self.assertRaisesRegex(RuntimeError, "not started"):
            server.url

    def test_a_server_can_run_again_but_not_twice_at_once(self):
        server = rbee.Server(TINY_EMOJI, program=RBEE, kind="image", timeout=None)
        for _ in range(2):
            with server:
                self.assertIn(b"healthy", fetched(server.url + "/health"))
                with self.assertRaisesRegex(RuntimeError, "runs already"):
                    server.__enter__()
                self.assertIn(b"healthy", fetched(server.url + "/health"))
        lost = rbee.Server("/nowhere", program=RBEE)
        for _ in range(2):  # the second start tells its own reason
            with self.assertRaisesRegex(RuntimeError, "/nowhere: there is no such file"):
                lost.__enter__()

    def test_the_user_s_environment_does_not_keep_it_waiting(self):
        with unittest.mock.patch.dict(os.environ, {"RUST_LOG": "error", "http_proxy": "http://127.0.0.1:9"}):
            with rbee.Server(TINY_EMOJI, program=RBEE, kind="image", tls_cert=None, timeout=120) as server:
                self.assertTrue(server.url.startswith("http://"), server.url)

    def test_without_an_address_it_listens_on_this_machine_alone(self):
        variables = ({}, {"OLLAMA_HOST": "127.0.0.2:1"}, {"LLORCH_API_TOKEN": "secret"}, {"OLLAMA_HOST": "[::1]:1"})
        for environment in variables:
            for flags in ({}, {"host": None, "port": None}, {"host": False, "port": False}):
                with self.subTest(environment=environment, flags=flags), unittest.mock.patch.dict(os.environ, environment):
                    with rbee.Server(TINY_EMOJI, program=RBEE, kind="image", timeout=120, **flags) as server:
                        self.assertRegex(server.url, r"\Ahttp://127\.0\.0\.1:[0-9]+\Z")
                        self.assertNotIn(server.url.rsplit(":", 1)[1], ("1", "8080"))
                        self.assertIn(b"healthy", fetched(server.url + "/health"))

    def test_the_url_is_where_the_program_says_that_it_listens(self):
        for flags, variables, url in (({"host": ""}, {"OLLAMA_HOST": "127.0.0.2:1"}, r"http://127\.0\.0\.1:[0-9]+"),
                                      ({"host": "0.0.0.0"}, {}, r"http://127\.0\.0\.1:[0-9]+"),
                                      ({"host": "127.0.0.2"}, {}, r"http://127\.0\.0\.2:[0-9]+")):
            with self.subTest(flags=flags, variables=variables), unittest.mock.patch.dict(os.environ, variables):
                with rbee.Server(TINY_EMOJI, program=RBEE, kind="image", timeout=120, **flags) as server:
                    self.assertRegex(server.url, rf"\A{url}\Z")
                    self.assertIn(b"healthy", fetched(server.url + "/health"))

    def test_what_makes_no_sense_is_told_at_once(self):
        with self.assertRaisesRegex(ValueError, "model is empty"):
            rbee.Server("", program=RBEE)
        for timeout in (-1, float("nan")):
            with self.assertRaisesRegex(ValueError, "timeout"):
                rbee.Server(TINY_EMOJI, program=RBEE, timeout=timeout)
        for flags in ({"worker_flag": [None]}, {"worker_flag": ("--threads", True)}):
            with self.assertRaisesRegex(ValueError, "worker_flag has (None|True) in its list"):
                rbee.Server(TINY_EMOJI, program=RBEE, **flags)

    def test_an_error_inside_the_block_ends_the_program_too(self):
        with self.assertRaises(KeyError):
            with rbee.Server(TINY_EMOJI, program=RBEE, kind="image") as server:
                url = server.url
                raise KeyError("of the user")
        with self.assertRaises(urllib.error.URLError):
            fetched(url + "/health")

    def test_a_model_that_cannot_be_loaded(self):
        with self.assertRaisesRegex(RuntimeError, "/nowhere: there is no such file"):
            rbee.Server("/nowhere", program=RBEE).__enter__()

    def test_a_flag_that_does_not_exist(self):
        with self.assertRaisesRegex(RuntimeError, "ended with status [0-9]+:(.|\n)*--no-such-flag"):
            rbee.Server(TINY_EMOJI, program=RBEE, no_such_flag=1).__enter__()

    def test_a_model_that_takes_too_long(self):
        with self.assertRaisesRegex(RuntimeError, "not ready after 0 seconds"):
            rbee.Server(TINY_EMOJI, program=RBEE, kind="image", timeout=0).__enter__()


class Symbols(unittest.TestCase):
    def test_a_system_lacks_what_is_newer_or_of_other_libraries(self):
        named = ["GLIBC_2.2.5", "GLIBC_2.28", "GLIBC_2.34", "GLIBC_ABI_DT_RELR", "GCC_3.0", "GCC_7.0.0", "GCC_12.0.0", "GLIBCXX_3.4"]
        self.assertEqual(check_symbols.lacking(named, ("2.28", "7.0.0")), ["GLIBC_2.34", "GLIBC_ABI_DT_RELR", "GCC_12.0.0", "GLIBCXX_3.4"])
        self.assertEqual(check_symbols.lacking(named[:3] + named[4:7], ("2.39", "14.0.0")), [])

    def test_what_a_program_needs_is_read(self):
        self.assertIn("GLIBC_2.2.5", check_symbols.needs(RBEE))


class Wheel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        self.folder = pathlib.Path(folder)
        self.program = self.folder / "program"
        self.program.write_text('#!/bin/sh\necho "called with $*"\n')

    def make(self, name):
        out = self.folder / name
        out.mkdir()
        done = subprocess.run([sys.executable, ROOT / "packaging" / "make_wheel.py", self.program, "1.2.3", "manylinux_2_28_x86_64",
                               out, ROOT / "LICENSE"], env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}, check=True,
                              capture_output=True, text=True)
        return pathlib.Path(done.stdout.strip())

    def test_the_same_input_gives_the_same_bytes(self):
        first = self.make("first")
        os.utime(self.program, (0, 0))
        second = self.make("second")
        self.assertEqual(first.name, "rbee-1.2.3-py3-none-manylinux_2_28_x86_64.whl")
        self.assertEqual(*(hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, second)))

    def test_pip_installs_it(self):
        there = self.folder / "there"
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check",
                               "--target", there, self.make("out")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        environment = {**os.environ, "PYTHONPATH": str(there)}
        for command in ([sys.executable, "-m", "rbee"], [there / "bin" / "rbee"]):
            said = subprocess.run([*command, "--version", "two words"], env=environment, capture_output=True, text=True)
            self.assertEqual(said.stdout, "called with --version two words\n", said.stderr)
        path = subprocess.run([sys.executable, "-c", "import rbee; print(rbee.program())"], env=environment, cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(path.stdout.strip(), str(there / "rbee" / "bin" / "rbee"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
