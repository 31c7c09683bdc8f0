"""Turns a kernel's graph of blocks into nested ifs and loops. `opt` has structurised it: every branch falls through,
continues its loop or leaves it, and anything else is Unsupported."""
from ir import Unsupported


class Graph:
    """Dominators, loops and joins of a kernel's blocks."""

    def __init__(self, kernel):
        self.blocks = kernel.blocks
        self.entry = next(iter(self.blocks))
        self.order = self._reverse_post_order()
        self.predecessors = {b: [] for b in self.order}
        for b in self.order:
            for s in self.blocks[b].successors:
                self.predecessors[s].append(b)
        self.dominator = self._dominators()
        self.loops = self._loops()
        self.exits = {}  # header -> the block behind its loop
        for header, body in self.loops.items():
            out = {s for b in body for s in self.blocks[b].successors if s not in body}
            if len(out) > 1:
                raise Unsupported(f"a loop with {len(out)} exits")
            self.exits[header] = next(iter(out), None)
        self.forward = {b: [p for p in self.predecessors[b] if self.order[p] < self.order[b]] for b in self.order}
        self.children = {b: [] for b in self.order}
        for b, d in self.dominator.items():
            if b != d:
                self.children[d].append(b)

    def _reverse_post_order(self):
        done, seen = [], {self.entry}
        stack = [(self.entry, iter(self.blocks[self.entry].successors))]
        while stack:
            b, rest = stack[-1]
            for s in rest:
                if s not in seen:
                    seen.add(s)
                    stack.append((s, iter(self.blocks[s].successors)))
                    break
            else:
                done.append(b)
                stack.pop()
        return {b: i for i, b in enumerate(reversed(done))}

    def _dominators(self):
        found = {self.entry: self.entry}

        def meet(a, b):
            while a != b:
                while self.order[a] > self.order[b]:
                    a = found[a]
                while self.order[b] > self.order[a]:
                    b = found[b]
            return a

        changed = True
        while changed:
            changed = False
            for b in self.order:
                if b == self.entry:
                    continue
                new = None
                for p in self.predecessors[b]:
                    if p in found:
                        new = p if new is None else meet(p, new)
                if found.get(b) != new:
                    found[b] = new
                    changed = True
        return found

    def _dominates(self, a, b):
        while b != self.entry and b != a:
            b = self.dominator[b]
        return a == b

    def _loops(self):
        """Header -> the blocks of its loop."""
        loops = {}
        for b in self.order:
            for header in self.blocks[b].successors:
                if self._dominates(header, b):
                    body = loops.setdefault(header, {header})
                    todo = [b]
                    while todo:
                        x = todo.pop()
                        if x not in body:
                            body.add(x)
                            todo += self.predecessors[x]
        return loops

    def join_behind(self, b, follow, loop):
        """The block where the branches of `b` meet again before `follow`; None if there is none."""
        inside = self.loops[loop] if loop else None
        joins = [c for c in self.children[b]
                 if len(self.forward[c]) > 1 and c != follow and (inside is None or c in inside)]
        # What an inner loop leaves to comes behind that loop.
        for header, end in self.exits.items():
            if header != loop and (inside is None or header in inside) and self.order[header] > self.order[b]:
                joins = [c for c in joins if c != end]
        if len(joins) > 1:
            raise Unsupported("two joins of one branch")
        return joins[0] if joins else None


class Flow:
    """Walks the graph. The writer has: block(b), condition(b), copies(from, to), opened if_(condition), else_(), loop(),
    close(), and word(text) for break and continue."""

    def __init__(self, kernel, writer):
        self.graph = Graph(kernel)
        self.writer = writer
        self._emit(self.graph.entry, None, None)

    def _emit(self, b, follow, loop):
        """Block `b` and what follows it up to `follow`, within `loop` (a header)."""
        graph = self.graph
        while b is not None:
            if b not in graph.loops:
                b = self._body(b, follow, loop)
                continue
            end = graph.exits[b]
            self.writer.loop()
            self._emit_inside(b)
            self.writer.close()
            if end is None or end == follow:
                return
            if loop and end in (loop, graph.exits[loop]):
                raise Unsupported("an exit that is another loop's")
            b = end

    def _emit_inside(self, header):
        b = self._body(header, header, header)
        self._emit(b, header, header)

    def _body(self, b, follow, loop):
        """One block with its branches; returns the block to go on with."""
        graph = self.graph
        self.writer.block(b)
        successors = graph.blocks[b].successors
        if not successors:
            return None
        if len(successors) == 1:
            return self._go(b, successors[0], follow, loop)
        join = graph.join_behind(b, follow, loop)
        inner = follow if join is None else join
        self.writer.if_(self.writer.condition(b))
        self._arm(b, successors[0], inner, loop)
        self.writer.else_()
        self._arm(b, successors[1], inner, loop)
        self.writer.close()
        return join

    def _arm(self, b, to, follow, loop):
        self._emit(self._go(b, to, follow, loop), follow, loop)

    def _go(self, b, to, follow, loop):
        """The edge from `b`; returns `to` if its text comes here."""
        self.writer.copies(b, to)
        if to == follow:
            return None  # where this text ends anyway, in a loop's last place too
        if loop and to == loop:
            self.writer.word("continue;")
            return None
        if loop and to == self.graph.exits[loop]:
            self.writer.word("break;")
            return None
        if len(self.graph.forward[to]) == 1:
            return to
        raise Unsupported(f"a jump from {b} to {to}")
