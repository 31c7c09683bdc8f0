"""Cases of all operations on emulated processors, widest first: one case of every operation, implementation and set
of types, then a second of each, and so on, the cheap ones before the dear. Every result is written as it comes, and
what is written of the same program is not run again. Cases run in a process of their own, which may crash, hang or be
left without end.
"""
import hashlib
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from amd_emulator import table

SCRIPT = Path(__file__).resolve().parent.parent / "emulate_amd.py"
LEAST_BYTES = 64  # less: a case of no elements, after the others
SECONDS_TO_START = 600
PROGRAM = ("tools/opcheck/librbee_opcheck_emulated.so", "tests/gpu/fake/librbee_fake_hip.so")
RESULT = re.compile(r"^\s*\S+\s+(ok|FAIL)\s+absolute \S+\s+relative \S+\s+of allowed (\S+)", re.MULTILINE)


def digest_of(build):
    """A name for a build's results: it covers the host code, its code objects, and the runtime below."""
    return hashlib.sha256(b"".join((build / file).read_bytes() for file in PROGRAM)).hexdigest()[:16]


@dataclass(frozen=True)
class Case:
    op: str
    number: int
    name: str
    implementation: str
    types: str
    bytes: float
    cost: float

    def key(self):
        return (self.op, self.name, self.implementation)


def parse_costs(op, text):
    """The lines of `opcheck OP --list --costs`; `ref` is the CPU's and hipBLASLt is not emulated."""
    cases = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 6:
            continue
        number, bytes_, operations, types, takers, name = fields
        for implementation in takers.split():
            cases.append(Case(op, int(number), name, implementation, types, float(bytes_),
                              float(bytes_) + float(operations) / 4))
    return cases


def in_order(cases, most_bytes, rounds):
    """Round-robin over operations, implementations and types; `rounds`: of each, 0 for all."""
    groups = defaultdict(list)
    for case in cases:
        if case.bytes <= most_bytes:
            groups[case.op, case.implementation, case.types].append(case)
    turns = defaultdict(list)
    for group in groups.values():
        group.sort(key=lambda case: (case.bytes < LEAST_BYTES, case.cost, case.number))
        for turn, case in enumerate(group[:rounds or None]):
            turns[turn].append(case)
    for turn in sorted(turns):
        yield from sorted(turns[turn], key=lambda case: case.cost)


class Worker:
    """A process that runs cases for this one; see serve()."""

    def __init__(self, arguments):
        self._process = subprocess.Popen([sys.executable, str(SCRIPT), "--serve", *arguments],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask({}, SECONDS_TO_START)

    def ask(self, request, seconds):
        """The answer, or the text `crash` or `timeout`; after one of these the worker is gone."""
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            ready, _, _ = select.select([self._process.stdout], [], [], seconds)
            line = self._process.stdout.readline() if ready else None
        except BrokenPipeError:
            line = b""
        if line:
            return json.loads(line)
        self.end()
        return "timeout" if line is None else "crash"

    def end(self):
        self._process.kill()
        self._process.wait()


def serve(session):
    """Runs opcheck with each line's arguments, and answers with its exit status and output."""
    answers = os.fdopen(os.dup(1), "w")
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 1)
        for line in sys.stdin:
            printed.seek(0)
            printed.truncate()
            words = json.loads(line).get("words")
            status = session.opcheck(words) if words else 0
            sys.stdout.flush()
            printed.seek(0)
            answers.write(json.dumps({"status": status, "text": printed.read().decode(errors="replace")}) + "\n")
            answers.flush()


def judge(answer):
    """A verdict, the error as a share of the allowed, and the output if it is not ok."""
    if isinstance(answer, str):
        return answer, None, ""
    found = RESULT.search(answer["text"])
    error = float(found.group(2)) if found else None
    if answer["status"] == 0 and found and found.group(1) == "ok":
        return "ok", error, ""
    return ("differs" if found and "the emulator failed" not in answer["text"] else "failed"), error, answer["text"]


class Sweep:
    """Of one architecture; `results`: a file with a line of JSON for each case; `program`: digest_of() the build."""

    def __init__(self, arch, program, worker_arguments, results, options):
        self._arch = arch
        self._program = program
        self._arguments = ["--arch", arch, *worker_arguments]
        self._results = results
        self._options = options
        self._thread = threading.local()  # each has a worker of its own
        self._workers = []
        self._writing = threading.Lock()
        self._done = {(row["op"], row["name"], row["implementation"])
                      for row in table.read_results(results, program)
                      if row["arch"] == arch and not (options.again and row["verdict"] != "ok")}

    def _ask(self, words, seconds):
        if getattr(self._thread, "worker", None) is None:
            self._thread.worker = Worker(self._arguments)
            self._workers.append(self._thread.worker)
        answer = self._thread.worker.ask({"words": words}, seconds)
        if isinstance(answer, str):
            self._thread.worker = None
        return answer

    def _listed(self, *words):
        answer = self._ask(words, SECONDS_TO_START)
        if isinstance(answer, str):
            raise RuntimeError(f"opcheck {' '.join(words)}: {answer}")
        return answer["text"]

    def _cases(self):
        names = [line.split()[0] for line in self._listed("--list").splitlines() if line.split()]
        wanted = self._options.ops.split(",") if self._options.ops else names
        if unknown := [op for op in wanted if op not in names]:
            raise RuntimeError(f"opcheck --list names no operation {', '.join(unknown)}")
        cases = []
        for op in wanted:
            cases += [case for case in parse_costs(op, self._listed(op, "--list", "--costs"))
                      if not self._options.impl or case.implementation == self._options.impl]
        if not cases:
            raise RuntimeError("opcheck --list has no case of these")
        return cases

    def run(self):
        """How many cases did not pass."""
        end = time.monotonic() + self._options.seconds if self._options.seconds else float("inf")
        cases = [case for case in in_order(self._cases(), self._options.most_bytes, self._options.rounds)
                 if case.key() not in self._done]
        with ThreadPoolExecutor(self._options.jobs) as pool:
            passed = list(pool.map(lambda case: time.monotonic() > end or self._run_case(case) == "ok", cases))
        for worker in self._workers:
            worker.end()
        return passed.count(False)

    def _run_case(self, case):
        begin = time.monotonic()
        answer = self._ask([case.op, "--case", str(case.number), "--impl", case.implementation],
                           self._options.case_seconds)
        verdict, error, text = judge(answer)
        row = {"program": self._program, "arch": self._arch, "op": case.op, "name": case.name, "implementation": case.implementation,
               "types": case.types, "verdict": verdict, "error": error,
               "seconds": round(time.monotonic() - begin, 2)}
        with self._writing:
            with open(self._results, "a") as file:
                file.write(json.dumps(row) + "\n")
            if verdict != "ok":
                print(f"{self._arch} {case.op} {case.number} {case.implementation}: {case.name}: {verdict}\n{text}",
                      flush=True)
        worker = getattr(self._thread, "worker", None)
        if verdict == "failed" and worker is not None:  # its device is lost
            worker.end()
            self._thread.worker = None
        return verdict
