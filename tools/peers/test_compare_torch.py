#!/usr/bin/env python3
"""compare_torch.py over outputs recorded from programs, and a peer that answers from a list."""

import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import compare_torch  # noqa: E402
from peers import work  # noqa: E402
from peers.report import Row, Target, table  # noqa: E402

DEVICES = """cpu:0  AMD EPYC 7B13, 2 threads, avx2, 3.0 of 8.0 GB free
cuda:0  NVIDIA H200, sm_90, 132 multiprocessors, 149.9 of 150.1 GB free
rocm  none: AMD's HIP runtime (libamdhip64.so) is not installed (libamdhip64.so.7: ...)
"""
BENCH = """\
{"model":"m","type":"bf16","test":"pp2048","tokens_per_second":39088.00,"lowest":39000.00,\
"highest":39100.00,"limit":57415.00,"limit_name":"bf16 arithmetic",\
"operations_per_token":1.39586e+10,"first_token_ms":52.40}
{"model":"m","type":"bf16","test":"pp512","tokens_per_second":37970.00,"lowest":37900.00,\
"highest":38000.00,"limit":57415.00,"limit_name":"bf16 arithmetic",\
"operations_per_token":1.39586e+10,"first_token_ms":13.50}
{"model":"m","type":"bf16","test":"tg128","tokens_per_second":220.00,"lowest":219.00,\
"highest":221.00,"limit":282.50,"limit_name":"reading the weights","bytes_per_token":1.50100e+10}
"""
ATTENTION = """\
{"test":"copy","bytes_per_second":4.243e+12}
{"test":"attention","shape":[1,32,4096,128],"causal":true,"seconds":0.000469,\
"flops_per_second":2.93e+14,"peak_bytes":134217728}
{"test":"attention","shape":[1,32,4096,128],"causal":false,"seconds":0.0009,\
"flops_per_second":3.05e+14,"peak_bytes":134217728}
{"test":"attention","shape":[2,10,4096,64],"causal":false,"seconds":0.000296,\
"flops_per_second":2.90e+14,"peak_bytes":41943040}
{"test":"decode","keys":4096,"seconds":1.5e-05,"bytes_per_second":1.115e+12}
"""
CAUSAL, PICTURE = work.ATTENTIONS


def attention_peer(cudnn=True):
    """136 us a call; the unfused path ten times that and 2 GB."""
    fast = {"seconds": 0.000136, "peak_bytes": 134217728}
    slow = {"seconds": 0.00136, "peak_bytes": 2 * 10**9}
    return {(*case, name): slow if name == "unfused" else fast if cudnn or name != "cuDNN" else None
            for case in work.ATTENTIONS for name in work.PEERS}


class Folder:
    """Programs that print what was recorded, in a temporary folder."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.path = self.temporary.name

    def program(self, name, **answers):
        """Prints the answer to its first argument; fails at any other."""
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(f"#!{sys.executable}\nimport sys\nanswers = {answers!r}\n"
                      "key = sys.argv[1].lstrip('-')\n"
                      "if key not in answers: sys.exit('unknown: ' + key)\n"
                      "sys.stdout.write(answers[key])\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path


def run_main(*arguments):
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = compare_torch.main(list(arguments))
    return status, out.getvalue(), errors.getvalue()


class RowTest(unittest.TestCase):
    def test_ratios_are_taken_pair_by_pair(self):
        row = Row("w", "tokens/s", ours=[10, 40, 30], peer_name="p", peer=[10, 10, 20])
        self.assertEqual(row.figure("ratio"), 1.5)
        self.assertEqual(row.figure("ours"), 30)

    def test_what_was_not_measured_is_not_missed(self):
        row = Row("w", "tokens/s", ours=[1], target=Target("ratio", 2))
        self.assertFalse(row.missed())
        row.peer = [1]
        self.assertTrue(row.missed())

    def test_a_target_may_be_an_upper_bound(self):
        row = Row("w", "MB", ours=[60], peer=[100], target=Target("ratio", 0.5, at_most=True))
        self.assertTrue(row.missed())
        row.ours = [50]
        self.assertFalse(row.missed())

    def test_columns_line_up(self):
        lines = table([Row("short", "MB", ours=[1]), Row("a longer name", "tokens/s", ours=[12345],
                                                         limit=20000.0)]).splitlines()
        self.assertEqual({len(line) for line in lines}, {len(lines[0])})
        self.assertIn("12,345", lines[3])
        self.assertIn("62 %", lines[3])


class WorkTest(unittest.TestCase):
    def test_lines_of_bench_become_rows(self):
        lines = work.parse_lines("a warning\n" + BENCH)
        theirs = [{"pp2048": 34080, "pp512": 26140, "tg128": 18}]
        limits = {"copy": 4.503e12, "product": 790e12}
        rows = work.model_rows("/models/llama/", [lines], theirs, limits, h200=True)
        self.assertEqual([row.work for row in rows],
                         ["llama bf16, prompt of 2048", "llama bf16, prompt of 512",
                          "llama bf16, generation of 128",
                          "llama bf16, first token of a prompt of 2048",
                          "llama bf16, first token of a prompt of 512"])
        self.assertEqual([row.missed() for row in rows], [False, False, True, False, False])
        self.assertAlmostEqual(rows[0].limit, 57415, msg="rbee saw the faster product")
        self.assertAlmostEqual(rows[2].limit, 300, msg="the peer saw the faster copy")
        self.assertAlmostEqual(rows[2].figure("ratio"), 220 / 18)
        first = rows[4]
        self.assertEqual(first.unit, "ms")
        self.assertAlmostEqual(first.figure("ours"), 512 / 37.97)
        self.assertAlmostEqual(first.peer[0], 512 / 26.14)
        self.assertAlmostEqual(first.figure("share"), rows[1].figure("share"))

    def test_what_prompts_over_fp8_could_reach_is_not_known(self):
        lines = work.parse_lines(BENCH.replace('"bf16"', '"f8_g128"'))
        rows = work.model_rows("m", [lines], [], {"copy": 4.2e12, "product": 9e14}, h200=True)
        self.assertEqual([row.limit for row in rows], [0, 0, 282.5, 0, 0])
        self.assertIn("| -     ", table(rows).splitlines()[2])

    def test_packed_weights_are_held_to_a_share(self):
        lines = work.parse_lines(BENCH.replace('"bf16"', '"q8_0"'))
        rows = work.model_rows("m.gguf", [lines], [], None, h200=False)
        self.assertEqual(str(rows[2].target), ">= 85 % of the limit")
        self.assertTrue(rows[2].missed())
        self.assertEqual(rows[2].peer, [])

    def test_figures_of_the_h200_hold_for_it_and_the_shape_only(self):
        lines = work.parse_lines(BENCH)
        self.assertIsNone(work.model_rows("m", [lines], [], None, h200=False)[0].target)
        small = work.parse_lines(BENCH.replace("1.39586e+10", "2.1e+08"))
        self.assertIsNone(work.model_rows("m", [small], [], None, h200=True)[0].target)

    def test_attention_stands_beside_every_backend(self):
        rows = work.attention_rows([work.parse_lines(ATTENTION)], [attention_peer()],
                                   {"copy": 4.2e12, "product": 783e12}, h200=True)
        self.assertEqual([row.peer_name for row in rows[:4]],
                         ["FlashAttention", "cuDNN", "unfused", "unfused"])
        self.assertAlmostEqual(rows[0].figure("ours"), 293)
        self.assertTrue(rows[0].missed(), "293 of 300")
        self.assertAlmostEqual(rows[1].peer[0], 2 * 32 * 4096**2 * 128 / 0.000136 * 1e-12)
        self.assertAlmostEqual(rows[0].figure("share"), 293 / 783)
        self.assertEqual(str(rows[2].target), ">= 2 x the peer's")
        memory = rows[3]
        self.assertEqual(memory.unit, "MB")
        self.assertAlmostEqual(memory.figure("ratio"), 134217728 / 2e9)
        self.assertFalse(memory.missed())

    def test_a_backend_that_refuses_is_named(self):
        rows = work.attention_rows([work.parse_lines(ATTENTION)], [attention_peer(cudnn=False)],
                                   None, h200=False)
        refused = rows[1]
        self.assertEqual((refused.peer_name, refused.peer), ("cuDNN: refuses", []))
        self.assertIn("cuDNN: refuses", table(rows))


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.temporary.cleanup)
        self.rbee = self.folder.program("rbee", devices=DEVICES, bench=BENCH)
        self.attention = self.folder.program("attention_bench", json=ATTENTION)

    def arguments(self, *more):
        return ("--rbee", self.rbee, "--attention-bench", self.attention, "--model",
                self.folder.path, *more)

    def test_a_missed_figure_is_exit_status_1(self):
        status, out, _ = run_main(*self.arguments("--no-torch"))
        self.assertEqual(status, 1)
        self.assertIn("NVIDIA H200", out)
        self.assertIn(">= 225.0 MISSED", out)
        self.assertIn("2 of 5 figures not reached", out)

    def test_without_targets_nothing_is_missed(self):
        path = os.path.join(self.folder.path, "rows.json")
        status, out, _ = run_main(*self.arguments("--no-torch", "--no-targets", "--json", path))
        self.assertEqual(status, 0)
        self.assertNotIn("MISSED", out)
        with open(path, encoding="utf-8") as rows:
            written = json.load(rows)["rows"]
        self.assertEqual(written[2]["rounds_ours"], [220.0, 220.0], "two rounds by default")

    def test_rounds_alternate_with_the_peer(self):
        calls = []

        class Llama:
            def __init__(self, folder, device, dtype, compiled):
                calls.append(("load", folder, device, dtype, compiled))

            def prompt(self, tokens):
                calls.append(tokens)
                return tokens * 10.0

            def generation(self, tokens):
                calls.append(tokens)
                return 18.0

        copies = iter([4e12, 5e12])
        torch_peer = types.SimpleNamespace(
            Llama=Llama, transformers=object(), torch=types.SimpleNamespace(bfloat16="b"),
            attention=lambda device, name, shape, causal: attention_peer()[(shape, causal, name)],
            copy_bandwidth=lambda device: next(copies), product_speed=lambda device: 7e14)
        peer = compare_torch.Peer(torch_peer, compiled=False)
        options = compare_torch.parse_options(self.arguments())
        attention, theirs, models = compare_torch.measure(options, peer)
        self.assertEqual(calls, [("load", self.folder.path, "cuda:0", "b", False)]
                         + [2048, 512, 128] * 2)
        self.assertEqual((len(attention), len(theirs)), (2, 2))
        self.assertEqual(models[self.folder.path][1][1]["pp2048"], 20480.0)
        self.assertEqual(peer.limits, {"copy": 5e12, "product": 7e14}, "the best of the rounds")

    def test_no_device_is_exit_status_2(self):
        rbee = self.folder.program("rbee-cpu", devices=DEVICES.replace("cuda:0", "cpu:1"))
        status, out, errors = run_main("--rbee", rbee, "--model", self.folder.path)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("no CUDA device: nothing measured", errors)

    def test_a_program_that_fails_or_is_missing_is_exit_status_2(self):
        rbee = self.folder.program("rbee-broken", devices=DEVICES)
        status, _, errors = run_main("--rbee", rbee, "--model", "m", "--no-torch")
        self.assertEqual(status, 2)
        self.assertIn("unknown: bench", errors)
        status, _, errors = run_main("--rbee", self.folder.path + "/none", "--model", "m")
        self.assertEqual(status, 2)
        self.assertIn("No such file", errors)


if __name__ == "__main__":
    unittest.main()
