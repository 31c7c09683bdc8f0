"""Prints what kernels do to memory: loads, stores, atomic operations, fences, copies, and pointers' arithmetic."""
import re

from calls import SIGNED
from ir import CONSTANT, DEVICE, THREAD, THREADGROUP, Reader, Unsupported
from matrices import is_matrix
from tree import whole

SPACES = {DEVICE: "device", THREADGROUP: "threadgroup", CONSTANT: "constant", THREAD: "thread"}
# How memory is named: by vectors, which Apple's compiler lets overlap with every type, as clang does. By size.
MEMORY = {1: "uchar", 2: "uchar2", 4: "uchar4", 8: "uint2", 16: "uint4"}
# Memory that is aligned to less is taken in pieces: the vector that they make, by their size.
PIECES = {1: "uchar", 2: "ushort", 4: "uint"}
BOOL = ("i", 1)


class Memory:
    """A part of text.py's Writer."""

    def pointer(self, reader):
        """(text, the name of its space)."""
        reader.skip_attributes()
        kind = reader.type()
        reader.skip_attributes()
        start = reader.at
        text = self.value(reader, kind)
        space = self.pointers.of_words(reader.tokens[start:reader.at])
        return text, SPACES[space or kind[1] or DEVICE]

    def element_pointer(self, reader):
        """The operands of a getelementptr, from its type on."""
        kind = reader.type()
        reader.take(",")
        pointer, _ = self.pointer(reader)
        offset, parts, first = 0, [], True
        while reader.take(","):
            index_type = reader.type()
            constant = re.fullmatch(r"-?\d+", reader.peek())
            if reader.peek() in ("undef", "poison"):
                raise Unsupported("an undefined index")
            number = int(constant.group()) if constant else None
            text = self.value(reader, index_type)
            if not first:
                kind = self.module.resolve(kind)
                if kind[0] in ("struct", "packed"):
                    at, kind = self.module.member(kind, number)
                    offset += at
                    continue
                kind = kind[2]
            first = False
            size = self.module.layout(kind)[0]
            if number is not None:
                offset += number * size
            else:
                signed = f"long({text})" if index_type == ("i", 64) else f"long({self.signed(index_type, text)})"
                parts.append(signed if size == 1 else f"{signed} * {size}")
        if offset:
            parts.append(str(offset))
        offsets = " + ".join(parts)
        return f"({pointer} + {offsets if len(parts) == 1 else f'({offsets})'})" if parts else pointer

    def _load(self, each, reader):
        if reader.take("atomic"):
            return self._load_atomic(each, reader)
        kind = reader.type()
        reader.next()
        pointer, space = self.pointer(reader)
        self.loads = self.loads or space != "constant"
        if is_matrix(kind):
            raise Unsupported("a matrix in the thread's own memory")
        if kind[0] == "ptr":
            if each.name in self.pointers.instead:
                self.names[each.name] = self.short(self.pointers.instead[each.name])
                return None
            text = f"*reinterpret_cast<const {space} ulong*>({whole(pointer)})"
            return self.put(each.name, kind, f"reinterpret_cast<device uchar*>({text})")
        return self.put(each.name, kind, self._as(kind, *self._loaded(kind, each.body, pointer, space)))

    def _sizes(self, kind, body):
        """(bytes, the alignment that is known, at most the bytes)"""
        size = self.module.layout(kind)[0] if kind[0] != "vec" else self.module.layout(kind[2])[0] * kind[1]
        align = min(size, int(re.search(r", align (\d+)", body).group(1)))
        pieces = size // min(align, 4)
        if size not in MEMORY or (align < size and pieces not in (2, 4)):
            raise Unsupported(f"{size} bytes of memory aligned to {align}")
        return size, align

    def _loaded(self, kind, body, pointer, space):
        """(the type, the text) of memory's bytes."""
        size, align = self._sizes(kind, body)
        if align == size:
            return MEMORY[size], f"(*reinterpret_cast<const {space} {MEMORY[size]}*>({whole(pointer)}))"
        step = min(align, 4)
        pointer = self.atom(pointer, space + " uchar*")
        parts = [f"*reinterpret_cast<const {space} {MEMORY[step]}*>({pointer} + {i})" for i in range(0, size, step)]
        if step > 1:
            parts = [f"as_type<{PIECES[step]}>({part})" for part in parts]
        made = f"{PIECES[step]}{size // step}"
        return made, f"{made}({', '.join(parts)})"

    def _as(self, kind, memory, text):
        """Memory's bytes as a value."""
        target = self.ctype(kind)
        if target == memory:
            return text
        return f"({text} != uchar(0))" if kind == BOOL else f"as_type<{target}>({whole(text)})"

    def _store(self, each, reader):
        if reader.take("atomic"):
            return self._store_atomic(each, reader)
        if id(each) in self.pointers.dropped:
            return None
        start = reader.at
        kind, value = self.operand(reader)
        stored = reader.tokens[start:reader.at]
        reader.next()
        pointer, space = self.pointer(reader)
        if is_matrix(kind):
            raise Unsupported("a matrix in the thread's own memory")
        if kind[0] == "ptr":
            # What is read back is taken for a pointer to device memory.
            if self.pointers.of_words(stored) not in (None, DEVICE):
                raise Unsupported("a stored pointer to other memory than the device's")
            return self.effect(f"*reinterpret_cast<{space} ulong*>({pointer}) = reinterpret_cast<ulong>({value});")
        size, align = self._sizes(kind, each.body)
        if align == size:
            if self.ctype(kind) != MEMORY[size]:
                value = f"uchar({value})" if kind == BOOL else f"as_type<{MEMORY[size]}>({whole(value)})"
            return self.effect(f"*reinterpret_cast<{space} {MEMORY[size]}*>({whole(pointer)}) = {value};")
        step = min(align, 4)
        pointer = self.atom(pointer, space + " uchar*")
        value = self.atom(f"as_type<{PIECES[step]}{size // step}>({value})", f"{PIECES[step]}{size // step}")
        for i in range(size // step):
            part = f"{value}[{i}]" if step == 1 else f"as_type<{MEMORY[step]}>({value}[{i}])"
            self.effect(f"*reinterpret_cast<{space} {MEMORY[step]}*>({pointer} + {i * step}) = {part};")
        return None

    def _fence(self, each, _):
        if "agent" in each.body:
            self.effect("rb_device_fence();")
        elif "workgroup" not in each.body and "wavefront" not in each.body:
            raise Unsupported("a fence of this scope")

    def _atomic_type(self, kind, space):
        found = {("float",): "atomic_float", ("i", 32): "atomic_uint"}.get(kind)
        if found is None or (found == "atomic_float" and space != "device"):
            raise Unsupported(f"an atomic {kind} in {space} memory")
        return f"reinterpret_cast<{space} {found}*>"

    def _atomicrmw(self, each, reader):
        kind_of = reader.next()
        pointer, space = self.pointer(reader)
        reader.next()
        kind, value = self.operand(reader)
        if "monotonic" not in each.body:
            raise Unsupported("an atomic operation with an order")
        name = {"add": "add", "fadd": "add", "umax": "max", "umin": "min", "and": "and", "or": "or"}[kind_of]
        self.settle()
        text = (f"atomic_fetch_{name}_explicit({self._atomic_type(kind, space)}({pointer}), {value}, "
                "memory_order_relaxed)")
        return self.put(each.name, kind, text, apart=True)

    def _load_atomic(self, each, reader):
        kind = reader.type()
        reader.next()
        pointer, space = self.pointer(reader)
        if "monotonic" not in each.body:
            raise Unsupported("an atomic load with an order")
        self.settle()
        text = f"atomic_load_explicit({self._atomic_type(kind, space)}({pointer}), memory_order_relaxed)"
        return self.put(each.name, kind, text, apart=True)

    def _store_atomic(self, each, reader):
        kind, value = self.operand(reader)
        reader.next()
        pointer, space = self.pointer(reader)
        if "monotonic" not in each.body:
            raise Unsupported("an atomic store with an order")
        self.effect(f"atomic_store_explicit({self._atomic_type(kind, space)}({pointer}), {value}, "
                    "memory_order_relaxed);")

    def _move(self, function, body):
        """memcpy and memset of known sizes."""
        reader = Reader(body[body.index("("):])
        reader.next()
        to, to_space = self.pointer(reader)
        reader.next()
        if function.startswith("memset"):
            _, value = self.operand(reader)
        else:
            value, space = self.pointer(reader)
        reader.next()
        count = re.search(r"i(?:32|64) (\d+|0x\w+), i1 false\)", body)
        if count is None:
            raise Unsupported("a size that is not known")
        size = int(count.group(1), 0)
        aligned = [int(x) for x in re.findall(r"align (\d+)", body)]
        wanted = 1 if function.startswith("memset") else 2
        least = min(aligned) if len(aligned) == wanted else 1
        step, kind = next((n, t) for n, t in ((16, "uint4"), (8, "uint2"), (4, "uchar4"), (1, "uchar"))
                          if least % n == 0 and size % n == 0)
        if function.startswith("memset") and step > 1:
            if value != "uchar(0)":
                step, kind = 1, "uchar"
            else:
                value = "0u"
        item = f"reinterpret_cast<{to_space} {kind}*>({to})[i]"
        source = f"{kind}({value})" if function.startswith("memset") else \
            f"reinterpret_cast<const {space} {kind}*>({value})[i]"
        if size == step:
            return self.effect(f"{item} = {source};".replace("[i]", "[0]"))
        return self.effect(f"for (uint i = 0u; i < {size // step}u; ++i) {item} = {source};")
