#!/usr/bin/env python3
"""Tests of opcheck --isolate. Usage: test_isolated.py OPCHECK [FAKE_HIP]

FAKE_HIP: the runtime of tests/gpu/fake, whose kernels may end the process; without it cases run on the CPU alone.
"""
import os
import subprocess
import sys
import unittest

OPCHECK = sys.argv[1]
FAKE_HIP = sys.argv[2] if len(sys.argv) > 2 else None


def run(*words, **variables):
    return subprocess.run([OPCHECK, *words, "--isolate"], env={**os.environ, **variables}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)


class OnCpu(unittest.TestCase):
    def test_cases_pass_as_they_do_in_one_process(self):
        done = run("softmax", "--match", "(7, 33)", "--summary")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"\| softmax \| [1-9]\d* \| 0 \|")
        self.assertRegex(done.stdout, r"[1-9]\d* cases passed, 0 failed, 0 of them ended their process; 0 were not run")

    def test_no_device(self):
        done = run("softmax", "--device", "none:0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("none:0 cannot be opened: exit status 1", done.stdout)


@unittest.skipUnless(FAKE_HIP, "no fake runtime")
class OnFakeGpu(unittest.TestCase):
    def on_gpu(self, *words, **variables):
        return run("softmax", "--device", "rocm:0", "--summary", *words, RBEE_HIP_LIBRARY=FAKE_HIP, **variables)

    def test_a_case_that_ends_its_process_is_told_and_others_go_on(self):
        done = self.on_gpu("--match", "(7, 33)", RBEE_FAKE_FATAL="softmax_wave_f32 abort")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("softmax --case 1, gpu: signal 6 (Aborted): f32 (7, 33)\n", done.stdout)
        self.assertIn(" 1 of them ended their process; 0 were not run", done.stdout)
        self.assertIn("f16 (7, 33)\n", done.stdout)  # a later case, whose result is wrong: kernels do nothing there

    def test_a_kernel_without_end(self):
        done = self.on_gpu("--case", "1", "--case-seconds", "0.5", RBEE_FAKE_FATAL="softmax hang")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("softmax --case 1, gpu: no end within 0.5 s: f32 (7, 33)\n", done.stdout)

    def test_a_device_that_is_lost(self):
        done = self.on_gpu("--case", "1", RBEE_FAKE_FAIL="hipModuleLaunchKernel 1 719")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("softmax --case 1, gpu: exit status 1: f32 (7, 33)\n", done.stdout)

    def test_gives_up_an_operation_all_of_whose_cases_end_the_process(self):
        done = self.on_gpu(RBEE_FAKE_FATAL="softmax abort")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertRegex(done.stdout, r"softmax: \d+ cases are not run behind 5 that ended their process\n")

    def test_no_gpu(self):
        done = self.on_gpu(RBEE_FAKE_DEVICES="0")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("finds no GPU", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
