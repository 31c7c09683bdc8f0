#!/usr/bin/env python3
"""Prints the kernels of a family as Metal Shading Language.

    clang++ -x hip --offload-arch=gfx1100 -DRBEE_METAL ... -emit-llvm -S kernels/softmax.cu -o softmax.ll
    opt -S -passes=... softmax.ll -o softmax.flat.ll    # cmake/rbee_kernels.cmake has all flags
    python3 tools/metal/print.py softmax.flat.ll --preamble backends/metal/preamble.metal -o softmax.metal

The text: a head (preamble and tables), then one function a kernel behind a line `// kernel NAME threads N shared BYTES`.
Head and one kernel make a library. Kernels that share more than 32 KiB, which no Apple GPU has, are left out, and a comment
names them. Ends with 1 at the first instruction that it does not know."""
import argparse
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from ir import Module, Unsupported
from text import Writer

MOST_SHARED = 32768


def table_text(number, data):
    data += bytes(-len(data) % 16)
    words = [int.from_bytes(data[i:i + 4], "little") for i in range(0, len(data), 4)]
    rows = (f"uint4({', '.join(f'{w}u' for w in words[i:i + 4])})" for i in range(0, len(words), 4))
    return f"constant uint4 rb_table{number}[] = {{{', '.join(rows)}}};\n"


def family_text(ir, preamble):
    module = Module(ir)
    parts = [preamble]
    parts += [table_text(i, data) for i, data in enumerate(module.tables.values())]
    for kernel in module.kernels:
        try:
            writer = Writer(module, kernel)
            text = writer.text()
        except Unsupported as error:
            raise Unsupported(f"kernel {kernel.name}: {error}") from error
        fits = writer.shared <= MOST_SHARED
        parts.append(text if fits else f"// left out: {kernel.name} shared {writer.shared}\n")
    return "\n".join(parts)


def run(arguments):
    preamble = Path(arguments.preamble).read_text(encoding="utf-8")
    try:
        text = family_text(Path(arguments.ir).read_text(encoding="utf-8"), preamble)
    except Unsupported as error:
        print(f"{arguments.ir}: {error}", file=sys.stderr)
        return 1
    Path(arguments.output).write_text(text, encoding="utf-8")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ir", help="structurised LLVM IR as text")
    parser.add_argument("--preamble", required=True, help="the text in front of the kernels")
    parser.add_argument("-o", "--output", required=True)
    arguments = parser.parse_args()
    # Ifs nest as deep as a kernel's do: more than Python's own stack holds.
    sys.setrecursionlimit(100000)
    threading.stack_size(256 << 20)
    status = []
    thread = threading.Thread(target=lambda: status.append(run(arguments)))
    thread.start()
    thread.join()
    return status[0] if status else 1


if __name__ == "__main__":
    sys.exit(main())
