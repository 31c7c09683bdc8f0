#!/usr/bin/env python3
"""Runs the operations' case tables on AMD machine code without an AMD GPU.

The ROCm backend opens a fake HIP runtime (tests/gpu/fake) whose kernel launches are executed by tinygrad's
instruction-level emulator (github.com/tinygrad/tinygrad, test/mockgpu/amd; MIT), and every result is compared with the
CPU's reference. So one run covers the host code, the kernels' names and parameters, and the machine code.

    cmake --preset rocm -DRBEE_TESTS=ON "-DRBEE_ROCM_ARCHS=gfx90a;gfx942;gfx950;gfx1100;gfx1201"
    cmake --build --preset rocm --target rbee_opcheck_emulated rbee_emulated rbee_fake_hip
    tools/emulate_amd.py --tinygrad DIR [--arch gfx942,gfx1100] [--rounds 2]    cases of every operation
    tools/emulate_amd.py --tinygrad DIR --arch gfx942 -- softmax --case 3       opcheck's arguments instead
    tools/emulate_amd.py --tinygrad DIR --arch gfx942 --rbee -- run -m MODEL --device rocm:0 "..."    rbee's command
    tools/emulate_amd.py --tinygrad DIR --arch gfx942,gfx1100 --model MODEL [--tokens 16]    beside the CPU, token by token
        [--lora ADAPTER] [--image FILE]      with an adapter, or of a chat with a picture
        -- --gpu-layers 2                    with more arguments of rbee
    tools/emulate_amd.py --tinygrad DIR --arch gfx942,gfx1100 --model MODEL --embed    vectors of three texts
    tools/emulate_amd.py --tinygrad DIR --arch gfx942 --first-card -- --operations softmax    tools/first_card.sh, and its arguments
    tools/emulate_amd.py --table                                                the results so far

A sweep appends its results to --results and can be interrupted: what is there of the same program is not run again.
After a rebuild that changed it, results begin anew, in the table too. Emulated: gfx90a, gfx942
and gfx950 (CDNA), gfx1100 (RDNA 3), gfx1201 (RDNA 4). Without --tinygrad, or TINYGRAD_DIR, it says so and exits 0. A
mismatch can be the emulator's: look at the disassembly first; amd_emulator/mends.py has those found so far.
"""
import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARCHS = "gfx90a,gfx942,gfx950,gfx1100,gfx1201"


def parse_arguments():
    parser = argparse.ArgumentParser(description="Runs the operations' cases on emulated AMD code.")
    parser.add_argument("--tinygrad", default=os.environ.get("TINYGRAD_DIR"), help="a checkout of tinygrad")
    parser.add_argument("--arch", default=ARCHS, help="targets, with commas between them")
    parser.add_argument("--build", default="build/rocm", help="a build with RBEE_ROCM and tests")
    parser.add_argument("--results", type=Path, help="a file of lines of JSON; emulated.jsonl in the build")
    parser.add_argument("--ops", default="", help="operations, with commas between them; all")
    parser.add_argument("--impl", default="", help="one implementation")
    parser.add_argument("--rounds", type=int, default=0, help="cases of an implementation and set of types; all")
    parser.add_argument("--most-bytes", type=float, default=1 << 20, help="leave out cases with larger operands")
    parser.add_argument("--case-seconds", type=float, default=120, help="most time of a case")
    parser.add_argument("--seconds", type=float, default=0, help="time of a target's sweep; no limit")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="cases at once, each in a process of its own")
    parser.add_argument("--again", action="store_true", help="run what did not pass again")
    parser.add_argument("--blocks-at-once", type=int, default=1, help="blocks that run mixed at random; 1 = in order")
    parser.add_argument("--seed", type=int, default=0, help="of that chance")
    parser.add_argument("--table", action="store_true", help="print the results")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)  # see amd_emulator/sweep.py
    parser.add_argument("--rbee", action="store_true", help="the arguments are those of rbee (target rbee_emulated)")
    parser.add_argument("--first-card", action="store_true", help="the arguments are those of tools/first_card.sh")
    parser.add_argument("--model", type=Path, help="compare its tokens and log probabilities with the CPU's")
    parser.add_argument("--tokens", type=int, default=16, help="with --model: generated")
    parser.add_argument("--lora", type=Path, action="append", default=[], help="with --model: an adapter")
    parser.add_argument("--image", type=Path, help="with --model: a picture that a chat begins with")
    parser.add_argument("--embed", action="store_true", help="with --model: vectors of texts instead")
    parser.add_argument("words", nargs="*", help="arguments of opcheck, or of rbee, instead of a sweep; with --model more of them")
    return parser.parse_args()


def main():
    options = parse_arguments()
    build = (ROOT / options.build).resolve()
    results = options.results or build / "emulated.jsonl"
    from amd_emulator import models, programs, sweep, table
    if options.table:
        print(table.markdown(table.read_results(results, sweep.digest_of(build))))
        return 0
    if not options.tinygrad:
        print("skipped: no emulator; --tinygrad names a checkout of github.com/tinygrad/tinygrad")
        return 0
    tinygrad = Path(options.tinygrad).resolve()
    archs = options.arch.split(",")
    if options.first_card:
        return programs.first_card(tinygrad, archs[0], build, options.words)
    if options.model:
        return 1 if models.compare(tinygrad, build, archs, options) else 0
    if options.serve or options.words:
        from amd_emulator.session import Session
        session = Session(tinygrad, archs[0], build, build / "emulator", options.blocks_at_once, options.seed)
        if options.serve:
            return sweep.serve(session)
        return session.rbee(options.words) if options.rbee else session.opcheck(options.words)
    arguments = ["--tinygrad", str(tinygrad), "--build", str(build),
                 "--blocks-at-once", str(options.blocks_at_once), "--seed", str(options.seed)]
    program = sweep.digest_of(build)
    return 1 if sum(sweep.Sweep(arch, program, arguments, results, options).run() for arch in archs) else 0


if __name__ == "__main__":
    sys.exit(main())
