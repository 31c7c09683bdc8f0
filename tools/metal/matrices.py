"""Prints what kernels do with simdgroup matrices (backends/metal/kernels/simdgroup_matrix.h). In IR a matrix is a pointer
into an address space of its own, of which nothing but its name is known; in the text, a variable that functions set."""
from ir import Unsupported

# Address space -> type.
MATRICES = {100: "simdgroup_float8x8", 101: "simdgroup_half8x8"}
ELEMENTS = {100: "float", 101: "half"}
PREFIX = "rb_metal_matrix_"
ACROSS = "ulong2(0ul, 0ul), true"  # from the matrix's origin on, transposed


def is_matrix(kind):
    return kind[0] == "ptr" and kind[1] in MATRICES


class Matrices:
    """A part of text.py's Writer."""

    def _matrix_call(self, each, kind, function, reader):
        """`reader` stands behind the function's bracket."""
        action = function.removeprefix(PREFIX).split("_")[0]
        if action == "zero":
            return self.put(each.name, kind, "make_filled_simdgroup_matrix<float, 8>(0.0f)", apart=True)
        method = {"load": self._matrix_load, "multiply": self._matrix_multiply, "store": self._matrix_store}.get(action)
        if method is None:
            raise Unsupported("call of " + function)
        return method(each, kind, function, reader)

    def _set_by_call(self, name, kind, call):
        """All lanes take part in the call: it stays where it is."""
        short = self.short(name)
        self.types[name], self.tree.types[short] = kind, self.ctype(kind)
        self.tree.named(short)
        self.tree.line(call.format(short))

    def _shared_elements(self, reader, element, const=""):
        pointer, space = self.pointer(reader)
        if space != "threadgroup":
            raise Unsupported(f"a matrix in {space} memory")
        return f"reinterpret_cast<{const}threadgroup {element}*>({pointer})"

    def _pitch(self, reader):
        reader.next()
        return f"ulong({self.operand(reader)[1]})"

    def _matrix_load(self, each, kind, function, reader):
        source = self._shared_elements(reader, ELEMENTS[kind[1]], "const ")
        arguments = [source, self._pitch(reader)] + ([ACROSS] if function.endswith("_across") else [])
        self._set_by_call(each.name, kind, f"simdgroup_load({{}}, {', '.join(arguments)});")

    def _matrix_multiply(self, each, kind, _, reader):
        parts = []
        for _ in range(3):
            parts.append(self.operand(reader)[1])
            reader.next()
        self._set_by_call(each.name, kind, f"simdgroup_multiply_accumulate({{}}, {', '.join(parts)});")

    def _matrix_store(self, _, __, ___, reader):
        kind, matrix = self.operand(reader)
        reader.next()
        target = self._shared_elements(reader, ELEMENTS[kind[1]])
        self.effect(f"simdgroup_store({matrix}, {target}, {self._pitch(reader)});")
