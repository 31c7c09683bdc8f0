#!/usr/bin/env python3
"""The reader of code objects, the waves that registers and shared memory leave, and tools/kernel_resources.py with a
compiler that is a script. No GPU tools are needed; `ninja` is, as in every build."""
import contextlib
import io
import struct
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "tools")]

import kernel_resources
import metadata
import occupancy
from check_code_objects import Checker, Kernel


def packed(value):
    """MessagePack in the longest forms that metadata.py reads besides the shortest."""
    if isinstance(value, dict):
        return bytes([0x80 | len(value)]) + b"".join(packed(k) + packed(v) for k, v in value.items())
    if isinstance(value, list):
        return struct.pack(">BH", 0xDC, len(value)) + b"".join(map(packed, value))
    if isinstance(value, str):
        return (bytes([0xA0 | len(value)]) if len(value) < 32 else struct.pack(">BB", 0xD9, len(value))) + value.encode()
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    return bytes([value]) if 0 <= value < 128 else struct.pack(">Bi", 0xD2, value)


def elf_with(*notes):
    """An ELF64 file of one segment; `notes`: pairs of a type and a text."""
    body = b""
    for kind, text in notes:
        body += struct.pack("<III", 7, len(text), kind) + b"AMDGPU\0\0" + text + bytes(-len(text) % 4)
    header = b"\x7fELF" + bytes(28) + struct.pack("<QQ", 64, 0) + bytes(6) + struct.pack("<HH", 56, 1)
    header += bytes(64 - len(header))
    return header + struct.pack("<IIQQQQQQ", 4, 0, 120, 0, 0, len(body), 0, 4) + body


class Metadata(unittest.TestCase):
    KERNEL = {".name": "k", ".vgpr_count": 200, ".args": [{".offset": 0, ".size": -3}], ".uses_dynamic_stack": True,
              ".symbol": "a_name_of_more_than_thirty_one_letters.kd"}

    def test_of_the_note_among_others(self):
        text = packed({"amdhsa.kernels": [self.KERNEL]})
        self.assertEqual(metadata.kernels(elf_with((1, b"abc"), (metadata.METADATA_NOTE, text))), [self.KERNEL])

    def test_says_what_is_missing(self):
        for data, said in ((b"no object", "no ELF"), (elf_with((1, b"abc")), "no metadata"),
                           (elf_with((metadata.METADATA_NOTE, b"\xc1")), "0xc1 at byte 0")):
            with self.assertRaisesRegex(ValueError, said):
                metadata.kernels(data)


class Waves(unittest.TestCase):
    # Target, registers of a lane, scalar registers, waves: what clang 22.1.8 says of kernels of rope, gemm and
    # linear_plain by -Rpass-analysis=kernel-resource-usage.
    BY_COMPILER = [
        ("gfx908", 24, 56, 10), ("gfx908", 26, 56, 9), ("gfx908", 30, 56, 8), ("gfx908", 69, 43, 3),
        ("gfx942", 64, 36, 8), ("gfx942", 66, 36, 7), ("gfx942", 84, 43, 5),
        ("gfx1030", 64, 30, 16), ("gfx1030", 67, 30, 12), ("gfx1030", 85, 30, 10),
        ("gfx1100", 87, 30, 16), ("gfx1102", 66, 30, 12), ("gfx1102", 87, 30, 10), ("gfx1151", 87, 30, 16),
        ("gfx1201", 84, 30, 16)]

    def test_registers_leave_what_the_compiler_says(self):
        for target, vectors, scalars, waves in self.BY_COMPILER:
            self.assertEqual(occupancy.waves_by_registers(target, vectors, scalars), waves, (target, vectors))

    def test_scalars_limit_gfx9_alone(self):
        self.assertEqual(occupancy.waves_by_registers("gfx942", 24, 101), 7)
        self.assertEqual(occupancy.waves_by_registers("gfx1030", 24, 106), 16)

    def test_shared_memory_and_blocks_limit_them_too(self):
        # Two blocks of 32 KiB in 64 KiB, four in 128; each of four waves of 64 or eight of 32.
        self.assertEqual(occupancy.waves_of_simd("gfx942", 122, 64, 32 << 10, 256, 64), 2)
        self.assertEqual(occupancy.waves_of_simd("gfx1102", 24, 64, 32 << 10, 256, 32), 8)
        # 160 KiB hold four blocks of 32 KiB and 1 byte in granules of 1,280.
        self.assertEqual(occupancy.waves_of_simd("gfx950", 24, 64, (32 << 10) + 1, 256, 64), 4)
        # Sixteen blocks of two waves are eight waves of a SIMD, sixteen of one are not counted.
        self.assertEqual(occupancy.waves_of_simd("gfx908", 24, 56, 0, 128, 64), 8)
        self.assertEqual(occupancy.waves_of_simd("gfx908", 24, 56, 0, 64, 64), 10)
        # 188 registers leave eight waves of 32 of 1,536: 32 in a unit, four blocks of eight.
        self.assertEqual(occupancy.waves_of_simd("gfx1100", 188, 50, 0, 256, 32), 8)
        # Three waves of a SIMD are twelve of a unit, where one block of eight fits.
        self.assertEqual(occupancy.waves_of_simd("gfx1103", 256, 50, 0, 256, 32), 4)
        self.assertEqual(occupancy.waves_of_simd("gfx1103", 256, 50, 0, 1024, 32), 0)

    def test_unknown_targets_have_no_numbers(self):
        with self.assertRaisesRegex(ValueError, "gfx1250"):
            occupancy.waves_by_registers("gfx1250", 24, 24)


class Resources(unittest.TestCase):
    def test_targets_with_the_same_numbers_share_a_row(self):
        def kernel(target, name, registers):
            return Kernel("rope", target, name, registers, 0, 0, scalars=32, threads=256, lanes=32)

        kernels = [kernel(target, name, registers) for target in ("gfx1030", "gfx1031", "gfx1102")
                   for name, registers in (("a", 24), ("b", 72 if target == "gfx1102" else 67))]
        self.assertEqual(kernel_resources.table(kernels).splitlines()[2:], [
            "| `rope` | gfx1030, gfx1031 | 2 | 67 | 0 | 32 | 0, 0 | 0 | 0 | 256 | 12 to 16 |",
            "| `rope` | gfx1102 | 2 | 72 | 0 | 32 | 0, 0 | 0 | 0 | 256 | 12 to 16 |"])

    def test_scratch_of_a_hot_kernel_is_a_finding(self):
        checker = Checker()
        for family in ("gemm", "random"):
            checker.resources(Kernel(family, "gfx942", family, 24, 16, 0))
        self.assertEqual(checker.findings, ["gemm gfx942 gemm: 16 bytes of scratch, 0 are known"])

    def test_others_are_compiled_where_one_fails(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            clang = folder / "clang"
            clang.write_text('#!/bin/sh\nfor last; do :; done\ncase $last in *bad.cu) exit 1;; esac\n'
                             'while [ "$1" != -o ]; do shift; done\ncp "$last" "$2"\n')
            clang.chmod(0o755)
            families = {stem: folder / f"{stem}.cu" for stem in ("bad", "good")}
            for source in families.values():
                source.write_text(source.stem)
            compiler = kernel_resources.Compiler(str(clang), ["-x", "hip"], ["gfx942", "gfx1100"], "")
            with contextlib.redirect_stderr(io.StringIO()):
                done, failed = kernel_resources.compile_all(folder, compiler, families, 2)
            self.assertEqual([file.name for file in done], ["good.gfx942.co", "good.gfx1100.co"])
            self.assertEqual(failed, ["bad.gfx1100.co", "bad.gfx942.co"])
            self.assertEqual(done[0].read_text(), "good")


if __name__ == "__main__":
    unittest.main()
