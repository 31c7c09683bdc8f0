"""AMD code objects (ELF64, code object v5), loaded into this process's memory as the driver would."""
import ctypes
import mmap
import struct
from dataclasses import dataclass

LOADED_SEGMENT = 1
RELOCATIONS_WITH_ADDENDS = 4
DYNAMIC_SYMBOLS = 11
R_AMDGPU_RELATIVE64 = 13


def unpack(form, data, offset):
    return struct.unpack_from("<" + form, data, offset)


@dataclass
class Kernel:
    """A kernel's descriptor (LLVM, "AMDGPU code object kernel descriptor")."""
    entry: int  # address of the first instruction
    descriptor: int  # address
    group_bytes: int
    private_bytes: int  # a lane's scratch memory
    argument_bytes: int
    resources: int  # compute_pgm_rsrc2
    properties: int  # which user registers the kernel takes


class CodeObject:
    """The object at an address of this process. `code` is the addresses that hold it; `base` its first."""

    def __init__(self, address):
        header = ctypes.string_at(address, 64)
        (sections_at,) = unpack("Q", header, 40)
        section_size, section_count, _ = unpack("HHH", header, 58)
        raw = ctypes.string_at(address, sections_at + section_size * section_count)
        self._map_segments(raw)
        sections = [unpack("IIQQQQIIQQ", raw, sections_at + i * section_size) for i in range(section_count)]
        self._symbols = {}
        for section in sections:
            if section[1] == DYNAMIC_SYMBOLS:
                self._read_symbols(raw, section, sections[section[6]][4])
            if section[1] == RELOCATIONS_WITH_ADDENDS:
                self._relocate(raw, section)
        self._kernels = {}

    def _map_segments(self, raw):
        (first,) = unpack("Q", raw, 32)
        size, count = unpack("HH", raw, 54)
        loads = [s for s in (unpack("IIQQQQQQ", raw, first + i * size) for i in range(count))
                 if s[0] == LOADED_SEGMENT]
        self.size = max(s[3] + s[6] for s in loads)
        self._memory = mmap.mmap(-1, (self.size + 0x10000) & ~0xFFF)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for _, _, offset, at, _, length, _, _ in loads:
            self._memory[at:at + length] = raw[offset:offset + length]

    def _read_symbols(self, raw, section, names):
        for i in range(section[5] // 24):
            name, _, _, _, value, _ = unpack("IBBHQQ", raw, section[4] + i * 24)
            self._symbols[raw[names + name:raw.index(b"\0", names + name)].decode()] = value

    def _relocate(self, raw, section):
        """Code objects have only R_AMDGPU_RELATIVE64."""
        for i in range(section[5] // 24):
            at, info, addend = unpack("QQq", raw, section[4] + i * 24)
            if info & 0xFFFFFFFF == R_AMDGPU_RELATIVE64:
                struct.pack_into("<Q", self._memory, at, self.base + addend)

    def kernel(self, name):
        if name not in self._kernels:
            at = self._symbols[name + ".kd"]
            group, private, arguments = unpack("III", self._memory, at)
            (entry,) = unpack("q", self._memory, at + 16)
            _, _, resources, properties = unpack("IIIH", self._memory, at + 44)
            self._kernels[name] = Kernel(self.base + at + entry, self.base + at, group, private, arguments,
                                         resources, properties)
        return self._kernels[name]
