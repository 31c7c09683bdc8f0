#!/usr/bin/env python3
"""Tests of tools/first_card.sh. Usage: test_first_card.py RBEE [FAKE_HIP]

RBEE: the program, beside opcheck. FAKE_HIP: the runtime of tests/gpu/fake, over which the whole command runs where the
programs are of a build for AMD; its kernels do nothing. Where TINYGRAD_DIR names the emulator and the targets
rbee_emulated and rbee_opcheck_emulated are built, the command runs on the emulator too.
"""
import json
import os
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zlib
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import answers  # noqa: E402
import card  # noqa: E402
import picture  # noqa: E402
import first_card  # noqa: E402
import runner  # noqa: E402
import verdict  # noqa: E402

RBEE = sys.argv[1]
PROGRAMS = os.path.dirname(RBEE)
FAKE_HIP = sys.argv[2] if len(sys.argv) > 2 else None
BUILD = Path(PROGRAMS).resolve().parent
EMULATED = os.environ.get("TINYGRAD_DIR") and (BUILD / "cli/librbee_emulated.so").exists()


class Pictures(unittest.TestCase):
    def png(self, rows):
        """Rows of (filter, bytes), three pixels each."""
        def chunk(kind, content):
            return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

        data = b"".join(bytes([method]) + row for method, row in rows)
        return (picture.SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, len(rows), 8, 2, 0, 0, 0))
                + chunk(b"tEXt", b"parameters\0a secret") + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))

    def test_filters(self):
        first = bytes(range(10, 19))
        rows = [(0, first), (1, bytes([10, 11, 12, 3, 3, 3, 3, 3, 3])), (2, bytes(9)),
                (3, bytes([5, 6, 6, 2, 1, 2, 2, 1, 2])), (4, bytes([0, 0, 0, 0, 0, 0, 0, 0, 0]))]
        _, _, pixels = picture.pixels_of(self.png(rows))
        self.assertEqual(pixels[:27], first * 3)
        self.assertEqual(pixels[27:30], bytes([10, 11, 12]))

    def test_texts_go(self):
        file = self.png([(0, bytes(9))])
        self.assertNotIn(b"secret", picture.without_texts(file))
        self.assertEqual(picture.difference(file, picture.without_texts(file)), (0, 0))

    def test_difference(self):
        mean, most = picture.difference(self.png([(0, bytes(9))]), self.png([(0, bytes([9] + [0] * 8))]))
        self.assertEqual((mean, most), (1, 9))


class Answers(unittest.TestCase):
    def test_tokens_and_log_probabilities(self):
        text = 'a warning\n{"id":209,"logprob":-2.5,"text":"\\ufffd"}\n{"id":3,"logprob":-1.0,"text":"b"}\n'
        tokens = answers.read(text)
        self.assertEqual(tokens, [(209, -2.5), (3, -1.0)])
        self.assertEqual(answers.difference(tokens, [(209, -2.25), (4, -1.0)]), (1, 0.25))
        self.assertTrue(answers.same(tokens, [(209, -2.5), (3, -1.001)], 0.002))
        for other in ([(209, -2.5), (3, -1.1)], [(209, -2.5), (4, -1.0)], tokens[:1], []):
            self.assertFalse(answers.same(tokens, other, 0.002))
        self.assertFalse(answers.same([], [], 0.002))
        self.assertFalse(answers.same([(209, -2.5)], answers.read('{"id":209,"logprob":null}'), 0.002))


class TinyModel(unittest.TestCase):
    def test_gives_tokens_and_log_probabilities(self):
        with tempfile.TemporaryDirectory() as folder:
            for dtype in ("float32", "float16", "bfloat16"):
                model = f"{folder}/{dtype}"
                subprocess.run([sys.executable, HERE.parent / "make_random_model.py", "tiny", model, "--dtype", dtype],
                               check=True)
                words = [RBEE, "run", "-m", model, "--raw", "--temp", "0", "-n", "9", "-t", "1", "-q", "The_sky"]
                text = subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.decode()
                lines = subprocess.run([*words, "--logprobs"], stdout=subprocess.PIPE, check=True).stdout.decode()
                tokens = answers.read(lines)
                self.assertEqual(len(tokens), len(lines.splitlines()), lines)
                self.assertEqual(len(tokens), 9)
                self.assertTrue(all(-6 < logprob < 0 for _, logprob in tokens), tokens)  # the likeliest of 258
                self.assertGreater(len({token for token, _ in tokens}), 3, text)  # layers have a say
                whole = [line["text"] for line in map(json.loads, lines.splitlines()) if line["text"] != "\ufffd"]
                self.assertTrue(all(part in text for part in whole), text)


class Steps(unittest.TestCase):
    def test_ends_what_does_not_end(self):
        done = runner.run(["sh", "-c", "echo begun; sleep 60"], 0.5)
        self.assertEqual((done.status, done.text), (runner.TOO_LONG, "begun\n"))
        printing = "trap 'echo kernels under way; exit 1' ABRT; echo begun; while :; do :; done"
        done = runner.run(["sh", "-c", printing], 0.5)
        self.assertEqual((done.status, done.text), (runner.TOO_LONG, "begun\nkernels under way\n"))
        self.assertEqual(runner.run(["sh", "-c", "kill -ABRT $$"], 10).reason(), "signal 6")
        self.assertEqual(runner.run(["/none/at/all"], 10).status, 127)


class Order(unittest.TestCase):
    def test_goes_on_behind_a_step_that_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            checks = first_card.Checks(first_card.parse_arguments(["--programs", folder, "--device", "rocm:0"]),
                                       card.Card("rocm:0", ["gfx1100"]), runner.Journal(folder, str))
            self.addCleanup(checks.work.rmdir)
            ran = []
            for step in ("system", "build", "devices", *first_card.STEPS):
                setattr(checks, step, lambda step=step: ran.append(step) or True)
            checks.texts = lambda: [].pop()
            first_card.check_all(checks)
            self.assertEqual(ran, ["system", "build", "devices", *[s for s in first_card.STEPS if s != "texts"]])
            self.assertEqual(checks.found.failing_steps, ["texts"])
            self.assertTrue(any("IndexError" in file.read_text() for file in Path(folder).glob("*texts-error*")))

    def test_each_vendors_profiler_takes_steps_as_it_can(self):
        for kind, profiler, words in (("rocm", "rocprofv3", ["--kernel-trace"]), ("cuda", "ncu", ["--print-summary"])):
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "rbee").touch()
                checks = first_card.Checks(first_card.parse_arguments(["MODEL", "--programs", folder]),
                                           card.Card(f"{kind}:0", ["x"]), runner.Journal(folder, str))
                self.addCleanup(checks.work.rmdir)
                ran = []
                checks.run = lambda name, command, minutes, variables=None: ran.append((command, variables))
                with mock.patch("first_card.shutil.which", side_effect=lambda name: f"/bin/{name}"):
                    checks.profile()
                (command, variables), = ran
                self.assertEqual(command[0], f"/bin/{profiler}")
                self.assertTrue(set(words) <= set(command), command)
                # To ncu a captured step is one kernel.
                self.assertEqual(variables, {"RBEE_GRAPHS": "0"} if kind == "cuda" else None)

    def checks_in(self, folder):
        """With programs that exist; what is run goes to the list."""
        for program in ("rbee", "opcheck"):
            (Path(folder) / program).touch()
        checks = first_card.Checks(first_card.parse_arguments(["--programs", folder, "--operations", "linear"]),
                                   card.Card("rocm:0", ["gfx1201"]), runner.Journal(folder, str))
        self.addCleanup(checks.work.rmdir)
        return checks

    def test_a_library_that_takes_no_case_is_not_called_right(self):
        for cases, names in ((0, ["implementations"]), (5, ["implementations", "libraries-linear"])):
            with tempfile.TemporaryDirectory() as folder:
                checks, ran = self.checks_in(folder), []

                def run(name, command, minutes, variables=None, may_fail=False):
                    ran.append((name, variables))
                    return runner.Done(0, f"| linear | gpu | 9 of 9 | f32 |\n| linear | hipblaslt | {cases} of 9 | f16 |\n", 0)

                checks.run = run
                checks.libraries()
                self.assertEqual([name for name, _ in ran], names)
                self.assertEqual({variables["RBEE_HIPBLASLT"] for _, variables in ran}, {"1"})
                left_out = [file.read_text() for file in Path(folder).glob("*-libraries.txt")]
                self.assertEqual(any("takes no case" in text for text in left_out), cases == 0)

    def test_captured_runs_do_capture(self):
        """Where the table of known faults would turn it off, too."""
        with tempfile.TemporaryDirectory() as folder:
            checks, ran = self.checks_in(folder), []
            checks.compare("text", lambda name, device, variables: ran.append((name, variables)) or "a", str.__eq__)
            self.assertEqual({variables["RBEE_GRAPHS"] for name, variables in ran if "captured" in name}, {"1"})
            self.assertEqual({variables["RBEE_GRAPHS"] for name, variables in ran if "plain" in name}, {"0"})

    def test_the_doctor_is_asked(self):
        with tempfile.TemporaryDirectory() as folder:
            checks, ran = self.checks_in(folder), []
            checks.run = lambda name, *rest, **words: ran.append(name) or runner.Done(1, "rocm:0  A card\n", 0)
            with mock.patch("first_card.runner.run", return_value=runner.Done(0, "", 0)):
                checks.devices()
            self.assertEqual(ran, ["devices", "doctor"])

    def test_of_two_devices_the_one_that_can_be_used_is_checked(self):
        printed = ("cpu:0  A CPU\nrocm:0  cannot be used: this program has no kernels for gfx90c\n"
                   "rocm:1  A card, gfx1100\n")
        for words, device in (([], "rocm:1"), (["--device", "rocm:0"], "rocm:0")):
            with tempfile.TemporaryDirectory() as folder:
                checks = self.checks_in(folder)
                checks.options.device = words[-1] if words else ""
                checks.run = lambda *rest, **more: runner.Done(0, printed, 0)
                with mock.patch("first_card.runner.run", return_value=runner.Done(0, "", 0)):
                    checks.devices()
                self.assertEqual((checks.card.device, checks.found.opens), (device, device == "rocm:1"))

    def test_only_known_targets_are_built(self):
        for targets, wanted in ((["gfx1100"], ["-DRBEE_ROCM_ARCHS=gfx1100"]), ([], [])):
            with tempfile.TemporaryDirectory() as folder:
                checks, ran = self.checks_in(folder), []
                checks.card.targets = targets
                checks.run = lambda name, command, *rest: ran.append(command) or runner.Done(0, "", 0)
                self.assertTrue(checks.make())
                self.assertEqual([word for word in ran[0] if "ARCHS" in str(word)], wanted)

    def test_help_names_the_steps(self):
        done = subprocess.run([sys.executable, str(HERE / "first_card.py"), "--help"], text=True,
                              stdout=subprocess.PIPE)
        self.assertEqual(done.returncode, 0)
        for step in first_card.STEPS:
            self.assertIn(step, done.stdout)


class Verdicts(unittest.TestCase):
    def blamed(self, **facts):
        return " / ".join(verdict.blame(verdict.Findings(checked=True, **facts)))

    def test_no_fault(self):
        found = verdict.Findings(checked=True, passed=9, plain=[True] * 6, captured=[True] * 6)
        self.assertEqual(verdict.summary(found)[-1], "verdict     no fault found")

        found.failing_steps.append("soak")
        self.assertIn("look at the steps", verdict.summary(found)[-1])

    def test_nothing_ran(self):
        self.assertIn("none", verdict.summary(verdict.Findings())[-1])

    def test_whose_fault_it_is(self):
        right, wrong = [True] * 3, [False] * 3
        self.assertRegex(self.blamed(failed={"softmax": 2}), r"^KERNELS.*softmax \(2\)$")
        self.assertRegex(self.blamed(failed={"softmax": 2}, alone={"softmax"}), r"^RUNTIME \(order of work\)[^/]*$")
        self.assertRegex(self.blamed(plain=right, captured=wrong), r"^RUNTIME \(captured steps\)[^/]*$")
        self.assertRegex(self.blamed(plain=right, captured=wrong, card="rocm:0 A card, steps are not captured: a fault"),
                         r"^RUNTIME \(captured steps\).*captures none here by itself$")
        self.assertNotIn("by itself", self.blamed(plain=right, captured=wrong, card="rocm:0 A card"))
        self.assertRegex(self.blamed(plain=right, captured=right, libraries={"linear": 1}), r"^VENDOR LIBRARY[^/]*$")
        self.assertRegex(self.blamed(plain=[True, False, True], unsteady=True), r"^RUNTIME \(or a race\)[^/]*$")
        self.assertRegex(self.blamed(plain=wrong, captured=wrong), r"^UNDECIDED[^/]*$")
        self.assertRegex(self.blamed(plain=[True, None, True], captured=right),
                         r"^UNDECIDED[^/]*without a result[^/]*$")
        self.assertRegex(self.blamed(plain=right, captured=[True, None, True]), r"^RUNTIME \(captured steps\)[^/]*$")
        self.assertRegex(self.blamed(opens=False), r"^RUNTIME: the device cannot be opened[^/]*$")

    def test_never_more_than_ten_lines(self):
        found = verdict.Findings(checked=True, failed={str(i): 1 for i in range(50)}, alone={"1"}, libraries={"a": 1},
                                 plain=[True], captured=[False], unsteady=True, kernel_log=["x"], failing_steps=["y"])
        self.assertLessEqual(len(verdict.summary(found)), 9)  # and the file's name

    def test_whether_a_library_takes_part(self):
        for line, wanted in (("| linear | hipblaslt | 0 of 9 |  |", False), ("| linear | hipblaslt | 3 of 9 | f16 |", True),
                             ("| matmul | cublaslt | 12 of 90 | f16 |", True), ("| linear | gpu | 9 of 9 | f32 |", False)):
            self.assertEqual(verdict.library_takes_cases(f"a line\n{line}\n"), wanted, line)

    def test_reads_what_opcheck_prints(self):
        text = ("| softmax | 2 | 5 | 0 | 0 | 0.00 |\n| copy | 3 | 0 | 0 | 0 | 0.00 |\n"
                "5 cases passed, 5 failed, 5 of them ended their process; 51 were not run\n")
        self.assertEqual(verdict.read_operations(text), (5, {"softmax": 5}, 5))

    def test_new_lines_of_the_kernels_log(self):
        self.assertEqual(verdict.faults_of("a page fault\n", "a page fault\namdgpu: GPU reset begin\nready\n"),
                         ["amdgpu: GPU reset begin"])


@unittest.skipUnless(FAKE_HIP, "no programs for AMD")
class OnFakeGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # One thread: several wait for each other, which takes minutes beside other tests.
        processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(processors)})
        cls.addClassCleanup(os.sched_setaffinity, 0, processors)

    def check_card(self, *words, **variables):
        """The exit status, the screen, and the files."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "card.tar.xz"
            done = subprocess.run([str(HERE.parent / "first_card.sh"), "--device", "rocm:0", "--programs", PROGRAMS,
                                   "--out", str(file), "--operations", "softmax", "--most-bytes", "20000", "--tokens",
                                   "8", "--skip", "bench,kernels,profile", *words], text=True, stdout=subprocess.PIPE,
                                  env={**os.environ, "RBEE_HIP_LIBRARY": FAKE_HIP, "RBEE_FAKE_FILL": "0",
                                       "USER": "mira", "LOGNAME": "mira", "HOME": "/srv/people/mira", **variables},
                                  stderr=subprocess.STDOUT, timeout=900)
            with tarfile.open(file) as archive:
                members = archive.getmembers()
                files = {Path(member.name).name: archive.extractfile(member).read()
                         for member in members if member.isfile()}
            self.assertEqual({(member.uid, member.uname) for member in members}, {(0, "")})
        return done.returncode, done.stdout, files

    def found_by(self, files):
        name = next(name for name in files if name.endswith("-findings.txt"))
        return json.loads(files[name])

    def test_kernels_that_do_nothing_are_told(self):
        status, screen, files = self.check_card(HSA_NOTE="of mira in /srv/people/mira")
        self.assertEqual(status, 1, screen)
        self.assertRegex(screen, r"\nverdict     KERNELS: .*softmax \(\d+\)\n")
        self.assertIn("gfx942", screen)
        self.assertLessEqual(len(screen[screen.index("\ncard "):].strip().splitlines()), 10)
        found = self.found_by(files)
        self.assertEqual((found["opens"], len(found["plain"]), len(found["captured"])), (True, 12, 12))
        self.assertIn("picture-cpu.png", files)
        everything = b"\n".join(files.values()).decode(errors="replace")
        self.assertIn("HSA_NOTE=of USER in HOME", everything)
        # Python cannot open a library with sanitizers; then the loader's words stand there.
        self.assertRegex(everything, r"fake_hip\.so: (hipRuntimeGetVersion returns 0, 60443483|.*undefined symbol: __)")
        for private in ("mira", "/srv/people", str(HERE.parent.parent), "parameters"):
            self.assertNotIn(private, everything)

    def test_goes_on_behind_a_fault(self):
        status, screen, files = self.check_card(RBEE_FAKE_FATAL="softmax abort")
        self.assertEqual(status, 1, screen)
        self.assertGreaterEqual(self.found_by(files)["ended"], 5)
        self.assertRegex(screen, r"ended their process\n")
        self.assertIn("text-captured-3", screen)

    def test_a_device_that_cannot_be_opened(self):
        status, screen, files = self.check_card(RBEE_FAKE_DEVICES="0")
        self.assertEqual(status, 1, screen)
        self.assertIn("verdict     RUNTIME: the device cannot be opened", screen)
        self.assertTrue(any(b"finds no GPU" in text for text in files.values()))


@unittest.skipUnless(EMULATED, "needs TINYGRAD_DIR, rbee_emulated and rbee_opcheck_emulated")
class OnEmulator(unittest.TestCase):
    def check_card(self, *words, **variables):
        """The exit status and the screen."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, str(HERE.parent / "emulate_amd.py"), "--build", str(BUILD), "--arch",
                                   "gfx942", "--first-card", "--", "--out", f"{folder}/card.tar.xz", "--operations",
                                   "softmax,copy", "--most-bytes", "600", "--tokens", "2", *words], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **variables},
                                  timeout=3600)
        return done.returncode, done.stdout

    def test_no_fault(self):
        status, screen = self.check_card("--skip", "libraries,pictures,bench,kernels,profile,soak")
        self.assertRegex(screen, r"\nmodels      9 of 9 as the CPU's without capture, 9 of 9 as the CPU's with it\n"
                                 r"verdict     no fault found\n")
        self.assertEqual(status, 0)

    def test_a_wrong_kernel_is_named(self):
        status, screen = self.check_card("--skip", "libraries,texts,pictures,bench,kernels,profile,soak",
                                         RBEE_EMULATOR_SKIP="softmax")
        self.assertRegex(screen, r"\nverdict     KERNELS: [^/]*: softmax \(\d+\)\n")
        self.assertEqual(status, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
