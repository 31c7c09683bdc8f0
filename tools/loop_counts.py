#!/usr/bin/env python3
"""Counts the instructions of the inner loops of product kernels in object files, for processors that cannot be timed
here, and asks llvm-mca's model of one how many cycles a round takes. A loop is what a branch goes back over without
another such branch inside. Example:
  loop_counts.py --match 'run_tile<.*Q4_0, 4>' --cpu neoverse-v2 build/arm64-cross/.../linear_q4_dotprod.cc.o"""

import argparse
import re
import subprocess
import sys

# Multiplications and additions of one instruction, by vector's width in bytes.
PRODUCTS = {"smlal": 8, "smlal2": 8, "smull": 8, "smull2": 8, "sdot": 16, "smmla": 32, "fmla": 4, "bfmmla": 16, "bfdot": 8}
OF_BYTES = ("smlal", "smlal2", "smull", "smull2", "sdot", "smmla", "vpmaddubsw", "vpdpbusd")
PRODUCTS_X86 = {"vpmaddubsw": 1, "vpdpbusd": 1, "vfmadd231ps": 1 / 4, "vfmadd132ps": 1 / 4, "vfmadd213ps": 1 / 4,
                "vdpbf16ps": 1 / 2}
WIDTH = {"x": 16, "y": 32, "z": 64}
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(?:\{vex\} )?(\S+)\s*(.*)$")


def functions(path):
    """Pairs of a demangled name and its list of (address, opcode, operands)."""
    with open(path, "rb") as file:
        arm = file.read(20)[18] == 183  # ELF's e_machine
    tool = "aarch64-linux-gnu-objdump" if arm else "objdump"
    text = subprocess.run([tool, "-d", "-C", "--no-show-raw-insn", path], capture_output=True, text=True,
                          check=True).stdout
    name, lines = None, []
    for line in text.split("\n"):
        if head := re.match(r"^[0-9a-f]+ <(.*)>:$", line):
            if name:
                yield arm, name, lines
            name, lines = head[1], []
        elif found := LINE.match(line):
            lines.append((int(found[1], 16), found[2], found[3].split("//")[0].strip()))
    if name:
        yield arm, name, lines


def inner_loops(lines):
    spans = []
    for address, opcode, operands in lines:
        target = re.search(r"\b([0-9a-f]+) <", operands)
        if re.match(r"^(b\.|cbn?z|tbn?z|j)", opcode) and target and int(target[1], 16) <= address:
            spans.append((int(target[1], 16), address))
    for first, last in spans:
        inside = any(first <= other and end <= last and (other, end) != (first, last) for other, end in spans)
        if not inside:
            yield [line for line in lines if first <= line[0] <= last]


def macs_of(arm, opcode, operands):
    if arm:
        return PRODUCTS.get(opcode, 0)
    register = re.search(r"%([xyz])mm", operands)
    return PRODUCTS_X86.get(opcode, 0) * WIDTH[register[1]] if register else 0


def kind_of(arm, opcode, operands):
    if macs_of(arm, opcode, operands):
        return "products"
    if not arm and opcode.startswith("vmov") and re.match(r"-?(0x)?[0-9a-f]*\(", operands):
        return "loads"
    if arm and opcode in ("ldr", "ldp", "ld1", "ld1r", "ldur", "ldrb", "ldrh", "ldrsw", "prfm", "prfum"):
        return "loads"
    if arm and opcode in ("str", "stp", "stur", "st1"):
        return "stores"
    if re.search(r"\b[vqds]\d+\b" if arm else r"%[xyz]mm", operands):
        return "vector"
    return "others"


def cycles_of(loop, cpu):
    """A round's cycles by llvm-mca, as issue limits alone would have it and as simulated."""
    text = "\n".join(f"{opcode} {re.sub(r'<.*>|[0-9a-f]+ <.*', '', operands)}" for _, opcode, operands in loop[:-1])
    run = subprocess.run(["llvm-mca-19", "-mtriple=aarch64", f"-mcpu={cpu}", "-mattr=+dotprod,+i8mm,+bf16,+fullfp16",
                          "-iterations=100", "-skip-unsupported-instructions=any"],
                         input=text, capture_output=True, text=True, check=False)
    limit = re.search(r"Block RThroughput:\s*([\d.]+)", run.stdout)
    total = re.search(r"Total Cycles:\s*(\d+)", run.stdout)
    if not limit or not total:
        sys.exit(run.stderr)
    return float(limit[1]), int(total[1]) / 100


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("objects", nargs="+")
    parser.add_argument("--match", default=".", help="a regular expression of functions' names")
    parser.add_argument("--cpu", help="of llvm-mca, e.g. neoverse-v2; arm64 only")
    options = parser.parse_args()
    kinds = ("products", "vector", "loads", "stores", "others")
    print("| loop | MACs | instructions | " + " | ".join(kinds) + " | MACs an instruction | cycles: limit, simulated |")
    print("|---|" + "---|" * (len(kinds) + 4))
    for path in options.objects:
        for arm, name, lines in functions(path):
            if not re.search(options.match, name):
                continue
            for loop in inner_loops(lines):
                # Where bytes are multiplied, floats only scale the sums.
                bytes_too = any(opcode in OF_BYTES for _, opcode, _ in loop)
                macs = 0
                counts = {kind: 0 for kind in kinds}
                for _, opcode, operands in loop:
                    kind = kind_of(arm, opcode, operands)
                    if kind == "products" and bytes_too and opcode not in OF_BYTES:
                        kind = "vector"
                    counts[kind] += 1
                    macs += macs_of(arm, opcode, operands) if kind == "products" else 0
                if not macs:
                    continue
                cycles = "%.1f, %.1f" % cycles_of(loop, options.cpu) if options.cpu and arm else "-"
                short = re.sub(r"\(anonymous namespace\)::|\(.*", "", name.replace("void ", ""))
                print(f"| {short} | {macs:.0f} | {len(loop)} | " + " | ".join(str(counts[kind]) for kind in kinds) +
                      f" | {macs / len(loop):.1f} | {cycles} |")


if __name__ == "__main__":
    main()
