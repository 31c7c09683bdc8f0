#!/usr/bin/env python3
"""Tests of what tools/first_card.sh finds before its first step, and of what it keeps out of its file."""
import contextlib
import io
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import card  # noqa: E402
import first_card  # noqa: E402
import needs  # noqa: E402
import runner  # noqa: E402
import scrub  # noqa: E402
import system  # noqa: E402


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
                     "/opt/rocm-7.2.0/lib/libamdhip64.so.7 -> libamdhip64.so.7.2", "/dev/dri/renderD128: mode 660", "/dev/dxg: mode 666",
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
        self.assertEqual(card.amd_targets(nodes), ({"gfx1100": "navi1"}, {}))

    def test_there_are_kernels_for_what_cmake_knows(self):
        known = card.known_targets()
        self.assertTrue({"gfx908", "gfx1100", "gfx1201"} <= set(known), known)
        self.assertFalse({"gfx90c", "gfx1010", "gfx1250", ""} & set(known), known)
        self.assertEqual(len(known), len(set(known)))

    def find(self, *versions, nvidia=False):
        """The card of a machine with a processor and AMD's GPUs of these numbers."""
        nodes = {i: {"name": f"name{i}", "gfx_target_version": version} for i, version in enumerate((0, *versions))}
        with mock.patch("card.kfd_nodes", return_value=nodes), mock.patch("card.amd_problems", return_value=[]), \
                mock.patch("card.shutil.which", return_value="nvidia-smi" if nvidia else None), \
                mock.patch("card.has_library", return_value=False), \
                mock.patch("card.cuda_targets", return_value=["89"]), \
                mock.patch("card.has_pci_card", return_value=True):
            return card.find_card()

    def test_a_card_without_kernels_beside_one_that_has_them_is_left_out(self):
        found = self.find(90012, 110000)
        self.assertEqual((found.device, found.targets, found.problems), ("rocm:0", ["gfx1100"], []))
        self.assertEqual(found.left_out, ["gfx90c (name1): this program has no kernels for it"])

    def test_a_machine_without_a_known_card_has_a_problem(self):
        found = self.find(100100)
        self.assertEqual((found.targets, found.left_out, len(found.problems)), ([], [], 1))
        self.assertRegex(found.problems[0], r"no kernels for gfx1010; it has them for gfx908, .*gfx1201\. Use the CPU")

    def test_nvidias_card_goes_before_one_of_amd_without_kernels(self):
        self.assertEqual(self.find(90012, nvidia=True), card.Card("cuda:0", ["89"]))
        self.assertEqual(self.find(110000, nvidia=True).device, "rocm:0")

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

    def test_a_mac(self):
        def found(version, machine, wanted="", name="Darwin"):
            with mock.patch("card.platform.system", return_value=name), \
                    mock.patch("card.platform.mac_ver", return_value=(version, ("", "", ""), "")), \
                    mock.patch("card.platform.machine", return_value=machine):
                return card.find_card(wanted)

        self.assertEqual(found("14.5", "arm64"), card.Card("metal:0", [], []))
        self.assertEqual(found("12.7", "arm64").problems, ["this is macOS 12.7: 13 or later is needed"])
        self.assertIn("processor is x86_64", found("14.5", "x86_64").problems[0])
        self.assertEqual(found("", "x86_64", "metal:0", "Linux"), card.Card("metal:0", [], ["this is no Mac"]))

    def test_cuda_targets(self):
        with mock.patch("card.shutil.which", return_value="nvidia-smi"), mock.patch("card.subprocess.run") as run:
            run.return_value.stdout = "8.6\n9.0\n12.0\n8.6\n"
            self.assertEqual(card.cuda_targets(), ["86", "90a", "90-ptx"])


class Needs(unittest.TestCase):
    """What a build needs; with a PATH of its own for CMake."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.root = self.folder / "root"
        self.root.mkdir()
        (self.root / "cmake").symlink_to(HERE.parent.parent / "cmake")
        cmake = shutil.which("cmake")
        self.path = self.folder / "bin"
        self.path.mkdir()
        (self.path / "cmake").symlink_to(cmake)
        self.program("ninja", "")
        self.program("g++", "")
        self.program("zstd", "")
        self.enterContext(mock.patch.dict(os.environ, {"PATH": str(self.path)}))

    def enterContext(self, context):  # unittest's own needs Python 3.11
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def program(self, name, script):
        (self.path / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.path / name).chmod(0o700)

    def clang(self, version="19.1.7", unknown="gfx0"):
        self.program("clang++", f"""case "$*" in --version) echo "clang version {version}";;
            -print-prog-name=ld.lld) echo ld.lld;; *{unknown}*) exit 1;; esac""")

    def missing(self, *targets):
        return needs.missing_to_build(card.Card("rocm:0", list(targets)), self.root)

    def test_nothing(self):
        self.clang()
        self.program("ld.lld", "echo LLD 19.1.7")
        self.assertEqual(self.missing("gfx1100", "gfx90a"), [])

    def test_programs(self):
        self.clang()
        self.program("ld.lld", "echo LLD 19.1.7")
        for name in ("zstd", "ninja", "g++", "cmake"):
            (self.path / name).rename(self.folder / name)
            self.assertEqual(self.missing("gfx1100"), [f"to build: {name} ({needs.INSTALL})"])
            (self.folder / name).rename(self.path / name)

    def test_compiler_and_linker(self):
        for clang, linker in ((None, "LLD 19.1.7"), ("14.0.6", "LLD 19.1.7"), ("19.1.7", None), ("19.1.7", "LLD 14.0.6")):
            for name in ("clang++", "ld.lld"):
                (self.path / name).unlink(missing_ok=True)
            if clang:
                self.clang(clang)
            if linker:
                self.program("ld.lld", f"echo {linker}")
            missing, = self.missing("gfx1100")
            self.assertIn("need clang 19 or later and its lld", missing)

    def test_the_compiler_that_the_build_folder_names(self):
        self.clang()
        (self.path / "clang++").rename(self.folder / "clang")
        self.program("ld.lld", "echo LLD 19.1.7")
        self.assertEqual(len(self.missing("gfx1100")), 1)
        (self.root / "build/rocm").mkdir(parents=True)
        (self.root / "build/rocm/CMakeCache.txt").write_text(f"A:BOOL=ON\nRBEE_HIP_CLANG:FILEPATH={self.folder}/clang\n")
        self.assertEqual(self.missing("gfx1100"), [])

    def test_a_compiler_that_is_older_than_the_card(self):
        self.clang(unknown="gfx950")
        self.program("ld.lld", "echo LLD 19.1.7")
        missing, = self.missing("gfx950")
        self.assertIn("does not know gfx950; gfx950 and gfx1153 need clang 20", missing)

    def test_cmakes_errors(self):
        text = ("-- a line\nCMake Error at a/CMakeLists.txt:3 (message):\n  Could NOT find\n  GIF\n\n  Look there\n"
                "Call Stack (most recent call first):\n  b.cmake:1 (x)\n\n\nCMake Error: no preset\n-- end\n")
        self.assertEqual(needs.cmake_errors(text), ["Could NOT find GIF Look there", "no preset"])
        self.assertEqual(needs.cmake_errors("-- all is well\n"), [])


class Start(unittest.TestCase):
    def start(self, found, lacking=(), *words, installed=None):
        """The exit status, the screen, and whether the steps began."""
        began, screen = [], io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(screen), \
                mock.patch("first_card.cards.find_card", return_value=found), \
                mock.patch("first_card.needs.missing_to_build", return_value=list(lacking)), \
                mock.patch("first_card.shutil.which", return_value=installed), \
                mock.patch("first_card.check_all", side_effect=began.append):
            status = first_card.main(["--out", f"{folder}/x.tar.xz", *words])
        return status, screen.getvalue(), bool(began)

    def test_all_that_is_missing_is_told_before_anything_begins(self):
        found = card.Card("rocm:0", ["gfx1100"], ["there is no /dev/kfd"])
        status, screen, began = self.start(found, ["to build: zstd"], "/none/model.gguf")
        self.assertEqual((status, began), (2, False))
        for said in ("there is no /dev/kfd", "to build: zstd", "there is no /none/model.gguf"):
            self.assertIn(f"missing: {said}\n", screen)

    def test_no_build_begins_for_a_card_without_kernels(self):
        found = card.Card("rocm:0", [], ["this program has no kernels for gfx1010"])
        self.assertEqual(self.start(found)[::2], (2, False))

    def test_without_a_compiler_a_packages_programs_do(self):
        found = card.Card("rocm:0", ["gfx1100"])
        self.assertEqual(self.start(found, ["to build: g++"])[::2], (2, False))
        self.assertTrue(self.start(found, ["to build: g++"], installed="/usr/bin/rbee")[2])

    def test_cards_that_are_left_out_are_named(self):
        found = card.Card("rocm:0", ["gfx1100"], [], ["gfx90c (renoir): no kernels"])
        _, screen, began = self.start(found)
        self.assertTrue(began)
        self.assertIn("left out: gfx90c (renoir): no kernels\n", screen)


if __name__ == "__main__":
    unittest.main()
