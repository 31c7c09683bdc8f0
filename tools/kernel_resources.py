#!/usr/bin/env python3
"""Compiles the families of GPU kernels for AMD's targets at full optimisation and prints what each uses: registers,
spills, scratch and shared memory, threads of a block, and the waves that a SIMD holds of it.

    tools/kernel_resources.py -j 16 --check --json resources.json     everything, which takes hours of processor time
    tools/kernel_resources.py --families gemm,rope --targets gfx942   parts of it
    tools/kernel_resources.py -j 16 --page docs/reference/kernel-resources.md

It needs clang and lld of 19 or later, cmake, ninja and Python. What is compiled already stays in --build and is not
compiled again. A family that a target does not take is told at the end while the others go on. `--check` holds every
kernel to tests/gpu/code_objects/rules.py: hot ones use no scratch memory and spill no vector registers, and none takes
more than its planned shared memory and registers.

Exit status: 0 all compiled (and hold), 1 a family failed or a rule is broken, 2 the command is wrong.
"""
import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/gpu/code_objects"))

from check_code_objects import Checker, read_amd
from occupancy import waves_of_simd

BEGIN, END = "<!-- generated: tools/kernel_resources.py -->", "<!-- end of what is generated -->"
HEAD = ("| family | target | kernels | VGPR | of them AGPR | SGPR | spilled VGPR, SGPR | scratch | LDS | threads | "
        "waves of a SIMD |\n|---|---|---|---|---|---|---|---|---|---|---|")
# Asks the build's own files for the compiler, its flags and the targets that it knows.
QUESTION = """
cmake_minimum_required(VERSION 3.25)
set(PROJECT_BINARY_DIR "{folder}")
include("{root}/cmake/rbee_kernels.cmake")
rbee_find_hip_clang()
rbee_hip_targets(targets)
execute_process(COMMAND "${{RBEE_HIP_CLANG}}" --version OUTPUT_VARIABLE version)
string(REGEX MATCH "clang version [0-9.]+" version "${{version}}")
foreach(name IN ITEMS RBEE_HIP_CLANG RBEE_HIP_FLAGS targets version)
  message("answer ${{name}}=${{${{name}}}}")
endforeach()
"""
RULE = """
rule kernels
  command = {clang} {flags} --offload-arch=$target -I {root} -MD -MF $out.d -Xclang -dependency-file -Xclang $out.d $
    -Xclang -MT -Xclang $out -Wno-unused-command-line-argument -o $out $in
  depfile = $out.d
  description = $family for $target

"""


@dataclasses.dataclass
class Compiler:
    clang: str
    flags: list
    targets: list
    version: str


def parse_arguments():
    parser = argparse.ArgumentParser(description="Compiles AMD's kernels and tells the resources of each.")
    parser.add_argument("--families", default="", help=".cu files without their ending, with commas between them; all")
    parser.add_argument("--targets", default="all", help="such as gfx942,gfx1100; all that the compiler knows")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), help="compilers at once; processors")
    parser.add_argument("--build", type=Path, default=ROOT / "build/kernel_resources", help="where code objects lie")
    parser.add_argument("--clang", default="", help="the clang++; the newest there is")
    parser.add_argument("--check", action="store_true", help="hold the kernels to tests/gpu/code_objects/rules.py")
    parser.add_argument("--json", type=Path, help="write every kernel's numbers to this file")
    parser.add_argument("--page", type=Path, help="put the table into this document instead of printing it")
    return parser.parse_args()


def ask_cmake(folder, targets, clang):
    """Ends the program where cmake has an error."""
    (folder / "CMakeFiles").mkdir(parents=True, exist_ok=True)
    script = folder / "question.cmake"
    script.write_text(QUESTION.format(folder=folder, root=ROOT))
    words = [f"-DRBEE_ROCM_ARCHS={targets.replace(',', ';')}", *([f"-DRBEE_HIP_CLANG={clang}"] if clang else [])]
    told = subprocess.run(["cmake", *words, "-P", str(script)], capture_output=True, text=True)
    if told.returncode != 0:
        print(told.stderr.strip(), file=sys.stderr)
        sys.exit(2)
    print(told.stdout, end="", file=sys.stderr)  # the compiler, and its unknown targets
    answers = dict(re.findall(r"^answer (\w+)=(.*)$", told.stderr, flags=re.M))
    return Compiler(answers["RBEE_HIP_CLANG"], answers["RBEE_HIP_FLAGS"].split(";"), answers["targets"].split(";"),
                    answers["version"])


def find_families(names):
    """The .cu files of the families; ends the program where there is none of a name."""
    files = {file.stem: file for folder in ("gpu", "rocm") for file in (ROOT / "backends" / folder).glob("kernels/*.cu")}
    chosen = [name for name in names.split(",") if name] or sorted(files)
    unknown = [name for name in chosen if name not in files]
    if unknown:
        print(f"no such families: {', '.join(unknown)}; there are {', '.join(sorted(files))}", file=sys.stderr)
        sys.exit(2)
    return {name: files[name] for name in chosen}


def compile_all(folder, compiler, families, jobs):
    """The code objects that are there afterwards, and the names of those that failed."""
    text = RULE.format(clang=compiler.clang, flags=" ".join(compiler.flags), root=ROOT)
    objects = []
    for target in compiler.targets:
        for family, source in families.items():
            objects.append(f"{family}.{target}.co")
            text += f"build {objects[-1]}: kernels {source}\n  target = {target}\n  family = {family}\n"
    (folder / "build.ninja").write_text(text)
    ninja = subprocess.Popen(["ninja", "-C", str(folder), "-k", "0", "-j", str(jobs)], stdout=subprocess.PIPE,
                             text=True)
    failed = set()
    for line in ninja.stdout:
        found = re.match(r"FAILED: (?:\[.*\] )?(\S+\.co)", line)
        if found:
            failed.add(found.group(1))
        print(line, end="", file=sys.stderr)
    status = ninja.wait()
    missing = {name for name in objects if not (folder / name).exists()}
    if status != 0 and not failed | missing:
        print(f"ninja ended with {status}", file=sys.stderr)
        sys.exit(1)
    return [folder / name for name in objects if name not in failed | missing], sorted(failed | missing)


def waves(kernel):
    return waves_of_simd(kernel.target, kernel.registers, kernel.scalars, kernel.shared, kernel.threads, kernel.lanes)


def number(value):
    return f"{value:g}"


def cells(kernels):
    """A family's numbers on a target: the most of any of its kernels, and the fewest and the most waves."""
    most = {field: max(getattr(kernel, field) for kernel in kernels)
            for field in ("registers", "accumulators", "scalars", "vector_spills", "scalar_spills", "scratch", "shared",
                          "threads")}
    low, high = (number(limit(waves(kernel) for kernel in kernels)) for limit in (min, max))
    return (f"{len(kernels)} | {most['registers']} | {most['accumulators']} | {most['scalars']} | "
            f"{most['vector_spills']}, {most['scalar_spills']} | {most['scratch']} | {most['shared']} | "
            f"{most['threads']} | {low if low == high else f'{low} to {high}'}")


def table(kernels):
    """Targets with equal numbers for a family share a row."""
    groups = defaultdict(list)
    for kernel in kernels:
        groups[kernel.family, kernel.target].append(kernel)
    rows = defaultdict(list)
    for (family, target), group in groups.items():
        rows[family, cells(group)].append(target)
    lines = [f"| `{family}` | {', '.join(targets)} | {text} |"
             for (family, text), targets in sorted(rows.items(), key=lambda row: row[0][0])]
    return "\n".join([HEAD, *lines])


def facts(compiler, kernels, failed):
    """A sentence on the source of the numbers."""
    try:
        told = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        commit = told.stdout.strip() or "no commit"
    except FileNotFoundError:  # a machine without git
        commit = "no commit"
    families, targets = ({getattr(kernel, field) for kernel in kernels} for field in ("family", "target"))
    text = (f"{date.today()}, sources of {commit}, {compiler.version}: {len(kernels)} "
            f"kernels, {len(families)} families on {len(targets)} targets")
    return f"{text}; not compiled: {', '.join(failed)}." if failed else f"{text}."


def write_page(page, text):
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + BEGIN + "\n\n" + text + "\n\n" + END + rest.split(END)[1])


def main():
    options = parse_arguments()
    if options.page and not (options.page.exists() and BEGIN in options.page.read_text()):
        print(f"{options.page} has no line {BEGIN}", file=sys.stderr)
        return 2
    families = find_families(options.families)
    folder = options.build.resolve()
    compiler = ask_cmake(folder, options.targets, options.clang)
    objects, failed = compile_all(folder, compiler, families, options.jobs)
    kernels = [kernel for file in objects for kernel in read_amd(file)]
    if options.json:
        rows = [{**dataclasses.asdict(kernel), "waves_per_simd": waves(kernel)} for kernel in kernels]
        options.json.write_text(json.dumps({"compiler": compiler.version, "flags": compiler.flags, "failed": failed,
                                            "kernels": rows}, indent=1) + "\n")
    text = facts(compiler, kernels, failed) + "\n\n" + table(kernels)
    if options.page:
        write_page(options.page, text)
    else:
        print(text)
    checker = Checker()
    for kernel in kernels if options.check else []:
        checker.resources(kernel)
    for line in [*checker.findings, *(f"not compiled: {name}" for name in failed)]:
        print(line)
    return 1 if checker.findings or failed else 0


if __name__ == "__main__":
    sys.exit(main())
