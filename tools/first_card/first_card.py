"""Checks this program on a GPU that it never ran on, and leaves one file for its developers.

  tools/first_card.sh [MODEL.gguf]

Builds for the card that is found, runs every operation in a process of its own, with and without the vendor's library
of products, compares texts and pictures with the CPU's, with and without captured steps, measures, and drives a worker
for some minutes. A step that fails or does not end is told, and the next one begins. What the file holds is scrubbed of
names, homes, addresses and serial numbers; of your model it keeps speeds and whether results agree, no text and no
name. It takes an hour or so on a card, besides the build. Exit status: 0 no fault found, 1 faults, 2 something is missing."""
import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

import answers
import card as cards
import needs
import picture
import runner
import scrub
import system
import verdict

ROOT = Path(__file__).resolve().parent.parent.parent
STEPS = ("operations", "libraries", "texts", "pictures", "bench", "kernels", "profile", "soak")
RUNS = 3
MOST_LOGPROB = 0.002  # between log probabilities with layers in f32, for sums of another order
PROMPT = "The_sky_is_blue_and_the_grass_is"
NO_LIBRARIES = {"RBEE_HIPBLASLT": "0", "RBEE_HIPBLASLT_LIBRARY": "/none", "RBEE_CUBLASLT_LIBRARY": "/none"}
LIBRARIES = {"RBEE_HIPBLASLT": "1"}
NOT_CAPTURED = {"RBEE_GRAPHS": "0"}
# Also where the program knows faults of replays and would not capture: so the file shows whether this card has them.
CAPTURED = {"RBEE_GRAPHS": "1"}
LIBRARY_OPERATIONS = ("linear", "fused_linear", "matmul", "linear_norm", "expert_linear")
ONE_AT_A_TIME = {"AMD_SERIALIZE_KERNEL": "3", "AMD_SERIALIZE_COPY": "3", "HIP_LAUNCH_BLOCKING": "1",
                 "CUDA_LAUNCH_BLOCKING": "1"}
KERNEL_BENCHES = ("linear_bench", "gemm_bench", "attention_bench", "conv_bench", "expert_bench")
PROFILERS = {"rocm": "rocprofv3", "cuda": "ncu"}
# Each kernel once, at the clocks that the card has; 4,000 launches take a minute.
NCU_FLAGS = ["--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--print-summary", "per-kernel",
             "--launch-count", "4000"]
WORKERS = {"rocm": "llm-worker-rbee-rocm", "cuda": "llm-worker-rbee-cuda", "metal": "llm-worker-rbee-metal"}


def parse_arguments(words):
    parser = argparse.ArgumentParser(prog="first_card.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path, help="a model of yours, for speeds and the soak")
    parser.add_argument("--device", default="", help="rocm:N, cuda:N or metal:0; without it the card that is found. With "
                                                     "it what seems to be missing is told, and the steps begin")
    parser.add_argument("--programs", type=Path, help="a folder with rbee and opcheck; nothing is built")
    parser.add_argument("--out", type=Path, help="the file; first-card-TARGET.tar.xz here")
    parser.add_argument("--operations", default="", help="some of them, with commas between them")
    parser.add_argument("--most-bytes", type=float, default=0, help="leave out cases with larger operands")
    parser.add_argument("--tokens", type=int, default=90, help="of the texts that are compared, 1 to 90")
    parser.add_argument("--soak-minutes", type=float, default=3, help="30 show more")
    parser.add_argument("--skip", default="", help="steps to leave out, with commas: " + ", ".join(STEPS))
    parser.add_argument("--limit", type=float, default=1, help="a factor on every step's limit of time")
    return parser.parse_args(words)


class Checks:
    """The steps fill `found`, in the order of the methods."""

    def __init__(self, options, card, journal):
        self.options, self.card, self.journal = options, card, journal
        self.found = verdict.Findings(card=f"{card.device} {' '.join(card.targets)}")
        self.skipped = set(options.skip.split(","))
        self.programs = options.programs or ROOT / "build" / card.kind / "bin"
        self.work = Path(tempfile.mkdtemp(prefix="first-card-"))
        self.log_before = system.kernel_log()

    def run(self, name, command, minutes, variables=None, may_fail=False):
        done = self.journal.step(name, command, minutes * 60 * self.options.limit, variables)
        if not done.ok and not may_fail:
            self.found.failing_steps.append(name)
        return done

    def program(self, name):
        return self.programs / name

    def has(self, step, program):
        """Whether a step is wanted and its program is there."""
        if step in self.skipped:
            return False
        if not self.program(program).exists():
            self.journal.write(step, f"left out: there is no {program}\n")
            print(f"   {step}: there is no {program}")
            return False
        return True

    def system(self):
        self.journal.write("system", system.overview() + "".join(f"left out: {one}\n" for one in self.card.left_out))
        self.journal.write("kfd", system.topology())
        self.journal.write("kernel-log", self.log_before)
        self.journal.write("versions", system.versions())

    def build(self):
        """Whether there are programs. A package's replace those that cannot be built."""
        if self.options.programs:
            return True
        if not self.card.lacking and self.make():
            return True
        installed = shutil.which("rbee")
        if installed:
            print("   takes the programs of the package, which has no opcheck")
            self.programs = Path(installed).parent
        return bool(installed)

    def make(self):
        kind = self.card.kind
        archs = [f"-DRBEE_{kind.upper()}_ARCHS={';'.join(self.card.targets)}"] if self.card.targets else []
        configured = self.run("configure", ["cmake", "-S", ROOT, "--preset", kind, "-DRBEE_TESTS=ON",
                                            "-DRBEE_BENCH=ON", *archs], 10)
        for error in needs.cmake_errors(configured.text):
            print(f"   {error}")
        benches = () if kind == "metal" else KERNEL_BENCHES
        targets = ["opcheck", "rbee", WORKERS[kind], *benches]
        return configured.ok and self.run("build", ["cmake", "--build", ROOT / "build" / kind, "--target", *targets],
                                          180).ok

    def devices(self):
        done = self.run("devices", [self.program("rbee"), "devices"], 5, {"AMD_LOG_LEVEL": "3"})
        self.choose(done.text)
        line = re.search(rf"^{self.card.device}  (.*)$", done.text, re.M)
        self.found.opens = bool(line) and "cannot be used" not in line.group(1)
        if line:
            self.found.card = f"{self.card.device} {line.group(1)}"
        commit = runner.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40"], 60).text.strip()
        whose = "of this script; the programs were given" if self.options.programs else "of the programs"
        self.journal.write("program", f"sources {whose}: {commit}\n"
                                      f"{runner.run([str(self.program('rbee')), '--version'], 60).text}")
        self.run("doctor", [self.program("rbee"), "doctor"], 5, may_fail=True)  # it may find what is no fault here

    def choose(self, devices):
        """Where the user named none, the first that can be used: a card without kernels may come before it."""
        usable = re.findall(rf"^({self.card.kind}:\d+)  (?!cannot be used)", devices, re.M)
        if usable and self.card.device not in usable and not self.options.device:
            print(f"   {self.card.device} cannot be used; checks {usable[0]}")
            self.card.device = usable[0]

    def opcheck(self, name, operation, variables):
        words = [self.program("opcheck"), operation, "--isolate", "--device", self.card.device, "--summary"]
        if self.options.most_bytes:
            words += ["--most-bytes", f"{self.options.most_bytes:.0f}"]
        done = self.run(name, words, 60, variables, may_fail=True)
        passed, failed, ended = verdict.read_operations(done.text)
        if not done.ok and not failed:
            self.found.failing_steps.append(name)
        return passed, failed, ended

    def chosen(self):
        if self.options.operations:
            return self.options.operations.split(",")
        listed = runner.run([str(self.program("opcheck")), "--list"], 60).text
        return [line.split()[0] for line in listed.splitlines() if line.strip()]

    def operations(self):
        if not self.has("operations", "opcheck"):
            return
        self.found.checked = True
        for operation in self.chosen():
            passed, failed, ended = self.opcheck(f"operations-{operation}", operation, NO_LIBRARIES)
            self.found.passed += passed
            self.found.failed.update(failed)
            self.found.ended += ended
        for operation in sorted(self.found.failed)[:12]:
            passed, failed, _ = self.opcheck(f"again-{operation}", operation, {**NO_LIBRARIES, **ONE_AT_A_TIME})
            if passed > 0 and not failed:
                self.found.alone.add(operation)

    def takes_part(self):
        """Whether the vendor's library takes a case; which kernels take which is in the file."""
        table = self.run("implementations", [self.program("opcheck"), "--table", "--device", self.card.device], 10,
                         LIBRARIES)
        return verdict.library_takes_cases(table.text)

    def libraries(self):
        if not self.has("libraries", "opcheck"):
            return
        operations = [op for op in LIBRARY_OPERATIONS if op in self.chosen()]
        if operations and not self.takes_part():
            self.journal.write("libraries", "left out: the vendor's library takes no case; it is not installed or "
                                            "does not start\n")
            print("   libraries: the vendor's library is not there, or does not start")
            return
        for operation in operations:
            _, failed, _ = self.opcheck(f"libraries-{operation}", operation, LIBRARIES)
            self.found.libraries.update({op: n for op, n in failed.items() if op not in self.found.failed})

    def compare(self, what, make, same):
        """`make(name, device, variables)` gives a result or None; the device's are made three times each way."""
        expected = make(f"{what}-cpu", "cpu", {})
        for word, variables, results in (("plain", NOT_CAPTURED, self.found.plain),
                                         ("captured", CAPTURED, self.found.captured)):
            made = [make(f"{what}-{word}-{i + 1}", self.card.device, variables) for i in range(RUNS)]
            agree = [None if expected is None or one is None else same(expected, one) for one in made]
            results += agree
            if False in agree:
                self.found.unlike.append(f"{what} ({word})")
            there = [one for one in made if one is not None]
            self.found.unsteady = self.found.unsteady or not all(same(there[0], one) for one in there[1:])

    def tiny_model(self):
        folder = self.work / "tiny"
        if not folder.exists():
            self.run("tiny-model", [sys.executable, ROOT / "tools/make_random_model.py", "tiny", folder,
                                    "--dtype", "float16"], 2)
        return folder

    def text_of(self, model):
        def make(name, device, variables):
            done = self.run(name, [self.program("rbee"), "run", "-m", model, "--raw", "--dtype", "f32", "--temp", "0",
                                   "-n", self.options.tokens, "-q", PROMPT, "--device", device], 15,
                            {**NO_LIBRARIES, **variables})
            return done.text if done.ok else None
        return make

    def tokens_of(self, model):
        def make(name, device, variables):
            done = self.run(name, [self.program("rbee"), "run", "-m", model, "--raw", "--dtype", "f32", "--temp", "0",
                                   "-n", self.options.tokens, "--logprobs", "-q", PROMPT, "--device", device], 15,
                            {**NO_LIBRARIES, **variables})
            return answers.read(done.text) if done.ok else None
        return make

    def likelihood_of(self, model, words):
        """Of a text of ours, in prompts of many rows. Weights in blocks may be multiplied in 8 bits on the CPU, so
        that a model's own texts would differ."""
        def make(name, device, variables):
            done = self.run(name, [self.program("rbee"), "perplexity", "-m", model, "-f", ROOT / "README.md", "-c",
                                   "64", *words, "--device", device], 15, {**NO_LIBRARIES, **variables})
            figure = re.search(r"^perplexity (\S+)", done.text, re.M)
            return float(figure.group(1)) if done.ok and figure else None
        return make

    def texts(self):
        if not self.has("texts", "rbee"):
            return
        tiny = self.tiny_model()
        self.compare("text", self.text_of(tiny), lambda cpu, gpu: cpu == gpu)
        self.compare("tokens", self.tokens_of(tiny), lambda cpu, gpu: answers.same(cpu, gpu, MOST_LOGPROB))
        self.compare("likelihood", self.likelihood_of(tiny, ["--dtype", "f32", "--chunks", "1"]),
                     lambda cpu, gpu: abs(gpu / cpu - 1) < 0.001)
        if self.options.model:
            self.compare("likelihood-of-model", self.likelihood_of(self.options.model, ["--chunks", "8"]),
                         lambda cpu, gpu: abs(gpu / cpu - 1) < 0.02)

    def picture(self, name, device, variables):
        file = self.work / f"{name}.png"
        self.run(name, [self.program("rbee"), "imagine", "-m", ROOT / "models/tiny-emoji", "--seed", "1", "--device",
                        device, "-o", file, "a red apple"], 15, {**NO_LIBRARIES, **variables})
        if not file.exists():
            return None
        plain = picture.without_texts(file.read_bytes())
        (self.journal.folder / f"{name}.png").write_bytes(plain)
        return plain

    def pictures(self):
        def same(cpu, gpu):
            mean, most = picture.difference(cpu, gpu)
            self.journal.write("picture-difference", f"of 255: {mean:.3f} in the mean, {most} at most\n")
            return mean <= verdict.MOST_PICTURE_MEAN

        if self.has("pictures", "rbee"):
            self.compare("picture", self.picture, same)

    def bench(self):
        if not self.has("bench", "rbee"):
            return
        model, words = self.options.model, ["-c", "4096", "-p", "512", "2048", "-n", "128", "-r", "3"]
        if not model:
            model, words = self.tiny_model(), ["-p", "64", "-n", "32", "-r", "3"]
        for name, variables in (("bench", NO_LIBRARIES), ("bench-libraries", LIBRARIES),
                                ("bench-plain", {**NO_LIBRARIES, **NOT_CAPTURED})):
            self.run(name, [self.program("rbee"), "bench", "-m", model, "--device", self.card.device, *words], 30,
                     variables)

    def kernels(self):
        if "kernels" in self.skipped:
            return
        for program in KERNEL_BENCHES:
            if self.has(program, program):
                self.run(program, [self.program(program)], 20, NO_LIBRARIES)

    def profile(self):
        """Times of kernels, by the vendor's profiler. NVIDIA's takes captured steps for one kernel each. Apple's needs
        its own program."""
        profiler = shutil.which(PROFILERS.get(self.card.kind, ""))
        if not profiler or not self.has("profile", "rbee"):
            return
        bench = [self.program("rbee"), "bench", "-m", self.options.model or self.tiny_model(), "--device",
                 self.card.device, "-p", "64", "-n", "32", "-r", "1"]
        if self.card.kind == "cuda":
            self.run("profile", [profiler, *NCU_FLAGS, *bench], 15, NOT_CAPTURED)
            return
        folder = self.work / "profile"
        self.run("profile", [profiler, "--kernel-trace", "--stats", "-d", folder, "--", *bench], 15)
        for file in sorted(folder.rglob("*stats*.csv")):
            self.journal.write(f"profile-{file.stem[-40:]}", cards.read(file))

    def soak(self):
        worker = WORKERS[self.card.kind]
        if not self.options.model or not self.has("soak", worker):
            return
        minutes = self.options.soak_minutes
        self.run("soak", [sys.executable, ROOT / "tools/soak.py", "--worker", self.program(worker), "--model",
                          self.options.model, "--minutes", minutes, "--", f"--{self.card.kind}-device",
                          self.card.device.split(":")[1], "--context", "4096"], minutes + 10)

    def end(self):
        after = system.kernel_log()
        self.found.kernel_log = verdict.faults_of(self.log_before, after)
        self.journal.write("kernel-log-after", after)
        lines = verdict.summary(self.found)
        self.journal.write("summary", "\n".join(lines) + "\n")
        facts = {key: sorted(value) if isinstance(value, set) else value for key, value in vars(self.found).items()}
        self.journal.write("findings", json.dumps(facts, indent=1) + "\n")
        shutil.rmtree(self.work, ignore_errors=True)
        return lines


def check_all(checks):
    attempt(checks, "system")
    if not attempt(checks, "build"):
        checks.found.failing_steps.append("no program could be built")
        return
    attempt(checks, "devices")
    for step in STEPS if checks.found.opens else ():
        attempt(checks, step)


def attempt(checks, step):
    """The others begin whatever happens in one."""
    try:
        return getattr(checks, step)()
    except Exception:  # such as a picture that is none
        checks.journal.write(f"{step}-error", traceback.format_exc())
        checks.found.failing_steps.append(step)
        return False


def main(words):
    options = parse_arguments(words)
    card = cards.find_card(options.device)
    if not options.programs and card.kind:
        card.lacking = needs.missing_to_build(card, ROOT)
    no_model = [f"there is no {options.model}"] if options.model and not options.model.exists() else []
    for problem in [*card.problems, *card.lacking, *no_model]:
        print(f"missing: {problem}")
    for other in card.left_out:
        print(f"left out: {other}")
    no_programs = card.lacking and not shutil.which("rbee")
    if no_model or (not options.device and (card.problems or no_programs)):
        return 2
    out = options.out or Path(f"first-card-{'-'.join(card.targets) or card.kind}.tar.xz")
    with tempfile.TemporaryDirectory(prefix="first-card-") as folder:
        print(f"checks {card.device} {' '.join(card.targets)}")
        checks = Checks(options, card, runner.Journal(folder, scrub.of_this_machine(
            ROOT, options.model, folder, options.programs)))
        try:
            check_all(checks)
        except KeyboardInterrupt:
            checks.found.failing_steps.append("interrupted")
        lines = checks.end()
        checks.journal.pack(out)
    print("", *lines, f"file        {out}: read it, then send it with an issue", sep="\n")
    return 0 if lines[-1].endswith("no fault found") else 1


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
