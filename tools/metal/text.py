"""Prints a kernel's instructions as Metal Shading Language. Integers are unsigned, and signed operations cast; floats are
written by their bits; f64 is `ulong` and functions of preamble.metal. Every piece of text is whole: a name, a call or in
brackets."""
import re
import struct

from calls import CALLS, SIGNED, SILENT
from flow import Flow
from ir import DEVICE, VALUE, Reader, Unsupported
from matrices import MATRICES, PREFIX, Matrices, is_matrix
from memory import BOOL, SPACES, Memory
from pointers import Pointers
from tree import Tree

INTEGERS = {1: "bool", 8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}
BINARY = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<", "lshr": ">>", "udiv": "/",
          "urem": "%", "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}
SIGNED_BINARY = {"sdiv": "/", "srem": "%", "ashr": ">>"}
COMPARED = {"eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
OPPOSITE = {"eq": "ne", "ne": "eq", "gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}
CASTS = ("zext", "sext", "trunc", "fpext", "fptrunc", "uitofp", "sitofp", "fptoui", "fptosi", "bitcast", "freeze",
         "addrspacecast", "ptrtoint", "inttoptr")
LONGEST = 110  # of an expression that is written where its value is used
F64 = ("double",)


class Writer(Memory, Matrices):
    """One kernel. `module`: for its types and globals."""

    def __init__(self, module, kernel):
        self.module, self.kernel, self.tree = module, kernel, Tree()
        self.names = {kernel.argument: "p"}
        self.pointers = Pointers(module, kernel)
        self.spaces = self.pointers.spaces
        self.types = {}
        self.pending = {}  # values that will stand where they are used: name -> (text, whether it loads)
        self.building = {}  # vectors of which elements are still put in: name -> texts
        self.loads = False
        self.globals = set()
        self.shared = 0  # bytes of the threadgroup's own memory
        self.memory = []  # of the thread's own arrays
        self.uses = self._count_uses()
        Flow(kernel, self)

    # What flow.py calls.

    def block(self, name):
        self.where = name
        for phi in self.kernel.blocks[name].phis:
            self._declare_phi(phi)
        for each in self.kernel.blocks[name].instructions:
            self.loads = False
            try:
                self._instruction(each)
            except (Unsupported, KeyError, ValueError, IndexError) as error:
                raise Unsupported(f"{type(error).__name__} {error} in: {each.body[:150]}") from error

    def condition(self, name):
        return self.value(Reader(self.kernel.blocks[name].condition), BOOL)

    def copies(self, source, target):
        """The values that the phis of `target` get on the way from `source`, all at once."""
        moves = []
        for phi in self.kernel.blocks[target].phis:
            for words, block in phi.incoming:
                if block == source and words not in (["undef"], ["poison"]) and words != [phi.name]:
                    moves.append((phi, words))
        set_here = {phi.name for phi, _ in moves}
        late = [m for m in moves if m[1][0] in set_here]
        for phi, words in late:
            self._set_phi(phi, words, self.short(phi.name) + "_")
        for phi, words in moves:
            if (phi, words) not in late:
                self._set_phi(phi, words, self.short(phi.name))
        for phi, _ in late:
            name = self.short(phi.name)
            self.tree.named(name + "_")
            self.tree.set(name, self.type_of(phi.name, phi.type), name + "_", several=True)

    def if_(self, condition):
        self.tree.open_if(condition)

    def else_(self):
        self.tree.turn_to_else()

    def loop(self):
        self.tree.open_loop()

    def close(self):
        self.tree.close()

    def word(self, text):
        self.tree.line(text)

    # Names, types, pointers.

    def short(self, name):
        if name not in self.names:
            self.names[name] = f"v{len(self.names)}"
        return self.names[name]

    def ctype(self, kind, space=None):
        if kind[0] == "i" and kind[1] in INTEGERS:
            return INTEGERS[kind[1]]
        if kind[0] in ("half", "float"):
            return kind[0]
        if kind == F64:
            return "ulong"
        if is_matrix(kind):
            return MATRICES[kind[1]]
        if kind[0] == "ptr":
            return SPACES[space or kind[1] or DEVICE] + " uchar*"
        if kind[0] == "vec" and kind[1] <= 4:
            return self.ctype(kind[2]) + (str(kind[1]) if kind[1] > 1 else "")
        raise Unsupported(f"a value of {kind}")

    def type_of(self, name, kind):
        return self.ctype(kind, self.spaces.get(name) if kind[0] == "ptr" else None)

    def _count_uses(self):
        """name -> the block that names it once, else None. Phis name values elsewhere: at the ends of blocks."""
        uses = {}
        for block in self.kernel.blocks.values():
            bodies = [i.body for i in block.instructions] + [block.condition or ""]
            for name in (n for body in bodies for n in VALUE.findall(body)):
                uses[name] = None if name in uses else block.name
            for phi in block.phis:
                for words, _ in phi.incoming:
                    uses.update((word, None) for word in words if word[0] == "%")
        return uses

    # Values.

    def value(self, reader, kind):
        word = reader.next()
        if word[0] == "%":
            return self._named(word)
        if word[0] == "@":
            self.globals.add(word)
            return self.short(word)
        if word in ("undef", "poison", "zeroinitializer", "null"):
            if is_matrix(kind):
                raise Unsupported("a matrix without a value")
            return "nullptr" if kind[0] == "ptr" else f"{self.ctype(kind)}(0)" if kind != BOOL else "false"
        if word in ("true", "false"):
            return word
        if word == "splat":
            reader.next()
            text = self.value(reader, reader.type())
            reader.next()
            return f"{self.ctype(kind)}({text})"
        if word == "<":
            return f"{self.ctype(kind)}({', '.join(self._elements(reader))})"
        if word == "getelementptr":
            while not reader.take("("):
                reader.next()
            reader.skip_attributes()
            text = self.element_pointer(reader)
            reader.take(")")
            return text
        if word == "addrspacecast":
            reader.take("(")
            text = self.value(reader, reader.type())
            reader.next()
            reader.type()
            reader.take(")")
            return text
        if kind[0] == "i":
            number = int(word) & ((1 << kind[1]) - 1)
            if kind[1] == 64:
                return f"{number}ul"
            return f"{number}u" if kind[1] == 32 else f"{self.ctype(kind)}({number})"
        if kind[0] in ("float", "half", "double"):
            return float_text(word, kind[0])
        raise Unsupported("value " + word)

    def _elements(self, reader):
        parts = []
        while True:
            parts.append(self.value(reader, reader.type()))
            if reader.take(">"):
                return parts
            reader.take(",")

    def _named(self, word):
        if word in self.pending:
            text, loads = self.pending.pop(word)
            self.loads = self.loads or loads
            return text
        if word in self.building:
            return self._built(word)
        self.tree.named(self.short(word))
        return self.short(word)

    def _built(self, word):
        kind, parts, loads = self.building.pop(word)
        self.loads = self.loads or loads
        zero = f"{self.ctype(kind[2])}(0)"
        return f"{self.ctype(kind)}({', '.join(part or zero for part in parts)})"

    def operand(self, reader):
        reader.skip_attributes()
        kind = reader.type()
        reader.skip_attributes()
        return kind, self.value(reader, kind)

    def atom(self, text, kind):
        """`text` as a name, for what names a value twice. `kind`: its type, or the text of that."""
        if re.fullmatch(r"\w+", text):
            return text
        name = f"v{len(self.names)}"
        self.names[name] = name
        self.tree.set(name, kind if isinstance(kind, str) else self.ctype(kind), text)
        return name

    def signed(self, kind, text):
        if kind[0] == "vec":
            return f"{SIGNED[kind[2][1]]}{kind[1]}({text})"
        return f"{SIGNED[kind[1]]}({text})"

    # Where values go.

    def put(self, name, kind, text, apart=False):
        """The value of an instruction: in its place of use if there is one near, else in a variable."""
        self.types[name] = kind
        single = name in self.uses and self.uses[name] == self.where
        if single and not apart and len(text) <= LONGEST:
            self.pending[name] = (text, self.loads)
            return
        if name in self.uses:
            self.tree.set(self.short(name), self.type_of(name, kind), text)
        elif apart:
            self.tree.line(text + ";")

    def effect(self, text):
        """A line after which memory may hold something else."""
        self.settle()
        self.tree.line(text)

    def settle(self):
        """Loads that wait for their use are made now."""
        for name in [n for n, (_, loads) in self.pending.items() if loads]:
            text, _ = self.pending.pop(name)
            self.tree.set(self.short(name), self.type_of(name, self.types[name]), text)
        for name in [n for n, (_, _, loads) in self.building.items() if loads]:
            kind = self.building[name][0]
            text = self._built(name)
            self.tree.set(self.short(name), self.ctype(kind), text)

    def _declare_phi(self, phi):
        name = self.short(phi.name)
        self.types[phi.name] = phi.type
        self.tree.types[name] = self.type_of(phi.name, phi.type)
        self.tree.several.add(name)

    def _set_phi(self, phi, words, name):
        reader = Reader("")
        reader.tokens = words
        text = self.value(reader, phi.type)
        self.tree.set(name, self.type_of(phi.name, phi.type), text, several=True)

    # Instructions.

    def _instruction(self, each):
        reader = Reader(each.body)
        reader.skip_attributes()
        reader.next()
        reader.skip_attributes()
        op = each.op
        if op in BINARY or op in SIGNED_BINARY:
            return self._binary(each.name, op, reader)
        if op in CASTS:
            return self._cast(each.name, op, reader)
        method = getattr(self, "_" + op, None)
        if method is None or op not in OPERATIONS:
            raise Unsupported("instruction " + op)
        return method(each, reader)

    def _binary(self, name, op, reader):
        kind = reader.type()
        a = self.value(reader, kind)
        reader.next()
        b = self.value(reader, kind)
        ctype = self.ctype(kind)
        if kind == F64:
            return self.put(name, kind, f"rb_f64_{op[1:]}({a}, {b})")
        if op in SIGNED_BINARY:
            return self.put(name, kind,
                            f"{ctype}({self.signed(kind, a)} {SIGNED_BINARY[op]} {self.signed(kind, b)})")
        if kind == BOOL:
            if op == "xor" and b == "true":
                return self.put(name, kind, "!" + a)
            logic = {"and": "&&", "or": "||", "xor": "!=", "add": "!="}[op]
            return self.put(name, kind, f"({a} {logic} {b})")
        text = f"({a} {BINARY[op]} {b})"
        if kind in (("i", 8), ("i", 16)):
            text = f"{ctype}(uint({a}) {BINARY[op]} uint({b}))"
        elif kind == ("half",):
            text = ctype + text
        return self.put(name, kind, text)

    def _fneg(self, each, reader):
        kind, a = self.operand(reader)
        return self.put(each.name, kind, f"({a} ^ 0x8000000000000000ul)" if kind == F64 else f"(-{a})")

    def _icmp(self, each, reader):
        predicate = reader.next()
        reader.skip_attributes()
        kind = reader.type()
        a = self.value(reader, kind)
        reader.next()
        b = self.value(reader, kind)
        if kind[0] == "vec":
            raise Unsupported("compared vectors")
        if predicate not in ("eq", "ne"):
            if predicate[0] == "s":
                a, b = self.signed(kind, a), self.signed(kind, b)
            predicate = predicate[1:]
        return self.put(each.name, BOOL, f"({a} {COMPARED[predicate]} {b})")

    def _fcmp(self, each, reader):
        predicate = reader.next()
        while reader.peek() not in ("half", "float", "double"):
            if reader.peek() == "<":
                raise Unsupported("compared vectors")
            predicate = reader.next() if reader.peek() not in FAST else (reader.next(), predicate)[1]
        kind = reader.type()
        a = self.value(reader, kind)
        reader.next()
        b = self.value(reader, kind)
        if kind == F64:
            return self.put(each.name, BOOL, self._compare_f64(predicate, a, b))
        if predicate in ("ord", "uno", "one", "ueq"):
            a, b = self.atom(a, kind), self.atom(b, kind)
            text = f"({a} == {a} && {b} == {b})" if predicate in ("ord", "uno") else f"({a} < {b} || {a} > {b})"
            return self.put(each.name, BOOL, ("!" if predicate[0] == "u" else "") + text)
        if predicate[0] == "o" or predicate == "une":
            return self.put(each.name, BOOL, f"({a} {COMPARED[predicate[1:]]} {b})")
        return self.put(each.name, BOOL, f"!({a} {COMPARED[OPPOSITE[predicate[1:]]]} {b})")

    def _compare_f64(self, predicate, a, b):
        if predicate in ("ord", "uno"):
            return f"{'!' if predicate == 'ord' else ''}rb_f64_unordered({a}, {b})"
        if predicate in ("one", "ueq"):
            return f"{'!' if predicate == 'ueq' else ''}rb_f64_less_or_greater({a}, {b})"
        negated = predicate[0] == "u"
        name = OPPOSITE[predicate[1:]] if negated else predicate[1:]
        if name in ("gt", "ge"):
            a, b, name = b, a, "l" + name[1]
        text = {"eq": "rb_f64_equal", "lt": "rb_f64_less", "le": "rb_f64_at_most"}[name]
        return f"{'!' if negated else ''}{text}({a}, {b})"

    def _select(self, each, reader):
        kind, condition = self.operand(reader)
        if kind != BOOL:
            raise Unsupported("a choice by a vector")
        reader.next()
        kind, a = self.operand(reader)
        reader.next()
        _, b = self.operand(reader)
        return self.put(each.name, kind, f"({condition} ? {a} : {b})")

    def _cast(self, name, op, reader):
        source, a = self.operand(reader)
        if op == "freeze":
            return self.put(name, source, a)
        reader.next()
        kind = reader.type()
        return self.put(name, kind, a if op == "addrspacecast" else self._cast_text(op, source, kind, a, name))

    def _cast_text(self, op, source, kind, a, name):
        target = self.ctype(kind)
        if op in ("ptrtoint", "inttoptr"):
            return f"reinterpret_cast<{self.type_of(name, kind)}>({a})"
        if op == "bitcast":
            return a if target == self.ctype(source) else f"as_type<{target}>({a})"
        if F64 in (source, kind):
            return cast_f64(op, source, kind, a)
        if op == "trunc" and kind == BOOL:
            return f"(({a} & 1) != 0)"
        if op == "sext" and source == BOOL:
            return f"({a} ? {target}(~{target}(0)) : {target}(0))"
        if op in ("sext", "sitofp"):
            a = self.signed(source, a)
        if op == "fptosi":
            a = self.signed(kind, a)
        return f"{target}({a})"

    def _getelementptr(self, each, reader):
        kind = ("ptr", 0)
        return self.put(each.name, kind, self.element_pointer(reader))

    def _extractelement(self, each, reader):
        kind, vector = self.operand(reader)
        reader.next()
        _, index = self.operand(reader)
        return self.put(each.name, kind[2], f"{vector}[{index}]" if kind[1] > 1 else vector)

    def _insertelement(self, each, reader):
        reader.skip_attributes()
        kind = reader.type()
        word = reader.peek()
        if word in self.building:
            reader.next()
            _, parts, self.loads = self.building.pop(word)
        elif word in ("undef", "poison"):
            reader.next()
            parts = [None] * kind[1]
        else:
            vector = self.atom(self.value(reader, kind), kind)
            parts = [f"{vector}[{i}]" for i in range(kind[1])]
        reader.next()
        _, element = self.operand(reader)
        reader.next()
        parts[int(reader.tokens[reader.at + 1])] = element
        self.types[each.name] = kind
        self.building[each.name] = (kind, parts, self.loads)
        if self.uses.get(each.name) != self.where or kind[1] == 1:
            text = self._built(each.name) if kind[1] > 1 else self.building.pop(each.name)[1][0]
            self.put(each.name, kind, text)

    def _shufflevector(self, each, reader):
        kind, a = self.operand(reader)
        reader.next()
        _, b = self.operand(reader)
        reader.next()
        mask = reader.type()
        word = reader.next()
        picks = [0] * mask[1]
        if word == "<":
            picks = [int(x) if x.isdigit() else 0 for x in self._mask(reader)]
        a = self.atom(a, kind)
        b = self.atom(b, kind) if any(x >= kind[1] for x in picks) else None
        out = ("vec", mask[1], kind[2])
        element = lambda x: (f"{a}[{x}]" if x < kind[1] else f"{b}[{x - kind[1]}]") if kind[1] > 1 else a
        return self.put(each.name, out, f"{self.ctype(out)}({', '.join(map(element, picks))})")

    @staticmethod
    def _mask(reader):
        words = []
        while True:
            reader.type()
            words.append(reader.next())
            if reader.take(">"):
                return words
            reader.take(",")

    def _alloca(self, each, reader):
        kind = reader.type()
        size, _ = self.module.layout(kind)
        name = self.short(each.name)
        self.memory.append(f" uint4 {name}_[{(size + 15) // 16}];")
        self.memory.append(f" thread uchar* {name} = reinterpret_cast<thread uchar*>({name}_);")

    def _call(self, each, reader):
        reader.skip_attributes()
        kind = reader.type()
        function = reader.next()[1:]
        reader.next()
        if function.startswith(SILENT):
            return None
        suffix = r"(\.(f32|i32|f16|i64|v2f16|i16|i8|f64|v2i16|v4i8))+$"
        plain = re.sub(suffix, "", function.removeprefix("llvm."))
        if plain.startswith(("memcpy", "memset")):
            return self._move(plain, each.body)
        if plain.startswith(PREFIX):
            return self._matrix_call(each, kind, plain, reader)
        arguments = []
        while not reader.take(")"):
            arguments.append(self.operand(reader))
            reader.take(",")
        found = CALLS.get(plain)
        if found is None:
            raise Unsupported("call of " + function)
        return found(self, each.name, kind, arguments)

    # The function.

    def text(self):
        lines = []
        for name in sorted(self.globals):
            short = self.short(name)
            if name in self.module.shared:
                size = self.module.shared[name]
                words = (size + 15) // 16
                self.shared += words * 16
                if size == 0:
                    lines.append(f" threadgroup uchar* {short} = dynamic_;")
                else:
                    lines.append(f" RB_SHARED uint4 {short}_[{words}];")
                    lines.append(f" threadgroup uchar* {short} = reinterpret_cast<threadgroup uchar*>({short}_);")
            elif name in self.module.tables:
                table = list(self.module.tables).index(name)
                lines.append(f" constant uchar* {short} = reinterpret_cast<constant uchar*>(rb_table{table});")
            else:
                raise Unsupported("global " + name)
        head = (f"// kernel {self.kernel.name} threads {self.kernel.threads} shared {self.shared}\n"
                f"RB_ENTRY({self.kernel.threads}) void {self.kernel.name}(constant uchar* p [[buffer(0)]],\n"
                "    constant uchar* launch_ [[buffer(1)]], threadgroup uchar* dynamic_ RB_DYNAMIC,\n"
                "    uint3 thread_ [[thread_position_in_threadgroup]],\n"
                "    uint3 group_ [[threadgroup_position_in_grid]],\n"
                "    uint lane_ [[thread_index_in_simdgroup]]) {\n")
        return head + "\n".join(lines + self.memory + self.tree.render()) + "\n}\n"


FAST = ("fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")
OPERATIONS = frozenset("fneg icmp fcmp select getelementptr load store extractelement insertelement shufflevector alloca "
                       "fence atomicrmw call".split())


def float_text(word, kind):
    if word.startswith("0xH"):
        return f"as_type<half>(ushort(0x{word[3:]}))"
    if kind == "double":
        bits = int(word, 16) if word.startswith("0x") else struct.unpack(">Q", struct.pack(">d", float(word)))[0]
        return f"0x{bits:x}ul"
    value = struct.unpack(">d", struct.pack(">Q", int(word, 16)))[0] if word.startswith("0x") else float(word)
    if kind == "half":
        raise Unsupported("half " + word)
    return f"as_type<float>(0x{struct.unpack('>I', struct.pack('>f', value))[0]:08x}u)"


def cast_f64(op, source, kind, a):
    """Conversions from and to f64; small integers pass through 32 bits."""
    if op in ("uitofp", "sitofp"):
        wide = "ulong" if source[1] == 64 else "uint"
        if op == "sitofp":
            a, wide = f"{SIGNED[max(8, source[1])]}({a})", wide[1:]
        return f"rb_f64_from_{wide}({a})"
    if op in ("fptoui", "fptosi"):
        wide = "ulong" if kind[1] == 64 else "uint"
        unsigned = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}[kind[1]]
        return f"{unsigned}(rb_f64_to_{wide if op == 'fptoui' else wide[1:]}({a}))"
    if op == "fpext":
        return f"rb_f64_from_float(float({a}))"
    return f"rb_f64_to_{kind[0]}({a})"
