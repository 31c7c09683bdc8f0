#!/usr/bin/env python3
"""Runs the operations' case tables on AMD machine code without an AMD GPU.

The ROCm backend opens a fake HIP runtime (tests/gpu/fake) whose kernel launches are executed by tinygrad's
instruction-level emulator (github.com/tinygrad/tinygrad, test/mockgpu/amd; MIT), and every result is compared with the
CPU's reference. So one run covers the host code, the kernels' names and parameters, and the machine code.

    tools/emulate_amd.py --tinygrad DIR [--arch gfx942] [--build build/rocm] [-- opcheck's arguments]

By default: all operations, cases of at most 64 KiB, one row each. Emulated: gfx942 (CDNA 3), gfx90a less its matrix
instructions, gfx1100 (RDNA 3), gfx1201 (RDNA 4). Without --tinygrad, or TINYGRAD_DIR, it says so and exits 0. A
mismatch can be the emulator's: look at the disassembly first. About a million lane instructions a second.
"""
import argparse
import ctypes
import importlib.util
import mmap
import os
import struct
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


HOOK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, Dim3, ctypes.c_uint32, ctypes.c_uint32,
                        ctypes.c_void_p, ctypes.c_uint32)


def load_emulator(folder):
    """tinygrad's run_asm. Its LDS is widened to 4 GiB of untouched pages: lanes that are switched off compute LDS
    addresses too, and the emulator reads there. CDNA's atomics name sc0 what the others' name glc: to return what was
    there."""
    sys.path.insert(0, str(folder))
    path = folder / "test/mockgpu/amd/emu.py"
    source = path.read_text().replace("max(lds_size // 4, 1), dtypes.uint32)", "1 << 30, dtypes.uint32)")
    source = source.replace("self._saved | ftz_bits", "self._saved")
    source = source.replace("_iattr(inst, 'glc')", "(_iattr(inst, 'glc') or _iattr(inst, 'sc0'))")
    spec = importlib.util.spec_from_loader("test.mockgpu.amd.emu", loader=None, origin=str(path))
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    sys.modules[spec.name] = module
    exec(compile(source, str(path), "exec"), module.__dict__)
    # The emulator widens signed 24-bit numbers to 64 bits without their sign.
    module._pcode_fixes["V_MUL_HI_I32_I24"] = ("64'I(S0.i24) * 64'I(S1.i24)",
                                               "64'I(32'I(S0.i24)) * 64'I(32'I(S1.i24))")
    return module.run_asm


def unpack(form, data, offset):
    return struct.unpack_from("<" + form, data, offset)


class CodeObject:
    """One code object (ELF64) at an address of this process, loaded as the driver would."""

    def __init__(self, address, arch):
        header = ctypes.string_at(address, 64)
        (sections_at,) = unpack("Q", header, 40)
        section_size, section_count, _ = unpack("HHH", header, 58)
        raw = ctypes.string_at(address, sections_at + section_size * section_count)
        self.family = "cdna" if arch.startswith("gfx9") else "rdna4" if arch.startswith("gfx12") else "rdna3"
        self._map_segments(raw)
        self._read_sections(raw, sections_at, section_size, section_count)
        self._drop_cache_instructions()

    def _map_segments(self, raw):
        (first,) = unpack("Q", raw, 32)
        size, count = unpack("HH", raw, 54)
        segments = [unpack("IIQQQQQQ", raw, first + i * size) for i in range(count)]
        loads = [s for s in segments if s[0] == 1]
        self.memory = mmap.mmap(-1, (max(s[3] + s[6] for s in loads) + 0x10000) & ~0xFFF)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for _, _, offset, at, _, length, _, _ in loads:
            self.memory[at:at + length] = raw[offset:offset + length]

    def _read_sections(self, raw, first, size, count):
        sections = [unpack("IIQQQQIIQQ", raw, first + i * size) for i in range(count)]
        self.symbols = {}
        for section in sections:
            if section[1] == 11:  # dynamic symbols
                names = sections[section[6]][4]
                for i in range(section[5] // 24):
                    name, _, _, _, value, _ = unpack("IBBHQQ", raw, section[4] + i * 24)
                    self.symbols[raw[names + name:raw.index(b"\0", names + name)].decode()] = value
            if section[1] == 4:  # relocations with addends; code objects have R_AMDGPU_RELATIVE64 alone
                for i in range(section[5] // 24):
                    at, info, addend = unpack("QQq", raw, section[4] + i * 24)
                    if info & 0xFFFFFFFF == 13:
                        struct.pack_into("<Q", self.memory, at, self.base + addend)

    def _drop_cache_instructions(self):
        """Cache write-backs and invalidates, which the emulator lacks, change nothing on host memory."""
        nop = struct.pack("<I", 0xBF800000)
        for pattern, words in (("0000ace000000000", 2), ("0000b0e000000000", 2), ("0080a0e000000000", 2),
                               ("0080a4e000000000", 2), ("7cc00aee", 3), ("7c000bee", 3)):
            at = self.memory.find(bytes.fromhex(pattern))
            while at >= 0:
                if at % 4 == 0:
                    self.memory[at:at + 4 * words] = nop * words
                at = self.memory.find(bytes.fromhex(pattern), at + 1)

    def run(self, run_asm, name, grid, threads, shared, params):
        """`params`: the bytes of the kernel's parameter; what the runtime appends begins behind them."""
        descriptor = self.symbols[name + ".kd"]
        group, private, argument_bytes = unpack("III", self.memory, descriptor)
        (entry,) = unpack("q", self.memory, descriptor + 16)
        _, _, resources, properties = unpack("IIIH", self.memory, descriptor + 44)
        hidden = struct.pack("<IIIHHHHHH", *grid, threads, 1, 1, 0, 0, 0) + bytes(40) + struct.pack("<H", 1)
        block = bytearray(params) + bytes(-len(params) % 8) + hidden
        block += bytes(max(argument_bytes - len(block), 0))
        arguments = ctypes.create_string_buffer(bytes(block), len(block))
        granules = (group + shared + 511) // 512
        resources = (resources & ~(0x1FF << 15)) | (granules << 15)
        address = ctypes.addressof(arguments)
        user = []
        for bit, words in ((1, [0] * 4), (2, [0] * 2), (4, [0] * 2),
                           (8, [address & 0xFFFFFFFF, address >> 32]), (16, [0] * 2), (32, [0] * 2), (64, [private])):
            if properties & bit:
                user += words
        run_asm(self.base + descriptor + entry, 0, *grid, threads, 1, 1, address, resources, private, self.family, user)


def make_hook(run_asm, arch):
    loaded = {}

    def launch(image, kernel, grid, threads, shared, params, params_bytes):
        try:
            if image not in loaded:
                loaded[image] = CodeObject(image, arch)
            loaded[image].run(run_asm, kernel.decode(), (grid.x, grid.y, grid.z), threads, shared,
                              ctypes.string_at(params, params_bytes))
            return 0
        except Exception:  # an exception cannot cross into the library
            print(f"{kernel.decode()}: the emulator failed", flush=True)
            traceback.print_exc(limit=-3)
            return 719
    return HOOK(launch)


def main():
    parser = argparse.ArgumentParser(description="Runs the operations' cases on emulated AMD code.")
    parser.add_argument("--tinygrad", default=os.environ.get("TINYGRAD_DIR"), help="a checkout of tinygrad")
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--build", default="build/rocm", help="a build with RBEE_ROCM and tests")
    parser.add_argument("opcheck", nargs="*", help="arguments of opcheck instead of the usual ones")
    options = parser.parse_args()
    if not options.tinygrad:
        print("skipped: no emulator; --tinygrad names a checkout of github.com/tinygrad/tinygrad")
        return 0
    build = (ROOT / options.build).resolve()
    fake = build / "tests/gpu/fake/librbee_fake_hip.so"
    os.environ.update(RBEE_HIP_LIBRARY=str(fake), RBEE_FAKE_ARCH=options.arch)
    run_asm = load_emulator(Path(options.tinygrad).resolve())
    runtime = ctypes.CDLL(str(fake))
    hook = make_hook(run_asm, options.arch)
    runtime.rbee_fake_set_launch_hook(hook)
    program = ctypes.CDLL(str(build / "tools/opcheck/librbee_opcheck_emulated.so"))
    words = ["opcheck"] + (options.opcheck or ["all", "--summary", "--most-bytes", "65536"])
    words += ["--device", "rocm:0"]
    arguments = (ctypes.c_char_p * (len(words) + 1))(*[word.encode() for word in words], None)
    status = program.rbee_opcheck(len(words), arguments)
    runtime.rbee_fake_violation.restype = ctypes.c_char_p
    violation = runtime.rbee_fake_violation().decode()
    if violation:
        print("the runtime was misused:", violation)
    return status or (1 if violation else 0)


if __name__ == "__main__":
    sys.exit(main())
