"""The kernels in an AMD code object: the MessagePack map of its metadata note (LLVM, "User Guide for AMDGPU
Backend", code object v5). Python's standard library alone, so that no tool of LLVM has to be there."""
import struct

PROGRAM_NOTES = 4  # the type of a segment
METADATA_NOTE = 32  # NT_AMDGPU_METADATA


def unpack(form, data, offset):
    return struct.unpack_from(form, data, offset)


class MessagePack:
    """A reader of what LLVM writes: nil, truth, integers, text, lists and maps (msgpack.org, specification)."""
    NUMBERS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
    CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
    TEXTS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
    LISTS = {0xDC: ">H", 0xDD: ">I"}
    MAPS = {0xDE: ">H", 0xDF: ">I"}

    def __init__(self, data, at=0):
        self._data, self._at = data, at

    def _number(self, form):
        (value,) = unpack(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return value

    def _text(self, length):
        self._at += length
        return self._data[self._at - length:self._at].decode()

    def _map(self, count):
        return {self.value(): self.value() for _ in range(count)}  # a key is read before its value

    def value(self):
        kind = self._number(">B")
        if kind < 0x80 or kind >= 0xE0:
            return kind if kind < 0x80 else kind - 0x100
        if kind < 0xC0:  # the count is a part of the byte
            count = kind & (0x1F if kind >= 0xA0 else 0x0F)
            return self._text(count) if kind >= 0xA0 else self._list(count) if kind >= 0x90 else self._map(count)
        if kind in self.CONSTANTS:
            return self.CONSTANTS[kind]
        for forms, read in ((self.TEXTS, self._text), (self.LISTS, self._list), (self.MAPS, self._map)):
            if kind in forms:
                return read(self._number(forms[kind]))
        if kind in self.NUMBERS:
            return self._number(self.NUMBERS[kind])
        raise ValueError(f"MessagePack of kind {kind:#x} at byte {self._at - 1}")

    def _list(self, count):
        return [self.value() for _ in range(count)]


def notes(data):
    """Pairs of a type and a text: the notes of an ELF64 file's bytes."""
    (first,) = unpack("<Q", data, 32)
    size, count = unpack("<HH", data, 54)
    for i in range(count):
        kind, _, offset, _, _, length = unpack("<IIQQQQ", data, first + i * size)
        end = offset + length
        while kind == PROGRAM_NOTES and offset < end:
            name, text, note = unpack("<III", data, offset)
            begin = offset + 12 + (name + 3) // 4 * 4
            yield note, data[begin:begin + text]
            offset = begin + (text + 3) // 4 * 4


def kernels(data):
    """The maps of a code object's kernels, with the keys of LLVM's guide."""
    if data[:4] != b"\x7fELF":
        raise ValueError("no ELF file")
    for note, text in notes(data):
        if note == METADATA_NOTE:
            return MessagePack(text).value()["amdhsa.kernels"]
    raise ValueError("no metadata note")
