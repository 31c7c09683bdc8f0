"""Reads LLVM IR of kernels as text: types, globals, kernels with their blocks and instructions. What print.py does not
know ends here as Unsupported, with the name of the kernel and the line."""
import re
from dataclasses import dataclass, field

TOKEN = re.compile(r'%"[^"]*"|%[\w.$-]+|@"[^"]*"|@[\w.$]+|"[^"]*"|-?\d+\.\d+e[+-]\d+|0x[HKLMR]?[0-9A-Fa-f]+|-?\d+|'
                   r'[A-Za-z_][\w.]*|[(){}\[\]<>,=*!#]')
VALUE = re.compile(r'%"[^"]*"|%[\w.$-]+')
# Words that change nothing in the text: facts about values that optimisers use.
DROPPED = frozenset('nsw nuw exact inbounds nneg disjoint samesign contract fast nnan ninf nsz arcp afn reassoc tail '
                    'musttail notail noundef volatile immarg signext zeroext nusw nonnull readonly readnone writeonly '
                    'nocapture returned'.split())
ADDRESS_OF_PARAMETERS = 4
DEVICE, THREADGROUP, CONSTANT, THREAD = 1, 3, 4, 5


class Unsupported(Exception):
    """Something that has no form in the text yet."""


class Reader:
    """The tokens of one instruction or initialiser."""

    def __init__(self, text):
        self.tokens = TOKEN.findall(text)
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, token):
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def skip_attributes(self):
        while True:
            word = self.peek()
            if word in DROPPED:
                self.at += 1
            elif word == "align":
                self.at += 2
            elif word in ("dereferenceable", "dereferenceable_or_null", "range", "nofpclass"):
                while self.next() != ")":
                    pass
            else:
                return

    def type(self):
        word = self.next()
        if word[0] == "i" and word[1:].isdigit():
            return ("i", int(word[1:]))
        if word in ("half", "float", "double", "void", "label", "metadata"):
            return (word,)
        if word == "ptr":
            if self.take("addrspace"):
                space = int(self.tokens[self.at + 1])
                self.at += 3
                return ("ptr", space)
            return ("ptr", 0)
        if word in ("<", "["):
            return self._sequence(word)
        if word == "{":
            fields = []
            while not self.take("}"):
                fields.append(self.type())
                self.take(",")
            return ("struct", tuple(fields))
        if word[0] == "%":
            return ("named", word)
        raise Unsupported("type " + word)

    def _sequence(self, bracket):
        if self.peek() == "{":
            packed = self.type()
            self.next()
            return ("packed", packed[1])
        count = int(self.next())
        self.next()
        element = self.type()
        self.next()
        return ("vec" if bracket == "<" else "arr", count, element)


@dataclass
class Instruction:
    name: str  # of the value, or None
    op: str
    body: str  # behind "name ="


@dataclass
class Phi:
    name: str
    type: tuple
    incoming: list  # (value's words, block)


@dataclass
class Block:
    name: str
    phis: list = field(default_factory=list)
    instructions: list = field(default_factory=list)
    successors: list = field(default_factory=list)
    condition: str = None


@dataclass
class Kernel:
    name: str
    threads: int  # at most, in a block
    argument: str  # the pointer to the parameters
    blocks: dict  # by name, in their order; the first is the entry


class Module:
    """A file of IR."""

    def __init__(self, text):
        self.named, self.shared, self.tables, self.kernels = {}, {}, {}, []
        self.spaces = {}  # of globals
        lines = text.split("\n")
        attributes = {}
        for line in lines:
            if line.startswith("%") and " = type " in line:
                name, body = line.split(" = type ", 1)
                if body != "opaque":
                    self.named[name] = Reader(body).type()
            elif line.startswith("attributes "):
                match = re.match(r"attributes (#\d+) = \{(.*)\}", line)
                attributes[match.group(1)] = match.group(2)
        for line in lines:
            if line.startswith("@"):
                self._read_global(line)
        self._read_kernels(lines, attributes)

    def resolve(self, kind):
        return self.named[kind[1]] if kind[0] == "named" else kind

    def layout(self, kind):
        """(size, alignment) in bytes."""
        kind = self.resolve(kind)
        if kind[0] == "i":
            size = max(1, kind[1] // 8)
            return size, min(size, 16)
        if kind[0] in ("half", "float", "double"):
            size = {"half": 2, "float": 4, "double": 8}[kind[0]]
            return size, size
        if kind[0] == "ptr":
            size = 4 if kind[1] in (THREADGROUP, THREAD) else 8
            return size, size
        if kind[0] == "vec":
            size = self.layout(kind[2])[0] * kind[1]
            size = 1 << (size - 1).bit_length()
            return size, size
        if kind[0] == "arr":
            size, align = self.layout(kind[2])
            return size * kind[1], align
        if kind[0] not in ("struct", "packed"):
            raise Unsupported(f"layout of {kind}")
        at, most = 0, 1
        for each in kind[1]:
            size, align = self._member_layout(kind, each)
            at = (at + align - 1) // align * align + size
            most = max(most, align)
        return (at + most - 1) // most * most, most

    def _member_layout(self, kind, member):
        size, align = self.layout(member)
        return size, 1 if kind[0] == "packed" else align

    def member(self, kind, index):
        """(offset, type) of a structure's member."""
        at = 0
        for i, each in enumerate(kind[1]):
            size, align = self._member_layout(kind, each)
            at = (at + align - 1) // align * align
            if i == index:
                return at, each
            at += size
        raise Unsupported(f"member {index} of {kind}")

    def _read_global(self, line):
        match = re.match(r'^(@"[^"]*"|@\S+) = (.*?)addrspace\((\d)\) (?:externally_initialized )?(global|constant) (.*)$',
                         line)
        if not match:
            return
        name, space, body = match.group(1), int(match.group(3)), match.group(5)
        self.spaces[name] = space
        if name.startswith("@llvm.") or name.startswith("@__hip_cuid"):
            return
        reader = Reader(body)
        kind = reader.type()
        if space == THREADGROUP:
            self.shared[name] = self.layout(kind)[0]
        elif space == CONSTANT:
            self.tables[name] = self._initialiser(reader, kind)

    def _initialiser(self, reader, kind):
        """A constant's bytes. Integers in arrays and structures: what tables of code books are."""
        kind = self.resolve(kind)
        size = self.layout(kind)[0]
        if reader.take("zeroinitializer"):
            return bytes(size)
        if reader.take("c"):  # c"\01\02": bytes as text
            text = reader.next()[1:-1].encode("latin-1")
            return re.sub(rb"\\([0-9A-Fa-f]{2})", lambda hit: bytes([int(hit.group(1), 16)]), text)
        if kind[0] == "i":
            return (int(reader.next()) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        if kind[0] == "arr":
            out = b""
            reader.next()
            for _ in range(kind[1]):
                out += self._initialiser(reader, reader.type())
                reader.take(",")
            reader.next()
            return out
        if kind[0] in ("struct", "packed"):
            out = bytearray(size)
            reader.next()
            for index in range(len(kind[1])):
                offset, _ = self.member(kind, index)
                part = self._initialiser(reader, reader.type())
                out[offset:offset + len(part)] = part
                reader.take(",")
            reader.next()
            return bytes(out)
        raise Unsupported(f"a constant of {kind}")

    def _read_kernels(self, lines, attributes):
        define = re.compile(r"^define .*amdgpu_kernel void @(\w+)\((.*?)(%\w+)\)(?: local_unnamed_addr)? (#\d+)")
        at = 0
        while at < len(lines):
            match = define.match(lines[at])
            at += 1
            if not match:
                if lines[at - 1].startswith("define "):
                    raise Unsupported("a function that was not inlined: " + lines[at - 1][:150])
                continue
            end = lines.index("}", at)
            group = re.search(r'flat-work-group-size"="1,(\d+)"', attributes[match.group(4)])
            argument = match.group(3)
            name = match.group(1)
            try:
                self.kernels.append(Kernel(name, int(group.group(1)), argument, read_blocks(lines[at:end], argument)))
            except Unsupported as error:
                raise Unsupported(f"{name}: {error}") from error
            at = end


def read_blocks(lines, argument):
    """The blocks of a function's body."""
    blocks, current = {}, None
    for line in lines:
        label = re.match(r'^("[^"]*"|[\w.$-]+):', line)
        if label:
            current = Block(label.group(1).strip('"'))
            blocks[current.name] = current
            continue
        if not line.strip():
            continue
        if current is None:  # an entry without a label has the number behind the argument's
            current = Block(str(int(argument[1:]) + 1) if argument[1:].isdigit() else "entry")
            blocks[current.name] = current
        read_line(current, re.sub(r", ![\w.]+ ![\w.]+|, !range.*|,? ?#\d+$", "", line.strip()))
    return blocks


def read_line(block, line):
    match = re.match(r'^(%[\w.$-]+|%"[^"]*") = (.*)$', line)
    name, body = (match.group(1), match.group(2)) if match else (None, line)
    words = body.split(None, 3)
    op = words[0]
    if op in ("tail", "musttail", "notail"):
        op = words[1]
    if op == "phi":
        block.phis.append(read_phi(name, body))
    elif op in ("br", "ret", "unreachable"):
        block.successors = [x.strip("%").strip('"') for x in re.findall(r'label (%[\w.$-]+|%"[^"]*")', body)]
        condition = re.match(r"br i1 (\S+),", body)
        block.condition = condition.group(1) if condition else None
    else:
        block.instructions.append(Instruction(name, op, body))


def read_phi(name, body):
    reader = Reader(body)
    reader.next()
    reader.skip_attributes()
    kind = reader.type()
    incoming = []
    while reader.take("["):
        words, depth = [], 0
        while depth or reader.peek() != ",":
            word = reader.next()
            depth += (word in "(<[{") - (word in ")>]}")
            words.append(word)
        reader.next()
        incoming.append((words, reader.next().strip("%").strip('"')))
        reader.next()
        reader.take(",")
    return Phi(name, kind, incoming)
