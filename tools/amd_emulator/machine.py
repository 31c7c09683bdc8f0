"""Runs AMD machine code: tinygrad's emulator (github.com/tinygrad/tinygrad, test/mockgpu/amd; MIT) compiles each
instruction by AMD's own pseudocode; this module keeps what is compiled, also between runs, and executes waves.

As on hardware, waves of a block have registers and scratch memory of their own and meet at barriers; blocks run one
after another, or several at once in an order that chance decides. As far as kernels can see, memory is always coherent.
"""
import ctypes
import hashlib
import importlib.util
import itertools
import mmap
import os
import pickle
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

from amd_emulator.mends import PSEUDOCODE, mended

HERE = Path(__file__).resolve().parent
MOST_INSTRUCTIONS = 500_000_000  # of a wave between barriers
MOST_AT_ONCE = 3000  # instructions of a wave between those of others, where several blocks run at once
SHARED_WINDOW = 1 << 32
MAP_NORESERVE = 0x4000  # Linux's, which Python 3.11 does not name
WORD = 0xFFFFFFFF
FIRST_VECTOR = 256  # of the numbers of operands

# The emulator's file of scalar registers: 128 of them, inline constants, the program counter's two words, the
# condition and the stride of scratch memory; the last 16 words are hardware registers.
SCALARS, COUNTER, SCRATCH_STRIDE, EXEC = 260, 256, 259, 126
HARDWARE_ID = SCALARS - 16 + 4
SHARED_BASE = 235  # the flat aperture's, of two words
TTMP = 108
CONSTANTS = {**{128 + i: i for i in range(65)}, **{193 + i: -(i + 1) & WORD for i in range(16)},
             240: 0x3F000000, 241: 0xBF000000, 242: 0x3F800000, 243: 0xBF800000, 244: 0x40000000, 245: 0xC0000000,
             246: 0x40800000, 247: 0xC0800000, 248: 0x3E22F983}

# Instructions that change nothing here: write-backs and invalidates of caches, as bytes and words.
CACHE_INSTRUCTIONS = [(bytes.fromhex(code), words) for code, words in (
    ("0000ace000000000", 2), ("0000b0e000000000", 2), ("0080a0e000000000", 2), ("0080a4e000000000", 2),
    ("0000a0e000000000", 2), ("0000a4e000000000", 2), ("0000fce000000000", 2),
    ("7cc00aee", 3), ("7c000bee", 3))]

PAUSED, DONE, UNKNOWN, OUTSIDE, TOO_LONG, BEYOND_SHARED = range(6)
NO_SHARED, BY_REGISTER, FROM_M0, FLAT = range(4)


class Entry(ctypes.Structure):
    """As in native_loop.c."""
    _fields_ = [("run", ctypes.c_void_p), ("skip", ctypes.c_uint8), ("pause", ctypes.c_uint8),
                ("arguments", ctypes.c_uint8 * 6), ("shared", ctypes.c_uint8), ("address", ctypes.c_uint8),
                ("bytes", ctypes.c_uint8), ("lanes", ctypes.c_uint8), ("offsets", ctypes.c_uint32 * 2)]


class KernelFault(RuntimeError):
    """Of the kernel, not of the emulator."""


def shared_access(name, offset0, offset1):
    """Bytes and two offsets of what a DS instruction reads or writes at a lane's address; None where it has none
    (AMD, ISA documents, "Local Data Share": two addresses count in elements, or in 64 of them)."""
    if re.search("SWIZZLE|PERMUTE|GWS|GS_REG|ORDERED|NOP|ADDTID|CONSUME|APPEND|BVH", name):
        return None
    size = int(re.search(r"_(?:PK_)?(?:[A-Z]+_)*[BUIF]F?(\d+)(?:_D16(?:_HI)?)?(?:_TR_B\d+)?$", name).group(1)) // 8
    if name.startswith("DS_PK_"):  # two halves of a word
        size = 4
    if re.search("2ADDR|READ2|WRITE2|XCHG2", name):
        stride = size * (64 if re.search("STRIDE64|ST64", name) else 1)
        return size, (offset0 * stride, offset1 * stride)
    offset = offset1 << 8 | offset0
    return size, (offset, offset)


def flat_bytes(name):
    """Bytes that a FLAT instruction reads or writes at a lane's address."""
    for pattern, size in (("BYTE|_[UIB]8", 1), ("SHORT|LOAD.*_[UIB]16|STORE.*_B16", 2), ("X2|64", 8), ("X3|96", 12),
                          ("X4|128", 16)):
        if re.search(pattern, name):
            return size
    return 4


def signed(field, bits):
    """A field of an instruction as a number with a sign."""
    return (field ^ 1 << bits - 1) - (1 << bits - 1)


def family_of(arch):
    return "cdna" if arch.startswith("gfx9") else "rdna4" if arch.startswith("gfx12") else "rdna3"


def load_emulator(tinygrad, arch):
    """tinygrad's module, mended. It is a checkout's test code, hence by its path."""
    sys.path.insert(0, str(tinygrad))
    for file in ("pcode", "emu"):  # the second imports the first
        path = Path(tinygrad) / f"test/mockgpu/amd/{file}.py"
        spec = importlib.util.spec_from_loader(f"test.mockgpu.amd.{file}", loader=None, origin=str(path))
        module = importlib.util.module_from_spec(spec)
        module.__file__ = str(path)
        module.FLUSHES = arch == "gfx90a"  # of subnormal f16, by matrix instructions
        module.PSEUDOCODE = PSEUDOCODE
        sys.modules[spec.name] = module
        exec(compile(mended(file, path.read_text()), str(path), "exec"), module.__dict__)
    return module


# gfx90a's instructions by the numbers of CDNA 3's, which the emulator decodes (CDNA 2 and 3 ISA): the upper halves of
# first words. v_mfma_f32_16x16x16bf16_1k has another number there. v_mad_f32 and v_mac_f32, whose number is v_dot2c's
# there, are gone; their products are rounded as those of v_fma_f32 and v_fmac_f32 are not, but clang has them in
# divisions alone, whose quotients come out the same.
CDNA2_NUMBERS = {0xD3E7: 0xD3E1, 0xD1C1: 0xD1CB, 0xD116: 0xD13B}
CDNA2_MAC, CDNA3_FMAC = 22, 59  # of instructions with two operands, in the upper seven bits


def as_cdna3(code):
    (word,) = struct.unpack_from("<I", code)
    if word >> 25 == CDNA2_MAC:
        word = CDNA3_FMAC << 25 | word & (1 << 25) - 1
    return struct.pack("<I", CDNA2_NUMBERS.get(word >> 16, word >> 16) << 16 | word & 0xFFFF) + code[4:]


class Instructions:
    """Compiled instructions: for each kind of instruction one function, whose fields that vary it reads from the
    code that it executes. Kept in a file, to which new ones are appended."""

    def __init__(self, tinygrad, arch, cache):
        self.emulator = load_emulator(tinygrad, arch)
        self.arch, self.family = arch, family_of(arch)
        self._kinds = {}  # (class, mask, bytes) -> {the fixed bits: (address, arguments)}
        self._programs = []
        self._file = self._cache_file(tinygrad, cache)
        if self._file.exists():
            self._load()

    def _cache_file(self, tinygrad, cache):
        amd = Path(tinygrad) / "test/mockgpu/amd"
        text = b"".join(path.read_bytes() for path in (amd / "emu.py", amd / "pcode.py", HERE / "mends.py"))
        cache.mkdir(parents=True, exist_ok=True)
        return cache / f"{self.arch}-{hashlib.sha256(text).hexdigest()[:16]}.pickle"

    def _load(self):
        with open(self._file, "rb") as file:
            while True:
                try:
                    self._add(*pickle.load(file))
                except (EOFError, pickle.UnpicklingError):  # the last may be cut off
                    return

    def _add(self, name, base, mask, size, elf, arguments):
        from tinygrad.device import Device
        program = Device["CPU"].runtime(elf)
        self._programs.append(program)
        entry = (program.addr, arguments)
        self._kinds.setdefault((name, mask, size), {})[base] = entry
        return entry

    def find(self, address):
        """The decoded instruction at an address, its function and the buffers that it takes."""
        code = ctypes.string_at(address, 16)
        if self.arch == "gfx90a":
            code = as_cdna3(code)
        inst = self.emulator.decode_inst(code, self.family)
        size = inst.size()
        bits = int.from_bytes(code[:size], "little")
        name = type(inst).__name__
        for (kind, mask, bytes_), entries in self._kinds.items():
            if kind == name and bytes_ == size and bits & mask in entries:
                return inst, entries[bits & mask]
        return inst, self._compile(code[:size + 4], name)

    def _compile(self, code, name):
        self.emulator._get_runner(code, self.family)
        _, base, mask, size, (program, _) = self.emulator._canonical_runner_cache[-1]
        record = (name, base, mask, size, program.to_elf(), tuple(program.arg.globals))
        with open(self._file, "ab") as file:
            file.write(pickle.dumps(record))
        return self._add(*record)


class Wave:
    """Registers and scratch memory of one wave, used again by the next blocks."""

    def __init__(self, lanes, scratch_bytes):
        self.scalars = (ctypes.c_uint32 * SCALARS)()
        self.vectors = (ctypes.c_uint32 * (256 * lanes))()
        self.sums = (ctypes.c_uint32 * (256 * lanes))() if lanes == 64 else self.vectors
        self.scratch = (ctypes.c_uint8 * max(scratch_bytes * lanes, 1))()

    def buffers(self, shared):
        at = ctypes.addressof
        return (ctypes.c_uint64 * 6)(at(self.scalars), at(self.vectors), 0, shared, at(self.scratch), at(self.sums))


def native_loop(folder):
    """native_loop.c, compiled."""
    source = HERE / "native_loop.c"
    library = folder / f"native_loop-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}.so"
    if not library.exists():
        unfinished = library.with_suffix(f".{os.getpid()}")  # sweeps of several targets may begin together
        subprocess.check_call(["cc", "-shared", "-fPIC", "-O2", "-o", str(unfinished), str(source)])
        unfinished.rename(library)
    function = ctypes.CDLL(str(library)).rbee_run_wave
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p,
                         ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
    return function


class Place:
    """Where a block runs: waves, and shared memory."""

    def __init__(self, lanes, kernel, threads):
        # Lanes that are switched off compute addresses of shared memory too, and the emulator reads there. The window
        # is the flat aperture besides, and such an aperture begins where the lower half of an address is 0.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
        self._shared = mmap.mmap(-1, 2 * SHARED_WINDOW, flags=flags)
        self.shared_at = -(-ctypes.addressof(ctypes.c_char.from_buffer(self._shared)) // SHARED_WINDOW) * SHARED_WINDOW
        self.waves = [Wave(lanes, kernel.private_bytes) for _ in range(-(-threads // lanes))]
        self._runs = [(wave, wave.buffers(self.shared_at)) for wave in self.waves]
        self.ready, self.paused = [], []

    def begin(self):
        self.ready, self.paused = list(self._runs), []


class Machine:
    """A processor of one architecture. `blocks_at_once`: more than 1 are started in an order that `seed` decides, and
    their waves take turns at random."""

    def __init__(self, tinygrad, arch, cache, blocks_at_once=1, seed=0):
        self._instructions = Instructions(tinygrad, arch, cache)
        self._run_wave = native_loop(cache)
        self.family = family_of(arch)
        self.lanes = 64 if self.family == "cdna" else 32
        self._blocks_at_once = blocks_at_once
        self._chance = random.Random(seed)
        self._entries = {}  # of code objects, by base

    def launch(self, code, kernel, grid, threads, shared_bytes, user_registers):
        entries = self._entries.setdefault(code.base, (Entry * (code.size // 4 + 4))())
        blocks = [(x, y, z) for z, y, x in itertools.product(range(grid[2]), range(grid[1]), range(grid[0]))]
        at_once = min(self._blocks_at_once, len(blocks))
        if at_once > 1:
            self._chance.shuffle(blocks)
        waiting = iter(blocks)
        places = [Place(self.lanes, kernel, threads) for _ in range(at_once)]

        def begin(place):
            block = next(waiting, None)
            if block is None:
                places.remove(place)
                return
            for number, wave in enumerate(place.waves):
                self._start(wave, kernel, number, threads, block, user_registers)
                wave.scalars[SHARED_BASE + 1] = place.shared_at >> 32
            ctypes.memset(place.shared_at, 0xFF, shared_bytes)
            place.begin()

        for place in list(places):
            begin(place)
        while places:
            place = places[0] if at_once == 1 else self._chance.choice(places)
            self._take_turn(code, entries, place, at_once > 1, shared_bytes)
            if not place.ready:  # all are at the barrier, or at their end
                place.ready, place.paused = place.paused, []
                if not place.ready:
                    begin(place)

    def _take_turn(self, code, entries, place, mixed, shared_bytes):
        """Runs a wave up to its barrier or end; `mixed`: any of them, and a few instructions."""
        at = self._chance.randrange(len(place.ready)) if mixed else 0
        wave, buffers = place.ready[at]
        left = ctypes.c_int64(self._chance.randint(1, MOST_AT_ONCE) if mixed else MOST_INSTRUCTIONS)
        counter = ctypes.addressof(wave.scalars) + 4 * COUNTER
        reached = ctypes.c_uint32()
        status = UNKNOWN
        while status == UNKNOWN:
            status = self._run_wave(entries, code.base, len(entries), counter, buffers, ctypes.byref(left),
                                    shared_bytes, ctypes.byref(reached))
            if status == UNKNOWN:
                self._fill(entries, code, wave.scalars)
        if status == TOO_LONG and mixed:
            return
        if status == BEYOND_SHARED:
            at = (wave.scalars[COUNTER] | wave.scalars[COUNTER + 1] << 32) - code.base
            raise KernelFault(f"the instruction at {at:#x} reaches byte {reached.value} of shared memory, "
                              f"of which the block has {shared_bytes}")
        if status not in (PAUSED, DONE):
            raise RuntimeError("left the code" if status == OUTSIDE else "runs without end")
        place.ready.pop(at)
        if status == PAUSED:
            place.paused.append((wave, buffers))

    def _start(self, wave, kernel, number, threads, block, user_registers):
        first = number * self.lanes
        count = min(self.lanes, threads - first)
        # Hardware keeps the old value; a NaN shows if a kernel uses it.
        for memory in (wave.vectors, wave.sums, wave.scratch):
            ctypes.memset(memory, 0xFF, ctypes.sizeof(memory))
        scalars = wave.scalars
        ctypes.memset(scalars, 0, ctypes.sizeof(scalars))
        for at, value in CONSTANTS.items():
            scalars[at] = value
        scalars[COUNTER], scalars[COUNTER + 1] = kernel.entry & WORD, kernel.entry >> 32
        scalars[SCRATCH_STRIDE] = kernel.private_bytes
        scalars[HARDWARE_ID] = (number & 15) | (number & 3) << 4
        lanes = (1 << count) - 1
        scalars[EXEC] = lanes & WORD
        if self.lanes == 64:
            scalars[EXEC + 1] = lanes >> 32
        for i, value in enumerate(user_registers):
            scalars[i] = value
        self._tell_block(scalars, kernel, block)
        for lane in range(count):
            wave.vectors[lane] = first + lane

    def _tell_block(self, scalars, kernel, block):
        if self.family == "rdna4":
            scalars[TTMP + 7] = (block[1] & 0xFFFF) | (block[2] & 0xFFFF) << 16
            scalars[TTMP + 9] = block[0]
            return
        at = (kernel.resources >> 1) & 31  # user registers; the block's numbers follow them
        for axis in range(3):
            if kernel.resources >> (7 + axis) & 1:
                scalars[at] = block[axis]
                at += 1

    def _fill(self, entries, code, scalars):
        address = scalars[COUNTER] | scalars[COUNTER + 1] << 32
        entry = entries[(address - code.base) // 4]
        bytes_ = ctypes.string_at(address, 8)
        for pattern, words in CACHE_INSTRUCTIONS:
            if bytes_.startswith(pattern):
                entry.skip = words
                return
        inst, (run, arguments) = self._instructions.find(address)
        emulator = self._instructions.emulator
        kind = type(inst).__name__
        entry.pause = (kind == "SOPP" and inst.op in emulator._BARRIER_OPS
                       or kind == "SOP1" and inst.op in emulator._BARRIER_SOP1_OPS)
        entry.arguments[:len(arguments)] = arguments
        self._tell_shared(entry, inst, kind)
        entry.run = run

    def _tell_shared(self, entry, inst, kind):
        """Of instructions that read or write shared memory."""
        name = self._instructions.emulator._op_name(inst).upper()
        entry.lanes = self.lanes
        if kind == "DS":
            access = shared_access(name, inst.offset0, inst.offset1)
            if access:
                entry.shared, entry.address = BY_REGISTER, inst.addr.offset - FIRST_VECTOR
                entry.bytes, entry.offsets[:] = access
        elif "LOAD_LDS" in name:
            entry.shared = FROM_M0
            entry.bytes = 4 * int(name[-1]) if name[-2] == "X" else 4
            offset = signed(inst.offset, 13) if kind in ("GLOBAL", "SCRATCH") else inst.offset
            entry.offsets[:] = [offset & WORD] * 2
        elif kind in ("FLAT", "VFLAT") and name.startswith("FLAT"):
            entry.shared, entry.bytes = FLAT, flat_bytes(name)
            entry.address = (inst.vaddr if kind == "VFLAT" else inst.addr).offset - FIRST_VECTOR
            # CDNA's have no sign.
            width = {"cdna": 32, "rdna3": 13, "rdna4": 24}[self.family]
            offset = inst.ioffset if kind == "VFLAT" else inst.offset
            entry.offsets[:] = [signed(offset, width) & WORD] * 2
