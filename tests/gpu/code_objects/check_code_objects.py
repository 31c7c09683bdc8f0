#!/usr/bin/env python3
"""Checks the machine code of every GPU kernel that a build embeds: matrix and dot instructions where the target has
them, no scratch memory and no spilled registers in hot kernels, shared memory and registers within what the planned
occupancy leaves. `rules.py` holds the limits and the known exceptions.

    check_code_objects.py amd FOLDER       over FOLDER/*.co, by llvm-objdump
    check_code_objects.py nvidia FOLDER    over FOLDER/*.fatbin, by cuobjdump and nvdisasm: the CUDA toolkit's
                                           or those that tools/get_cuda_readers.sh fetched

Exit status: 0 all hold, 1 a finding (one line each), 77 the tools are not there.
"""
import fnmatch
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import metadata
import rules

SKIPPED = 77
LLVM_VERSIONS = (*(f"-{number}" for number in range(40, 18, -1)), "")  # 19 cannot read gfx950's code


@dataclass
class Kernel:
    family: str
    target: str
    name: str
    registers: int  # of a lane
    scratch: int  # bytes of a lane
    shared: int  # bytes of a block
    vector_spills: int = 0
    scalar_spills: int = 0
    # AMD's alone: accumulation registers, which `registers` holds too, scalar ones of a wave, threads of a block, at
    # most, and lanes of a wave.
    accumulators: int = 0
    scalars: int = 0
    threads: int = 0
    lanes: int = 0

    def place(self):
        return f"{self.family} {self.target} {self.name}"


def find_tool(*names, folders=()):
    for name in names:
        for folder in [None, *folders]:
            found = shutil.which(name, path=folder)
            if found:
                return found
    print(f"skipped: none of {', '.join(names)} is installed")
    sys.exit(SKIPPED)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read_amd(file):
    """The kernels of a code object, by its metadata."""
    family, target = file.name.removesuffix(".co").rsplit(".", 1)
    return [Kernel(family, target, fields[".name"], fields[".vgpr_count"], fields[".private_segment_fixed_size"],
                   fields[".group_segment_fixed_size"], fields[".vgpr_spill_count"], fields[".sgpr_spill_count"],
                   fields.get(".agpr_count", 0), fields[".sgpr_count"], fields[".max_flat_workgroup_size"],
                   fields[".wavefront_size"])
            for fields in metadata.kernels(file.read_bytes())]


def split_code(listing, pattern):
    """The text between lines that `pattern` matches, by its group."""
    parts = re.split(pattern, listing, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def read_nvidia(cuobjdump, file):
    family = file.name.removesuffix(".fatbin")
    kernels = []
    for target, text in split_targets(output_of(cuobjdump, "-res-usage", str(file))):
        for name, usage in re.findall(r"Function (\S+):\n(.*)", text):
            fields = {key: int(value) for key, value in re.findall(r"(\w+)(?:\[0\])?:(\d+)", usage)}
            kernels.append(Kernel(family, target, name, fields["REG"], fields["STACK"] + fields["LOCAL"],
                                  fields["SHARED"]))
    return kernels


def split_targets(text):
    """Pairs of a target and its text, of what cuobjdump prints for each image of a file."""
    parts = re.split(r"^arch = (sm_\w+)$", text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def matches(rule, kernel):
    """`rule`: patterns of the family, the target and the name; alternatives are separated by |."""
    places = (kernel.family, kernel.target, kernel.name)
    return all(any(fnmatch.fnmatchcase(place, one) for one in patterns.split("|"))
               for place, patterns in zip(places, rule))


class Checker:
    def __init__(self):
        self.findings = []
        self.used = set()  # exceptions that a kernel needed
        self.seen = set()  # exceptions that a kernel matched

    def resources(self, kernel):
        for *where, most in rules.MOST_SHARED:
            if matches(where, kernel) and kernel.shared > most:
                self.findings.append(f"{kernel.place()}: {kernel.shared} bytes of shared memory, {most} are planned")
        for *where, most in rules.MOST_REGISTERS:
            if matches(where, kernel) and kernel.registers > most:
                self.findings.append(f"{kernel.place()}: {kernel.registers} registers, {most} are planned")
        if not any(matches(where, kernel) for where in rules.HOT):
            return
        most_scratch, most_spills = 0, 0
        for index, (*where, scratch, spills) in enumerate(rules.EXCEPTIONS):
            if matches(where, kernel):
                most_scratch, most_spills = max(most_scratch, scratch), max(most_spills, spills)
                self.seen.add(index)
                if kernel.scratch or kernel.vector_spills:
                    self.used.add(index)
        if kernel.scratch > most_scratch:
            self.findings.append(f"{kernel.place()}: {kernel.scratch} bytes of scratch, {most_scratch} are known")
        if kernel.vector_spills > most_spills:
            self.findings.append(f"{kernel.place()}: {kernel.vector_spills} registers spilled, {most_spills} are known")
        # Scalar registers are spilled into lanes of vector registers: no memory, a few cycles.
        if kernel.scalar_spills > rules.MOST_SCALAR_SPILLS:
            self.findings.append(f"{kernel.place()}: {kernel.scalar_spills} scalar registers spilled")

    def instructions(self, kernels, code):
        """`code` maps a kernel's name to its disassembly."""
        for kernel in kernels:
            for *where, wanted in rules.INSTRUCTIONS:
                if matches(where, kernel) and not re.search(wanted, code.get(kernel.name, "")):
                    self.findings.append(f"{kernel.place()}: no {wanted}")
            for *where, unwanted in rules.NOT_IN:
                found = matches(where, kernel) and re.search(unwanted, code.get(kernel.name, ""))
                if found:
                    self.findings.append(f"{kernel.place()}: {found.group()}")

    def print_unneeded(self):
        for index in sorted(self.seen - self.used):
            print(f"note: the exception {rules.EXCEPTIONS[index]} is not needed here")


def needs_code(kernels):
    return any(matches(where, kernel) for kernel in kernels for *where, _ in rules.INSTRUCTIONS + rules.NOT_IN)


def check_amd(folder, checker):
    objdump = find_tool(*(f"llvm-objdump{version}" for version in LLVM_VERSIONS))
    count = 0
    for file in sorted(folder.glob("*.co")):
        kernels = read_amd(file)
        count += len(kernels)
        for kernel in kernels:
            checker.resources(kernel)
        if needs_code(kernels):
            listing = output_of(objdump, "-d", "--no-show-raw-insn", "--no-leading-addr", str(file))
            checker.instructions(kernels, split_code(listing, r"^<(\w+)>:$"))
    return count


def check_nvidia(folder, checker):
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    fetched = (cache / "rbee/cuda-readers").glob("nvidia/*/bin")
    cuobjdump = find_tool("cuobjdump", folders=["/usr/local/cuda/bin", *fetched])
    count = 0
    for file in sorted(folder.glob("*.fatbin")):
        kernels = read_nvidia(cuobjdump, file)
        count += len(kernels)
        for kernel in kernels:
            checker.resources(kernel)
        if not needs_code(kernels):
            continue
        for target, listing in split_targets(output_of(cuobjdump, "-sass", str(file))):
            code = split_code(listing, r"^\s*Function : (\S+)$")
            checker.instructions([k for k in kernels if k.target == target], code)
    return count


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("amd", "nvidia"):
        print(__doc__, file=sys.stderr)
        return 2
    checker = Checker()
    count = (check_amd if sys.argv[1] == "amd" else check_nvidia)(Path(sys.argv[2]), checker)
    if count == 0:
        print(f"{sys.argv[2]} holds no kernels")
        return 1
    checker.print_unneeded()
    print("\n".join(checker.findings))
    print(f"{count} kernels, {len(checker.findings)} findings")
    return 1 if checker.findings else 0


if __name__ == "__main__":
    sys.exit(main())
