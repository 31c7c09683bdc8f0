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
import scrub  # noqa: E402
import system  # noqa: E402
import verdict  # noqa: E402

RBEE = sys.argv[1]
PROGRAMS = os.path.dirname(RBEE)
FAKE_HIP = sys.argv[2] if len(sys.argv) > 2 else None
BUILD = Path(PROGRAMS).resolve().parent
EMULATED = os.environ.get("TINYGRAD_DIR") and (BUILD / "cli/librbee_emulated.so").exists()


class Scrubbed(unittest.TestCase):
    def setUp(self):
        self.scrub = scrub.Scrubber({"mira", "Mira Muster"}, "beehive.example.org", "/srv/people/mira",
                                    {"/srv/people/mira/rbee.cpp": "ROOT", "/models/Secret-7B.gguf": "MODEL",
                                     "Secret-7B": "MODEL"})

    def test_private_things_go(self):
        for text in ("mira@beehive: /srv/people/mira/notes", "Nov 28 beehive kernel: amdgpu ready",
                     "beehive.example.org", "/home/someone/x", "/models/Secret-7B.gguf: Secret-7B, f16",
                     "  Uuid:  GPU-5e3f9a1c2b4d6e8f", "GPU[0] : Unique ID: 0x9a8b7c6d5e4f3a2b",
                     "GPU[0] : Serial Number: 692231000123", "'product_serial': 'PCB01234-5678'", "SERIAL=AB12345",
                     "link ether 3c:ec:ef:12:34:56", "inet 192.168.7.23/24", "mail someone@example.org"):
            found = self.scrub(text)
            for private in ("mira", "beehive", "people", "someone", "Secret", "5e3f9a1c", "9a8b7c6d", "692231", "PCB01",
                            "AB12345", "12:34:56", "192.168", "example"):
                self.assertNotIn(private, found, text)

    def test_secrets_go(self):
        for text in ("NVIDIA_API_KEY=nvapi-Xy12345678_abc", "RBEE_SECRET=12ab", "  \"api_key\": \"Xy1\",",
                     "AMD_PASSWORD='Xy1 12ab'", "a line with hf_Xy12345678 in it", "sk-Xy12345678",
                     "RBEE_API_KEYS=Xy1,12ab", "NVIDIA_KEYS=Xy1", "\"api_keys\": [\"Xy1\", \"12ab\"]", "x-api-key: Xy1",
                     "AMD_TOKENS=Xy1,12ab", "ROC_PASS=Xy1", "RBEE_PASSPHRASE=Xy1", "https://mail:Xy1@example.org/12ab",
                     "http://Xy1@127.0.0.1:8080", "https://huggingface.co/x?token=Xy1", "Authorization: Bearer Xy1.12ab",
                     "authorization: Basic Xy1=", "sent bearer Xy1-12ab", "ghp_Xy1234567890", "github_pat_Xy1234567890",
                     "glpat-Xy1234567", "xoxb-Xy1234567", "eyJhbGciOi.eyJzdWIi.Xy112ab",
                     "-----BEGIN OPENSSH PRIVATE KEY-----\nXy1\n12ab\n-----END OPENSSH PRIVATE KEY-----"):
            found = self.scrub(text)
            self.assertNotIn("Xy1", found)
            self.assertNotIn("12ab", found)
            self.assertIn("SECRET", found)

    def test_addresses_go(self):
        for text in ("inet6 fe80::1/64", "fe80::1%eth0", "2001:db8:0:1::17", "2001:db8::", "::ffff:10.1.2.3",
                     "2001:0db8:85a3:0000:0000:8a2e:0370:7334", "3c-ec-ef-12-34-56",
                     "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:1e:12:34"):
            found = self.scrub(text)
            self.assertIn("ADDRESS", found)
            self.assertNotRegex(found, r"fe80|2001|10\.1|7334|12.34|c9", text)

    def test_names_of_hosts_go(self):
        for text in ("http://cellar.example.com:4318/v1/traces", "cellar-pc.local is up", "cellar.lan: refused",
                     "nfs://cellar/models", "http://cellar:8080"):
            self.assertNotRegex(self.scrub(text), r"cellar|traces", text)

    def test_folders_of_people_go(self):
        for text, wanted in (("ROCR_X=/data/anna", "ROCR_X=FOLDER"), ("HSA_X=/data/anna:/mnt/anna", "HSA_X=FOLDER:FOLDER"),
                             ("/media/anna/USB/lib.so: cannot open", "FOLDER: cannot open"),
                             ("/run/media/anna/USB/lib.so", "FOLDER"), ("/opt/anna/lib", "FOLDER"),
                             ("$ '/data/anna x/y z'", "$ 'FOLDER'"), ("cc -I/data/anna/include", "cc -IFOLDER"),
                             ("file:///data/anna/y", "file://FOLDER"), ("/var/home/anna/x", "FOLDER"),
                             ("~anna/x", "HOME/x"), ("C:\\Users\\anna\\x", "HOME\\x"), ("of Mira Muster", "of USER")):
            self.assertEqual(self.scrub(text), wanted)

    def test_identifiers_of_machines_go(self):
        for text in ("S/N: AB12345", "Asset Tag: AB12345", "machine ab12345ab12345ab12345ab12345ab12",
                     "MIG-ab12345f-1111-2222-3333-123456789012", "GPU-ab12345f"):
            self.assertNotIn("ab12345", self.scrub(text).lower(), text)

    def test_variables_with_secrets_names_lose_their_whole_values(self):
        with mock.patch.dict(os.environ, {"RBEE_API_KEYS": "Xy1 Xy2", "HIP_TOKENS": "7 Xy1", "RBEE_GRAPHS": "1"}):
            with mock.patch("system.runner.run", return_value=runner.Done(0, "", 0)):
                lines = system.versions().splitlines()
        self.assertTrue({"RBEE_API_KEYS=SECRET", "HIP_TOKENS=SECRET", "RBEE_GRAPHS=1"} <= set(lines), lines)

    def test_who_called_sudo_is_a_user_too(self):
        with mock.patch.dict(os.environ, {"SUDO_USER": "anna"}):
            self.assertEqual(scrub.of_this_machine(HERE.parent.parent, None, "/none")("anna: x"), "USER: x")

    def test_of_the_kernels_command_line_options_of_gpus_stay(self):
        line = "[    0.000000] Command line: root=/dev/mapper/cellar cryptdevice=PARTLABEL=Xy1 amdgpu.ppfeaturemask=0xfff iommu=pt quiet"
        self.assertEqual(self.scrub(line), "[    0.000000] Command line: amdgpu.ppfeaturemask=0xfff iommu=pt")

    def test_processes_of_others_lose_their_names(self):
        line = "amdgpu 0000:03:00.0: amdgpu:  in process {} pid 3324 thread {}:cs0 pid 3350)"
        self.assertEqual(self.scrub(line.format("diary", "diary")),
                         "amdgpu 0000:03:00.0: amdgpu:  in process OTHER pid 3324 thread OTHER pid 3350)")
        self.assertEqual(self.scrub(line.format("opcheck", "opcheck")), line.format("opcheck", "opcheck"))
        for line, wanted in (("process Isolated Web Co pid 33 thread diary:cs0 pid 34", "process OTHER pid 33 thread OTHER pid 34"),
                             ("Process diary pid 33 thread diary pid 34", "Process OTHER pid 33 thread OTHER pid 34"),
                             ("process  pid 0 thread  pid 0", "process  pid 0 thread  pid 0"),
                             ("NVRM: Xid (PCI:0000:01:00): 31, pid=12, name=my diary, Ch 8",
                              "NVRM: Xid (PCI:0000:01:00): 31, pid=12, name=OTHER, Ch 8")):
            self.assertEqual(self.scrub(line), wanted)

    def test_the_folder_of_programs_goes(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = Path(folder) / "client"
            scrubbed = scrub.of_this_machine(HERE.parent.parent, None, "/none", programs)
            self.assertEqual(scrubbed(f"$ {programs}/rbee devices"), "$ PROGRAMS/rbee devices")

    def test_paths_keep_what_is_ours(self):
        self.assertEqual(self.scrub("/srv/people/mira/rbee.cpp/build/rocm/bin/rbee"), "ROOT/build/rocm/bin/rbee")

    def test_what_tells_of_the_card_stays(self):
        for text in ("gfx_target_version 110000", "amdgpu 0000:03:00.0: amdgpu: ring gfx timeout", "HIP 6.4.43483",
                     "driver 550.54.15", "127.0.0.1", "miranda has 12 miracles", "the serial version of a kernel", "a tokenizer: 5 tokens, 1.25 tokens/s",
                     "token: 3 of 9", "unknown key: blk.0", "--tokens 8", "max_tokens=16", "\"prompt_tokens\": 5,",
                     "/opt/rocm-7.2.0/lib/libamdhip64.so.7 -> libamdhip64.so.7.2", "/dev/dri/renderD128: mode 660",
                     "/sys/class/drm/card0/device: vendor 0x1002", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                     "input: HDMI as /devices/pci0000:00/0000:00:03.1/sound", "GET /v1/chat/completions 200", "::1",
                     "https://github.com/ROCm/clr/issues/279", "http://127.0.0.1:8080/v1/models", "std::bad_alloc",
                     "rbee::gpu::Driver", "Jan 12 12:34:56", "5 tokens/s, 3/4 of it /2", "page fault (src_id:0 ring:24 vmid:8)",
                     "a5c8b9db0123456789a5c8b9db0123456789a5c8",
                     "0x1002:0x744c, 16.0 GT/s PCIe, x16", "softmax --case 12, gpu: signal 6 (Aborted): f32 (7, 33)"):
            self.assertEqual(self.scrub(text), text)

    def test_names_that_tell_nothing_stay(self):
        self.assertEqual(scrub.Scrubber({"root"}, "gpu", "/root", {})("root gpu /root/x"), "root gpu HOME/x")


class Cards(unittest.TestCase):
    def test_targets_by_number(self):
        for number, name in ((110000, "gfx1100"), (120001, "gfx1201"), (100306, "gfx1036"), (90010, "gfx90a"),
                             (90402, "gfx942")):
            self.assertEqual(card.gfx_name(number), name)

    def test_topology(self):
        with tempfile.TemporaryDirectory() as folder:
            for node, version, unique in (("0", 0, 0), ("1", 110000, 123456789)):
                (Path(folder) / node).mkdir()
                (Path(folder) / node / "name").write_text(f"navi{node}\n")
                (Path(folder) / node / "properties").write_text(
                    f"simd_count 192\nlds_size_in_kb 64\ngfx_target_version {version}\nunique_id {unique}\n")
            nodes = card.kfd_nodes(folder)
        self.assertEqual(nodes[1], {"name": "navi1", "simd_count": 192, "lds_size_in_kb": 64,
                                    "gfx_target_version": 110000})
        self.assertEqual(card.amd_targets(nodes), ["gfx1100"])

    def test_what_is_in_the_way(self):
        self.assertIn("there is no /none", card.closed("/none"))
        self.assertEqual(card.closed("/dev/null"), "")


    def test_names_the_group_that_may_open_a_device(self):
        with mock.patch("card.os.access", return_value=False), mock.patch("card.group_of", return_value="render"):
            with mock.patch("card.in_container", return_value=""):
                self.assertIn("which the group render may: sudo usermod -aG render $USER", card.closed("/dev/null"))
            with mock.patch("card.in_container", return_value="docker"):
                self.assertIn(f"--group-add {os.stat('/dev/null').st_gid}", card.closed("/dev/null"))

    def test_finds_the_card_of_either_vendor(self):
        nodes = {0: {"gfx_target_version": 0}, 1: {"gfx_target_version": 120001}}
        with mock.patch("card.kfd_nodes", return_value=nodes), mock.patch("card.amd_problems", return_value=[]):
            self.assertEqual(card.find_card(), card.Card("rocm:0", ["gfx1201"], []))
        with mock.patch("card.kfd_nodes", return_value={}), mock.patch("card.has_pci_card", return_value=False):
            with mock.patch("card.cuda_targets", return_value=["89"]), mock.patch("card.has_library", return_value=True):
                self.assertEqual(card.find_card(), card.Card("cuda:0", ["89"], []))
        with mock.patch("card.kfd_nodes", return_value={}), mock.patch("card.has_pci_card", return_value=True):
            self.assertIn("amdgpu driver knows no card", card.find_card().problems[-1])

    def test_cuda_targets(self):
        with mock.patch("card.shutil.which", return_value="nvidia-smi"), mock.patch("card.subprocess.run") as run:
            run.return_value.stdout = "8.6\n9.0\n12.0\n8.6\n"
            self.assertEqual(card.cuda_targets(), ["86", "90a", "90-ptx"])


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
