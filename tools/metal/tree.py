"""The text of a function as a tree of scopes: where each variable is declared follows from where it is named."""


def whole(text):
    """`text` without the brackets around it, for a place that has its own."""
    depth = 0
    if not text.startswith("(") or not text.endswith(")"):
        return text
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and at + 1 < len(text):
            return text
    return text[1:-1]


class Scope:
    def __init__(self, parent):
        self.parent = parent
        self.depth = 0 if parent is None else parent.depth + 1
        self.items = []  # lines, Set, If, Loop
        self.declared = []  # names of variables that belong here but are set further inside

    def common(self, other):
        a, b = self, other
        while a is not b:
            if a.depth >= b.depth:
                a = a.parent
            else:
                b = b.parent
        return a


class Set:
    """A variable gets a value."""

    def __init__(self, name, text):
        self.name, self.text = name, text


class If:
    def __init__(self, condition, yes, no):
        self.condition, self.yes, self.no = condition, yes, no


class Loop:
    def __init__(self, body):
        self.body = body


class Tree:
    """What a function does. Variables: name -> the text of its type; `several`: set in more than one place."""

    def __init__(self):
        self.root = self.scope = Scope(None)
        self.types, self.homes, self.several = {}, {}, set()
        self.stack = []

    def named(self, name):
        """The variable is named in the open scope, or set there."""
        home = self.homes.get(name)
        self.homes[name] = self.scope if home is None else home.common(self.scope)

    def set(self, name, kind, text, several=False):
        self.types[name] = kind
        if several:
            self.several.add(name)
        self.named(name)
        self.scope.items.append(Set(name, text))

    def line(self, text):
        self.scope.items.append(text)

    def open_if(self, condition):
        yes, no = Scope(self.scope), Scope(self.scope)
        self.scope.items.append(If(condition, yes, no))
        self.stack.append((self.scope, no))
        self.scope = yes

    def turn_to_else(self):
        self.scope = self.stack[-1][1]

    def open_loop(self):
        body = Scope(self.scope)
        self.scope.items.append(Loop(body))
        self.stack.append((self.scope, None))
        self.scope = body

    def close(self):
        self.scope = self.stack.pop()[0]

    def render(self):
        """The lines between a function's braces."""
        placed = self._placed(self.root, set())
        for name, home in self.homes.items():
            if name in self.types and name not in placed:
                home.declared.append(name)
        out = []
        self._render(self.root, placed, 1, out)
        return out

    def _placed(self, scope, placed):
        """The variables that are declared where they are set."""
        for item in scope.items:
            if isinstance(item, Set):
                if item.name not in self.several and self.homes[item.name] is scope:
                    placed.add(item.name)
            elif isinstance(item, If):
                self._placed(item.yes, placed)
                self._placed(item.no, placed)
            elif isinstance(item, Loop):
                self._placed(item.body, placed)
        return placed

    def _render(self, scope, placed, depth, out):
        space = " " * depth
        by_type = {}
        for name in scope.declared:
            by_type.setdefault(self.types[name], []).append(name)
        for kind, names in by_type.items():
            if kind.endswith("*"):
                names = [names[0]] + ["*" + name for name in names[1:]]
            out.append(f"{space}{kind} {', '.join(names)};")
        for item in scope.items:
            if isinstance(item, str):
                out.append(space + item)
            elif isinstance(item, Set):
                kind = self.types[item.name] + " " if item.name in placed else ""
                out.append(f"{space}{kind}{item.name} = {whole(item.text)};")
            elif isinstance(item, Loop):
                out.append(space + "for (;;) {")
                self._render(item.body, placed, depth + 1, out)
                out.append(space + "}")
            else:
                self._render_if(item, placed, depth, out)

    def _render_if(self, item, placed, depth, out):
        space = " " * depth
        yes, no, condition = item.yes, item.no, item.condition
        if not yes.items and not no.items:
            return
        if not yes.items:
            yes, no = no, None
            condition = condition[1:] if condition.startswith("!") else "!" + condition
        out.append(f"{space}if ({whole(condition)}) {{")
        self._render(yes, placed, depth + 1, out)
        if no is not None and no.items:
            out.append(space + "} else {")
            self._render(no, placed, depth + 1, out)
        out.append(space + "}")
