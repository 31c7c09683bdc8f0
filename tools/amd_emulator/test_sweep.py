#!/usr/bin/env python3
"""Tests that need no emulator: the order of cases, verdicts, the inner loop and the table. A kernel with a planted
fault runs where TINYGRAD_DIR names the emulator and there is a clang."""
import ctypes
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from amd_emulator import code_object, machine, models, programs, session, sweep, table  # noqa: E402

HERE = Path(__file__).resolve().parent
CLANG = next(filter(None, map(shutil.which, ("clang++-22", "clang++-21", "clang++-20", "clang++-19"))), None)


def row(arch, op, name, verdict):
    return {"arch": arch, "op": op, "name": name, "implementation": "gpu", "types": "f32", "verdict": verdict}


class Numbers(unittest.TestCase):
    def test_of_gfx90a_become_cdna3s(self):
        mac, mad = (0x2C2A2316).to_bytes(4, "little"), (0x242E2B09D1C10016).to_bytes(8, "little")
        self.assertEqual(int.from_bytes(machine.as_cdna3(mac), "little"), 0x762A2316)
        self.assertEqual(int.from_bytes(machine.as_cdna3(mad), "little"), 0x242E2B09D1CB0016)
        other = (0x0A2A230B).to_bytes(4, "little")
        self.assertEqual(machine.as_cdna3(other), other)


class Order(unittest.TestCase):
    def setUp(self):
        self.cases = (sweep.parse_costs("softmax", "0\t800\t400\tf32\tref gpu\tlarge\n1\t80\t40\tf32\tgpu\tsmall\n"
                                                   "2\t0\t0\tf32\tgpu\tempty\n\n3\t90\t40\tf16\tgpu\tother\n")
                      + sweep.parse_costs("rope", "0\t100\t0\tf32\tgpu\tturn"))

    def names(self, most_bytes, rounds):
        return [case.name for case in sweep.in_order(self.cases, most_bytes, rounds) if case.implementation == "gpu"]

    def test_every_group_comes_before_any_second_case(self):
        self.assertEqual(self.names(1000, 0), ["small", "other", "turn", "large", "empty"])

    def test_limits(self):
        self.assertEqual(self.names(1000, 1), ["small", "other", "turn"])
        self.assertEqual(self.names(85, 1), ["small"])

    def test_an_implementation_each(self):
        self.assertEqual([c.implementation for c in self.cases if c.name == "large"], ["ref", "gpu"])


class Verdicts(unittest.TestCase):
    def test_of_what_opcheck_prints(self):
        line = "  1  f32\n  gpu              {}  absolute 1e-07  relative 2e-06  of allowed {}\n"
        self.assertEqual(sweep.judge({"status": 0, "text": line.format("ok  ", "0.25")}), ("ok", 0.25, ""))
        bad = {"status": 1, "text": line.format("FAIL", "3.50")}
        self.assertEqual(sweep.judge(bad), ("differs", 3.5, bad["text"]))
        self.assertEqual(sweep.judge({"status": 1, "text": "out of memory"})[0], "failed")
        self.assertEqual(sweep.judge({"status": 0, "text": ""})[0], "failed")
        self.assertEqual(sweep.judge("timeout"), ("timeout", None, ""))


class Table(unittest.TestCase):
    def test_counts_the_last_result_of_each_case(self):
        rows = [row("gfx942", "rope", "a", "ok"), row("gfx942", "rope", "b", "differs"),
                row("gfx1100", "rope", "a", "timeout")]
        self.assertEqual(table.markdown(rows).splitlines()[2:], [
            "| rope | gpu | 1, 1 differ | 0, 1 too long |", "| all | | 1, 1 differ | 0, 1 too long |"])


class Scripted(sweep.Sweep):
    """A sweep whose worker gives the answers that the test lists."""

    def __init__(self, folder, texts, **options):
        wanted = {"again": False, "ops": "", "impl": "", "seconds": 0, "most_bytes": 1000, "rounds": 0,
                  "case_seconds": 1, "jobs": 1, **options}
        super().__init__("gfx942", "x", [], Path(folder) / "results.jsonl", SimpleNamespace(**wanted))
        self.texts = texts

    def _ask(self, words, seconds):
        return {"status": 0, "text": self.texts.get(words[0] if "--case" not in words else "case", "")}


class Sweeps(unittest.TestCase):
    TEXTS = {"--list": "rope 1 cases\n", "rope": "0\t100\t0\tf32\tgpu\tturn\n",
             "case": "  0  turn\n  gpu  ok  absolute 0  relative 0  of allowed 0.25\n"}

    def sweep(self, texts, **options):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return Scripted(folder.name, texts, **options)

    def test_runs_what_is_listed(self):
        sweeping = self.sweep(self.TEXTS, ops="rope")
        self.assertEqual(sweeping.run(), 0)
        self.assertEqual([r["verdict"] for r in table.read_results(sweeping._results, "x")], ["ok"])

    def test_each_case_runs_once_in_several_processes(self):
        names = [f"turn {number}" for number in range(20)]
        rope = "".join(f"{number}\t100\t0\tf32\tgpu\t{name}\n" for number, name in enumerate(names))
        sweeping = self.sweep({**self.TEXTS, "rope": rope}, ops="rope", jobs=4)
        self.assertEqual(sweeping.run(), 0)
        rows = [json.loads(line) for line in sweeping._results.read_text().splitlines()]
        self.assertEqual(sorted(row["name"] for row in rows), sorted(names))

    def test_counts_what_did_not_pass(self):
        failing = {**self.TEXTS, "case": "  0  turn\n  gpu  FAIL  absolute 9  relative 9  of allowed 9\n"}
        self.assertEqual(self.sweep(failing, ops="rope", jobs=2).run(), 1)

    def test_of_nothing_are_errors(self):
        for texts, options in (({}, {}), (self.TEXTS, {"ops": "rope,roap"}), ({"--list": "rope 1 cases\n"}, {}),
                               (self.TEXTS, {"impl": "mfma"})):
            with self.assertRaisesRegex(RuntimeError, "opcheck --list"):
                self.sweep(texts, **options).run()


class Models(unittest.TestCase):
    def test_are_compared_by_ids_and_log_probabilities(self):
        tokens = [(7, -1.0), (8, -2.0)]
        self.assertTrue(models.row("gfx942", 2, tokens, [(7, -1.001), (8, -2.0)])[1])
        for other in ([(7, -1.0), (8, -2.01)], [(7, -1.0), (9, -2.0)], tokens[:1], []):
            line, good = models.row("gfx942", 2, tokens, other)
            self.assertFalse(good, other)
            self.assertIn("DIFFERS", line)
        self.assertFalse(models.row("gfx942", 3, tokens, tokens)[1])  # the CPU gave too few
        self.assertIn("| 1 of 2 |", models.row("gfx942", 2, tokens, [(7, -1.0), (9, -2.0)])[0])

    def test_vectors_are_compared_by_numbers(self):
        vectors = models.read_vectors('a line\n[[0.5,-2.0],[1.0,0.25]]\n')
        self.assertTrue(models.vectors_row("gfx942", vectors, [[0.5001, -2.0], [1.0, 0.25]])[1])
        undefined = models.read_vectors("[[0.5,-2.0],[1.0,null]]")
        for other in ([[0.501, -2.0], [1.0, 0.25]], vectors[:1], [[0.5], [1.0]], [], undefined):
            line, good = models.vectors_row("gfx942", vectors, other)
            self.assertFalse(good, line)
        self.assertFalse(models.vectors_row("gfx942", [], [])[1])

    def test_words_say_what_is_run(self):
        options = SimpleNamespace(model=Path("/m"), tokens=4, lora=[Path("/a")], image=None, embed=False,
                                  words=["--cpu-moe"])
        words = models.words_of(options, "rocm:0")
        self.assertEqual((words[0], words[-3:]), ("run", ["--lora", "/a", "--raw"]))
        self.assertIn("--cpu-moe", words)
        options.lora, options.image = [], Path("/p.png")
        self.assertEqual(models.words_of(options, "cpu")[-2:], ["--image", "/p.png"])
        options.embed = True
        self.assertEqual(models.words_of(options, "cpu")[0], "embed")


class Programs(unittest.TestCase):
    def test_hand_their_arguments_to_the_emulator(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch("amd_emulator.programs.SCRIPT", HERE / "echo.py"), \
             mock.patch("amd_emulator.programs.sys.executable", "/bin/echo"):
            programs.write(folder, Path("/tiny grad"), "gfx942", Path("/build"))
            for name, flags in (("opcheck", ""), ("rbee", " --rbee")):
                printed = subprocess.run([f"{folder}/{name}", "softmax", "a b"], stdout=subprocess.PIPE, text=True)
                self.assertEqual(printed.stdout, f"{HERE}/echo.py --tinygrad /tiny grad --arch gfx942 --build /build"
                                                 f"{flags} -- softmax a b\n")

    def test_opcheck_takes_one_device(self):
        emulated = session.Session.__new__(session.Session)
        emulated._call = lambda library, function, words: words
        self.assertEqual(emulated.opcheck(["softmax"]), ["opcheck", "softmax", "--device", "rocm:0"])
        self.assertEqual(emulated.opcheck(["--device", "rocm:0"]), ["opcheck", "--device", "rocm:0"])


class Results(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.build = Path(self.folder.name)
        for file in sweep.PROGRAM:
            (self.build / file).parent.mkdir(parents=True, exist_ok=True)
            (self.build / file).write_text(file)

    def test_of_other_sources_do_not_count(self):
        before = sweep.digest_of(self.build)
        results = self.build / "emulated.jsonl"
        results.write_text("".join(json.dumps(line) + "\n" for line in (
            row("gfx942", "rope", "a", "ok"),  # of a time without digests
            {**row("gfx942", "rope", "b", "differs"), "program": before},
            {**row("gfx942", "rope", "b", "ok"), "program": before})))
        self.assertEqual([(r["name"], r["verdict"]) for r in table.read_results(results, before)], [("b", "ok")])
        (self.build / sweep.PROGRAM[0]).write_text("another kernel")
        self.assertEqual(table.read_results(results, sweep.digest_of(self.build)), [])

    def test_none_yet(self):
        self.assertEqual(table.read_results(self.build / "none.jsonl", "x"), [])


class NativeLoop(unittest.TestCase):
    """A wave of two instructions, a barrier and an end, of functions of this test."""

    def setUp(self):
        self.calls = []
        take = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * 6)
        self.counter = (ctypes.c_uint32 * 2)()
        self.step = take(self.run_step)
        self.end = take(self.run_end)
        self.entries = (machine.Entry * 8)()
        self.buffers = (ctypes.c_uint64 * 6)(10, 11, 12, 13, 14, 15)
        self.left = ctypes.c_int64(100)
        self.reached = ctypes.c_uint32()

    def run_step(self, first, *_):
        self.calls.append(first)
        self.counter[0] += 4

    def run_end(self, *_):
        self.counter[0] = self.counter[1] = machine.WORD

    def put(self, at, function, argument=0, pause=0):
        self.entries[at].run = ctypes.cast(function, ctypes.c_void_p).value
        self.entries[at].arguments[0] = argument
        self.entries[at].pause = pause

    def run_wave(self):
        with tempfile.TemporaryDirectory() as folder:
            loop = machine.native_loop(Path(folder))
        return loop(self.entries, 0x1000, len(self.entries), self.counter, self.buffers, ctypes.byref(self.left), 64,
                    ctypes.byref(self.reached))

    def test_runs_to_the_barrier_and_to_the_end(self):
        self.counter[0] = 0x1000
        self.put(0, self.step, 2)
        self.entries[1].skip = 2
        self.put(3, self.step, 5, pause=1)
        self.put(4, self.end)
        self.assertEqual(self.run_wave(), machine.PAUSED)
        self.assertEqual((self.calls, self.counter[0]), ([12, 15], 0x1010))
        self.assertEqual(self.run_wave(), machine.DONE)

    def test_stops_where_it_cannot_go_on(self):
        self.counter[0] = 0x1004
        self.assertEqual(self.run_wave(), machine.UNKNOWN)
        self.counter[0] = 0x1020
        self.assertEqual(self.run_wave(), machine.OUTSIDE)
        self.put(0, self.end)
        self.counter[0], self.left.value = 0x1000, 0
        self.assertEqual(self.run_wave(), machine.TOO_LONG)


    def reach(self, kind, offsets, bytes_, lanes):
        """The result of an instruction with two lanes and 16 bytes at each lane's address."""
        scalars, vectors = (ctypes.c_uint32 * 128)(), (ctypes.c_uint32 * 8)(0, 0, 0, 0, 4, 48, 7, 7)
        scalars[machine.EXEC], scalars[124] = lanes, 16
        self.buffers[0], self.buffers[1] = ctypes.addressof(scalars), ctypes.addressof(vectors)
        self.counter[:] = 0x1000, 0
        self.put(0, self.step)
        entry = self.entries[0]
        entry.shared, entry.address, entry.bytes, entry.lanes = kind, 2, bytes_, 2
        entry.offsets[:] = offsets
        self.put(1, self.end)
        status = self.run_wave()
        return (status, self.reached.value) if status == machine.BEYOND_SHARED else status

    def test_stops_where_an_active_lane_reaches_beyond_the_blocks_memory(self):
        register, m0 = machine.BY_REGISTER, machine.FROM_M0
        self.assertEqual(self.reach(register, (0, 0), 16, 3), machine.DONE)  # 48 + 16 of 64
        self.assertEqual(self.reach(register, (1, 1), 16, 3), (machine.BEYOND_SHARED, 49))
        self.assertEqual(self.reach(register, (0, 16), 16, 3), (machine.BEYOND_SHARED, 64))
        self.assertEqual(self.reach(register, (44, 44), 16, 1), machine.DONE)  # the second lane is off
        self.assertEqual(self.reach(register, (-20 & machine.WORD,) * 2, 8, 2), machine.DONE)  # 28
        self.assertEqual(self.reach(register, (-8 & machine.WORD,) * 2, 8, 1), (machine.BEYOND_SHARED, (1 << 32) - 4))
        self.assertEqual(self.reach(m0, (16, 16), 16, 3), machine.DONE)
        self.assertEqual(self.reach(m0, (17, 17), 16, 3), (machine.BEYOND_SHARED, 49))

    def test_flat_instructions_reach_shared_memory_where_the_aperture_is(self):
        # Addresses of two words: 4 and 48; their upper words are the next register.
        for aperture, offset, wanted in ((7, 0, machine.DONE), (7, 1, (machine.BEYOND_SHARED, 49)), (8, 1, machine.DONE),
                                         (7, -5 & machine.WORD, machine.DONE)):
            self.buffers[3] = aperture << 32
            self.assertEqual(self.reach(machine.FLAT, (offset, offset), 16, 3), wanted)

    def test_names_say_what_is_reached(self):
        for name, wanted in (("DS_READ_B128", (16, (513, 513))), ("DS_LOAD_2ADDR_STRIDE64_B64", (8, (512, 1024))),
                             ("DS_WRITE2_B32", (4, (4, 8))), ("DS_READ_U8_D16_HI", (1, (513, 513))),
                             ("DS_PK_ADD_RTN_F16", (4, (513, 513))), ("DS_BPERMUTE_B32", None)):
            self.assertEqual(machine.shared_access(name, 1, 2), wanted, name)
        for name, wanted in (("FLAT_LOAD_UBYTE_D16_HI", 1), ("FLAT_LOAD_D16_I8", 1), ("FLAT_STORE_B16", 2),
                             ("FLAT_STORE_SHORT", 2), ("FLAT_LOAD_DWORD", 4), ("FLAT_LOAD_DWORDX3", 12),
                             ("FLAT_STORE_B128", 16), ("FLAT_ATOMIC_ADD_X2", 8), ("FLAT_ATOMIC_MAX_F64", 8),
                             ("FLAT_ATOMIC_ADD_U32", 4), ("FLAT_ATOMIC_PK_ADD_F16", 4)):
            self.assertEqual(machine.flat_bytes(name), wanted, name)


@unittest.skipUnless(os.environ.get("TINYGRAD_DIR") and CLANG, "needs TINYGRAD_DIR and clang")
class PlantedFault(unittest.TestCase):
    def test_is_found_on_each_family(self):
        with tempfile.TemporaryDirectory() as folder:
            for arch in ("gfx942", "gfx1100", "gfx1201"):
                self.run_on(arch, Path(folder))

    def run_on(self, arch, folder):
        file = folder / f"{arch}.co"
        subprocess.check_call([CLANG, "-x", "hip", "-c", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpulib",
                               "-nogpuinc", "-mcode-object-version=5", "-O3", f"--offload-arch={arch}",
                               str(HERE / "planted_fault.cu"), "-o", str(file)])
        image = ctypes.create_string_buffer(file.read_bytes())
        code = code_object.CodeObject(ctypes.addressof(image))
        os.environ["CCACHE"] = "0"
        emulated = session.Session.__new__(session.Session)
        emulated._machine = machine.Machine(Path(os.environ["TINYGRAD_DIR"]), arch, folder)
        beyond = (1 << 32) - 4
        for read, write, byte in ((0, 63, None), (1, 0, 256), (0, 64, 256), (-1, 0, beyond)):
            self.launch(emulated, code, "planted_fault", 0, (read, write), byte)
        for read, write, byte in ((0, 63, None), (1000, 63, None), (0, 1000, None), (1, 0, 2560), (0, 64, 2560),
                                  (-577, 0, beyond)):
            self.launch(emulated, code, "planted_flat_fault", 576, (read, write), byte)

        if arch == "gfx942":
            self.copy_on(emulated, code)

    def copy_on(self, emulated, code):
        """Words come to the first or the second 64 of 128, or 64 in front of them."""
        kernel = code.kernel("planted_copy_fault")
        for write, byte in ((64, None), (128, None), (63, (1 << 32) - 4), (129, 512)):
            data = (ctypes.c_float * 64)(*range(64))
            params = struct.pack("<Qii", ctypes.addressof(data), 0, write)
            if byte is None:
                emulated._run(code, kernel, (1, 1, 1), 64, 0, params)
                self.assertEqual(list(data), list(range(64)))
                continue
            with self.assertRaisesRegex(machine.KernelFault, f"byte {byte} of shared memory, of which the block has 512"):
                emulated._run(code, kernel, (1, 1, 1), 64, 0, params)

    def launch(self, emulated, code, name, first, reach, byte):
        """Over words from `first` on; `byte`: the one beyond the block's shared memory that is reached, if any."""
        data = (ctypes.c_float * (first + 64))(*[0] * first, *range(64))
        params = struct.pack("<Qii", ctypes.addressof(data), *reach)
        kernel = code.kernel(name)
        if byte is None:
            emulated._run(code, kernel, (1, 1, 1), 64, 0, params)
            last = 63 if reach[1] == 1000 else 1
            self.assertEqual(list(data)[first:], [(i ^ 1) + (last if i == 63 else i) for i in range(64)])
            return
        message = f"byte {byte} of shared memory, of which the block has {4 * (first + 64)}"
        with self.assertRaisesRegex(machine.KernelFault, message):
            emulated._run(code, kernel, (1, 1, 1), 64, 0, params)


class Blocks(unittest.TestCase):
    """Blocks of two waves, each of which meets the other at one barrier."""

    def run_blocks(self, at_once, seed):
        """The order of events: (block, wave, finished parts of it)."""
        happened, running, parts = [], {}, {}
        emulated = machine.Machine.__new__(machine.Machine)
        emulated.lanes, emulated._entries = 64, {}
        emulated._blocks_at_once, emulated._chance = at_once, random.Random(seed)

        def start(wave, _kernel, number, _threads, block, _registers):
            running[ctypes.addressof(wave.scalars)] = (block, number)
            parts[block, number] = 0

        def run_wave(_entries, _base, _count, counter, *_):
            who = running[counter - 4 * machine.COUNTER]
            parts[who] += 1
            happened.append((*who, parts[who]))
            return {2: machine.PAUSED, 4: machine.DONE}.get(parts[who], machine.TOO_LONG)

        emulated._start, emulated._run_wave = start, run_wave
        kernel, code = SimpleNamespace(private_bytes=0), SimpleNamespace(base=0, size=16)
        emulated.launch(code, kernel, (3, 2, 1), 128, 64, [])
        return happened

    def test_each_runs_to_its_end_and_waits_at_its_barriers(self):
        for seed in range(20):
            happened = self.run_blocks(4, seed)
            self.assertEqual(len(happened), len(set(happened)))
            self.assertEqual({(block, wave) for block, wave, part in happened if part == 4},
                             {((x, y, 0), wave) for x in range(3) for y in range(2) for wave in range(2)})
            for at, (block, wave, part) in enumerate(happened):
                if part == 3:
                    self.assertIn((block, 1 - wave, 2), happened[:at], "behind the barrier before the other came")

    def test_chance_mixes_them_by_the_seed(self):
        self.assertEqual(self.run_blocks(4, 1), self.run_blocks(4, 1))
        self.assertNotEqual(self.run_blocks(4, 1), self.run_blocks(4, 2))
        blocks = [block for block, _, _ in self.run_blocks(4, 1)]
        changes = sum(a != b for a, b in zip(blocks, blocks[1:]))
        self.assertGreater(changes, 12, "six blocks one after another change five times")


if __name__ == "__main__":
    unittest.main()
