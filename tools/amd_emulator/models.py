"""Models on emulated processors beside the CPU, token by token."""
import subprocess
import sys

from amd_emulator.sweep import SCRIPT
from first_card import answers

PROMPT = "The_sky_is_blue_and_the_grass_is"
MOST = 0.002  # between log probabilities with layers in f32, for sums of another order


def words_of(model, tokens, device):
    return ["run", "-m", str(model), "--raw", "--dtype", "f32", "--temp", "0", "-n", str(tokens), "--ignore-eos", "-q",
            "--logprobs", PROMPT, "--device", device]


def printed_by(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return answers.read(done.stdout) if done.returncode == 0 else []


def row(arch, tokens, expected, found):
    """A line of the table, and whether it is the CPU's answer."""
    agree, most = answers.difference(expected, found)
    good = len(expected) == tokens and answers.same(expected, found, MOST)
    return f"| {arch} | {agree} of {tokens} | {most:.6f} | {'ok' if good else 'DIFFERS'} |", good


def compare(tinygrad, build, archs, model, tokens):
    """How many targets differ."""
    expected = printed_by([str(build / "bin/rbee"), *words_of(model, tokens, "cpu")])
    print("| target | same tokens | log probabilities differ at most | |\n|---|---|---|---|", flush=True)
    bad = 0
    for arch in archs:
        found = printed_by([sys.executable, str(SCRIPT), "--tinygrad", str(tinygrad), "--build", str(build), "--arch",
                            arch, "--rbee", "--", *words_of(model, tokens, "rocm:0")])
        line, good = row(arch, tokens, expected, found)
        print(line, flush=True)
        bad += not good
    return bad
