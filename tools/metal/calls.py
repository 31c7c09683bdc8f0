"""The functions that kernels' IR calls, and what the text names for them."""
from ir import Unsupported

SIGNED = {8: "char", 16: "short", 32: "int", 64: "long"}
# Hints and marks without an effect.
SILENT = ("llvm.amdgcn.sched.barrier", "llvm.assume", "llvm.prefetch", "llvm.experimental.noalias", "llvm.lifetime")
F64 = ("double",)


def named(name, f64=None):
    """A function with the same arguments. `f64`: that for doubles."""
    def call(writer, target, kind, arguments):
        chosen = f64 if F64 in (kind, arguments[0][0]) else name
        if chosen is None:
            raise Unsupported(f"{name or f64} of {kind}")
        writer.put(target, kind, f"{chosen}({', '.join(a for _, a in arguments)})")
    return call


def first_named(name):
    """The same with the first argument alone: the second says what the instruction may assume."""
    def call(writer, target, kind, arguments):
        writer.put(target, kind, f"{name}({arguments[0][1]})")
    return call


def signed(name):
    def call(writer, target, kind, arguments):
        of = ", ".join(writer.signed(kind, a) for k, a in arguments if k == kind)
        writer.put(target, kind, f"{writer.ctype(kind)}({name}({of}))")
    return call


def small_unsigned(name):
    """min and max exist for all unsigned types; both arguments get the same one."""
    def call(writer, target, kind, arguments):
        writer.put(target, kind, f"{name}({arguments[0][1]}, {arguments[1][1]})")
    return call


def absolute(writer, target, kind, arguments):
    a = arguments[0][1]
    writer.put(target, kind, f"({a} & 0x7ffffffffffffffful)" if kind == F64 else f"fabs({a})")


def copy_sign(writer, target, kind, arguments):
    if kind != ("float",):
        raise Unsupported(f"copysign of {kind}")
    a, b = (text for _, text in arguments)
    writer.put(target, kind, f"as_type<float>((as_type<uint>({a}) & 2147483647u) | (as_type<uint>({b}) & 2147483648u))")


def saturating_sub(writer, target, kind, arguments):
    a, b = (writer.atom(text, kind) for _, text in arguments)
    writer.put(target, kind, f"({a} > {b} ? {writer.ctype(kind)}({a} - {b}) : {writer.ctype(kind)}(0))")


def funnel_left(writer, target, kind, arguments):
    if kind != ("i", 64):
        raise Unsupported(f"fshl of {kind}")
    writer.put(target, kind, f"rb_funnel_left({', '.join(a for _, a in arguments)})")


def reciprocal(writer, target, kind, arguments):
    writer.put(target, kind, f"(1.0f / {arguments[0][1]})")


def dot_bytes(writer, target, kind, arguments):
    """v_dot4_i32_iu8: pairs of a sign and a word, then the sum."""
    values = [a for _, a in arguments]
    if (values[0], values[2], values[5]) != ("true", "true", "false"):
        raise Unsupported("a dot product of unsigned bytes")
    writer.put(target, kind, f"rb_dot4({values[1]}, {values[3]}, {values[4]})")


def dot_halves(writer, target, kind, arguments):
    writer.put(target, kind, f"rb_dot2({', '.join(a for _, a in arguments[:3])})")


def pick_bytes(writer, target, kind, arguments):
    """v_perm_b32: selectors 0 to 3 name bytes of the second word, 4 to 7 of the first."""
    a, b, pick = (text for _, text in arguments)
    if not pick.endswith("u") or not pick[:-1].isdigit():
        return writer.put(target, kind, f"rb_pick_bytes({a}, {b}, {pick})")
    selectors = int(pick[:-1]).to_bytes(4, "little")
    if max(selectors) > 7:
        raise Unsupported("a selector above 7")
    a = writer.atom(a, kind) if any(s > 3 for s in selectors) else a
    b = writer.atom(b, kind) if any(s < 4 for s in selectors) else b
    parts = (f"as_type<uchar4>({b})[{s}]" if s < 4 else f"as_type<uchar4>({a})[{s - 4}]" for s in selectors)
    return writer.put(target, kind, f"as_type<uint>(uchar4({', '.join(parts)}))")


def shuffle(name):
    """All lanes take part: it stays where it is, whatever becomes of its value."""
    def call(writer, target, kind, arguments):
        writer.put(target, kind, f"{name}({arguments[0][1]}, ushort({arguments[1][1]}))", apart=True)
    return call


def place(text):
    def call(writer, target, kind, arguments):
        writer.put(target, kind, text)
    return call


def effect(text):
    def call(writer, target, kind, arguments):
        writer.effect(text)
    return call


CALLS = {
    "fabs": absolute,
    "copysign": copy_sign,
    "sqrt": named("precise::sqrt", "rb_f64_sqrt"),
    "fma": named("fma", "rb_f64_fma"),
    "floor": named("floor", "rb_f64_floor"),
    "ceil": named("ceil", "rb_f64_ceil"),
    "rint": named("rint"),
    "maxnum": named("fmax"),
    "minnum": named("fmin"),
    "umax": small_unsigned("max"),
    "umin": small_unsigned("min"),
    "smax": signed("max"),
    "smin": signed("min"),
    "abs": signed("abs"),
    "ctlz": first_named("clz"),
    "cttz": first_named("ctz"),
    "ctpop": named("popcount"),
    "fshl": funnel_left,
    "usub.sat": saturating_sub,
    "amdgcn.exp2": named("exp2"),
    "amdgcn.rcp": reciprocal,
    "amdgcn.sudot4": dot_bytes,
    "amdgcn.fdot2": dot_halves,
    "amdgcn.perm": pick_bytes,
    "amdgcn.mbcnt.lo": place("lane_"),
    "amdgcn.workitem.id.x": place("thread_.x"),
    "amdgcn.workgroup.id.x": place("group_.x"),
    "amdgcn.workgroup.id.y": place("group_.y"),
    "amdgcn.workgroup.id.z": place("group_.z"),
    "amdgcn.implicitarg.ptr": place("launch_"),
    "amdgcn.s.barrier": effect("threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);"),
    "amdgcn.wave.barrier": effect("simdgroup_barrier(mem_flags::mem_threadgroup);"),
    "rb_metal_shuffle": shuffle("simd_shuffle"),
    "rb_metal_shuffle_xor": shuffle("simd_shuffle_xor"),
}
