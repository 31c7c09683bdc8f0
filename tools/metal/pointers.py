"""Which memory each pointer of a kernel points to. IR has flat pointers; Metal has none. A flat pointer is of device
memory unless it comes of a pointer to other memory, by arithmetic or by way of a member of a local structure."""
import re
from dataclasses import dataclass

from ir import CONSTANT, DEVICE, THREAD, Unsupported

POINTER = r"ptr(?: addrspace\(\d+\))? (?:noundef |nonnull |align \d+ )*"
OPERAND = re.compile(r"\b" + POINTER + r"(%\"[^\"]*\"|%[\w.$-]+|@\"[^\"]*\"|@[\w.$]+)")
STORED = re.compile(r"store ptr (%[\w.$-]+), ptr(?: addrspace\(\d\))? (%[\w.$-]+)")
LOADED = re.compile(r"load ptr, ptr(?: addrspace\(\d\))? (%[\w.$-]+)")
MEMBER = re.compile(r"getelementptr (?:inbounds |nuw |nusw )*i8, ptr(?: addrspace\(\d\))? (%[\w.$-]+), i(?:32|64) (\d+)$")


@dataclass(frozen=True)
class Place:
    """In a variable of the thread: `offset` bytes behind its start, or that and an index that is not known."""
    variable: str
    offset: int
    exact: bool

    def may_meet(self, member, size):
        """Whether `size` bytes from here on can be those of a pointer that is kept in `member`."""
        if member.variable != self.variable or member.offset + 8 <= self.offset:
            return False
        return not self.exact or member.offset < self.offset + size


class Pointers:
    """`spaces`: of each pointer that is named; `instead`: loads of pointers to the thread's own variables -> the variable;
    `dropped`: stores of such pointers, which nothing reads then."""

    def __init__(self, module, kernel):
        self.module, self.kernel = module, kernel
        self.spaces = {kernel.argument: CONSTANT}
        self.instead, self.dropped = {}, set()
        self.places = {}  # pointer -> Place
        self.instructions = [i for block in kernel.blocks.values() for i in block.instructions]
        self._find_places()
        self._forward_variables()
        self._find_spaces()

    def of_words(self, words):
        """The space of a pointer written with these tokens; None where it is not known."""
        for word in words:
            if word[0] == "%":
                return self.spaces.get(word)
            if word[0] == "@":
                return self.module.spaces[word]
        return None

    def _find_places(self):
        for i in self.instructions:
            if i.op == "alloca":
                self.places[i.name] = Place(i.name, 0, True)
            elif i.op in ("addrspacecast", "getelementptr", "freeze"):
                found = OPERAND.search(i.body)
                base = self.places.get(found.group(1)) if found else None
                if base is None:
                    continue
                member = MEMBER.match(i.body)
                offset = int(member.group(2)) if member else 0
                exact = base.exact and (member is not None or i.op != "getelementptr")
                self.places[i.name] = Place(base.variable, base.offset + offset, exact)

    def _forward_variables(self):
        """A member that holds the address of a variable: the variable is named instead of the member."""
        members = {}  # place -> variable
        for i in self.instructions:
            stored = STORED.match(i.body)
            variable = self.places.get(stored.group(1)) if stored else None
            if variable is not None:
                place = self.places.get(stored.group(2))
                if variable != Place(variable.variable, 0, True) or place is None or not place.exact or \
                        members.get(place, variable.variable) != variable.variable:
                    raise Unsupported("a stored pointer to the thread's own memory: " + i.body)
                members[place] = variable.variable
                self.dropped.add(id(i))
        if members:
            for i in self.instructions:
                self._check_other_use(i, members)

    def _check_other_use(self, each, members):
        loaded, stored = LOADED.match(each.body), STORED.match(each.body)
        if loaded:
            place = self.places.get(loaded.group(1))
            if place in members:
                self.instead[each.name] = members[place]
            elif place is not None and any(place.may_meet(m, 8) for m in members):
                raise Unsupported("a pointer from an unknown member: " + each.body)
        elif stored and id(each) not in self.dropped and self.places.get(stored.group(2)) in members:
            raise Unsupported("pointers of two kinds in one member: " + each.body)
        elif each.op == "call" and "memcpy" in each.body:
            place = self.places.get(re.findall(r"[%@][\w.$-]+", each.body)[-1])
            size = int(re.search(r", i64 (\d+), i1", each.body).group(1))
            if place is not None and any(place.may_meet(m, size) for m in members):
                raise Unsupported("a copy of pointers to the thread's own memory: " + each.body)

    def _find_spaces(self):
        """Spaces pass from pointer to pointer until nothing changes."""
        sources = []
        for block in self.kernel.blocks.values():
            for phi in block.phis:
                if phi.type[0] == "ptr":
                    sources.append((phi.name, [words for words, _ in phi.incoming]))
        for i in self.instructions:
            if i.op == "alloca" or i.name in self.instead:
                self.spaces[i.name] = THREAD
            elif i.op == "call" and "implicitarg.ptr" in i.body:
                self.spaces[i.name] = CONSTANT
            elif LOADED.match(i.body):
                self.spaces[i.name] = DEVICE
            elif i.op in ("addrspacecast", "getelementptr", "select", "freeze"):
                sources.append((i.name, [[word] for word in OPERAND.findall(i.body)]))
        changed = True
        while changed:
            changed = False
            for name, values in sources:
                found = {self.of_words(words) for words in values} - {None}
                if len(found) > 1:
                    raise Unsupported(f"pointers of two spaces meet in {name}")
                if found and self.spaces.get(name) not in found:
                    self.spaces[name] = found.pop()
                    changed = True
