"""Models on emulated processors beside the CPU: texts token by token, vectors number by number."""
import json
import math
import subprocess
import sys

from amd_emulator.sweep import SCRIPT
from first_card import answers

PROMPT = "The_sky_is_blue_and_the_grass_is"
TEXTS = ["The sky is blue.", "Grass", "a longer text about the weather of tomorrow"]
MOST = 0.002  # between log probabilities with layers in f32, for sums of another order
MOST_OF_VECTORS = 1e-4  # between numbers of vectors, as a part of the largest, for the same


def words_of(options, device):
    """The arguments of rbee; options as emulate_amd.py's."""
    model = ["-m", str(options.model.resolve()), "--dtype", "f32", "--device", device, *options.words]
    if options.embed:
        return ["embed", *model, *TEXTS]
    words = ["run", *model, "--temp", "0", "-n", str(options.tokens), "--ignore-eos", "-q", "--logprobs", PROMPT]
    for adapter in options.lora:
        words += ["--lora", str(adapter.resolve())]
    # A picture comes in a chat's message.
    return [*words, *(["--image", str(options.image.resolve())] if options.image else ["--raw"])]


def printed_by(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return done.stdout if done.returncode == 0 else ""


def row(arch, tokens, expected, found):
    """A line of the table, and whether it is the CPU's answer."""
    agree, most = answers.difference(expected, found)
    good = len(expected) == tokens and answers.same(expected, found, MOST)
    return f"| {arch} | {agree} of {tokens} | {most:.6f} | {'ok' if good else 'DIFFERS'} |", good


def read_vectors(text):
    """The vectors that `rbee embed` printed; None for other output."""
    lines = [line for line in text.splitlines() if line.startswith("[[")]
    vectors = json.loads(lines[-1]) if lines else []
    return [[math.inf if number is None else number for number in vector] for vector in vectors]  # no number


def vectors_row(arch, expected, found):
    """The same of vectors."""
    shapes = [len(vector) for vector in found] == [len(vector) for vector in expected]
    numbers = [(a, b) for one, other in zip(expected, found) for a, b in zip(one, other)]
    largest = max((abs(a) for a, _ in numbers), default=0)
    most = max(abs(a - b) for a, b in numbers) / largest if largest else math.inf
    good = shapes and most <= MOST_OF_VECTORS
    return f"| {arch} | {len(found)} of {len(expected)} | {most:.2e} | {'ok' if good else 'DIFFERS'} |", good


def compare(tinygrad, build, archs, options):
    """How many targets differ."""
    expected = printed_by([str(build / "bin/rbee"), *words_of(options, "cpu")])
    what = ("vectors", "numbers differ by, of the largest") if options.embed else (
        "same tokens", "log probabilities differ at most")
    print(f"| target | {what[0]} | {what[1]} | |\n|---|---|---|---|", flush=True)
    bad = 0
    for arch in archs:
        found = printed_by([sys.executable, str(SCRIPT), "--tinygrad", str(tinygrad), "--build", str(build), "--arch",
                            arch, "--rbee", "--", *words_of(options, "rocm:0")])
        line, good = (vectors_row(arch, read_vectors(expected), read_vectors(found)) if options.embed else
                      row(arch, options.tokens, answers.read(expected), answers.read(found)))
        print(line, flush=True)
        bad += not good
    return bad
