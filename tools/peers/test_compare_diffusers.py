#!/usr/bin/env python3
"""compare_diffusers.py over what bench_image printed once, without the peer."""

import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import compare_diffusers  # noqa: E402
from peers.report import Row  # noqa: E402

BENCH = """\
{"part":"limits","flops":8e+14,"bytes_per_second":4.2e+12}
{"part":"denoiser","size":512,"batch":2,"seconds":0.0081,"captured_seconds":%s}
{"part":"vae","size":512,"batch":2,"seconds":0.0095,"captured_seconds":0.0094}
"""


def run_main(*arguments):
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = compare_diffusers.main(list(arguments))
    return status, out.getvalue(), errors.getvalue()


class CompareTest(unittest.TestCase):
    def bench(self, recorded):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "bench_image")
        with open(path, "w", encoding="utf-8") as out:
            out.write(f"#!{sys.executable}\nprint({BENCH % recorded!r}, end='')\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def model(self, pipeline="StableDiffusionPipeline", size=512):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "sd15")
        os.mkdir(path)
        with open(os.path.join(path, "model_index.json"), "w", encoding="utf-8") as index:
            json.dump({"_class_name": pipeline}, index)
        return f"{path}@{size}"

    def test_captured_steps_are_held_to_the_goal(self):
        status, out, _ = run_main("--bench", self.bench("0.0077"), "--model", self.model(),
                                  "--no-torch")
        self.assertEqual(status, 0)
        self.assertIn("sd15 512 x 512, step of 2 samples, ms", out)
        self.assertIn("<= 8.0", out)

    def test_a_missed_figure_is_exit_status_1(self):
        status, out, _ = run_main("--bench", self.bench("0.0085"), "--model", self.model(),
                                  "--no-torch")
        self.assertEqual(status, 1)
        self.assertIn("<= 8.0 MISSED", out)

    def test_goals_are_those_of_a_pipeline_at_its_size(self):
        for model in (self.model("StableDiffusion3Pipeline"), self.model(size=768)):
            status, out, _ = run_main("--bench", self.bench("0.0085"), "--model", model,
                                      "--no-torch")
            self.assertEqual(status, 0)
            self.assertNotIn("<=", out)

    def test_flux_has_no_second_sample_for_guidance(self):
        _, out, _ = run_main("--bench", self.bench("0.2"), "--model", self.model("FluxPipeline"),
                             "--no-torch")
        self.assertIn("step of 1 sample, ms", out)

    def test_what_cannot_be_measured_is_exit_status_2(self):
        for model, program in (("/m/sd15", self.bench("1")), (self.model(), "/none/bench_image")):
            status, _, errors = run_main("--bench", program, "--model", model, "--no-torch")
            self.assertEqual(status, 2)
            self.assertTrue(errors.strip())

    def test_of_falling_figures_the_limit_is_the_least(self):
        row = Row("w", "ms", ours=[8.0], limit=2.0, falling=True)
        self.assertEqual(row.figure("share"), 0.25)


if __name__ == "__main__":
    unittest.main()
