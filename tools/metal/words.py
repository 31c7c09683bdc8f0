"""The words that printed text may consist of, each with the place that shows that Apple's compiler takes it: chapters of
the Metal Shading Language Specification (Apple, version 3.0), or C++14 (ISO/IEC 14882:2014), on which it is based."""
import re

SOURCES = {
    "C++14": "bool break const constexpr continue else false for if inline int long nullptr reinterpret_cast return short "
             "struct true void char namespace using",
    "Scalar Data Types": "uchar ushort uint ulong half float",
    "Vector Data Types": "uchar2 uchar3 uchar4 ushort2 ushort3 ushort4 uint2 uint3 uint4 ulong2 ulong4 half2 half4 float2 "
                         "float4 x y z",
    "SIMD-Group Matrix Data Types": "simdgroup_float8x8 simdgroup_half8x8",
    "Atomic Data Types": "atomic_uint atomic_float",
    "Type Conversions and Reinterpreting Data": "as_type",
    "Address Spaces": "device constant thread threadgroup",
    "Attributes for functions, buffers and compute kernels' arguments":
        "kernel max_total_threads_per_threadgroup buffer thread_position_in_threadgroup threadgroup_position_in_grid "
        "thread_index_in_simdgroup",
    "Common and Math Functions": "metal fabs fma floor ceil rint fmax fmin exp2 precise sqrt",
    "Integer Functions": "abs clz ctz max min popcount",
    "Synchronization and SIMD-Group Functions":
        "threadgroup_barrier simdgroup_barrier simd_shuffle simd_shuffle_xor mem_flags mem_device mem_threadgroup",
    "SIMD-Group Matrix Functions":
        "make_filled_simdgroup_matrix simdgroup_load simdgroup_store simdgroup_multiply_accumulate",
    "Atomic Functions": "atomic_fetch_add_explicit atomic_fetch_max_explicit atomic_fetch_min_explicit "
                        "atomic_fetch_and_explicit atomic_fetch_or_explicit atomic_load_explicit atomic_store_explicit "
                        "memory_order_relaxed",
    "version 3.2, Fence Functions, behind __METAL_VERSION__":
        "atomic_thread_fence memory_order_seq_cst thread_scope_device __METAL_VERSION__",
    "our own": "p launch_ dynamic_ thread_ group_ lane_ i RB_ENTRY RB_DYNAMIC RB_SHARED",
}
ALLOWED = {word for words in SOURCES.values() for word in words.split()}
# Variables, our functions and tables.
OWN = re.compile(r"v\d+_?|rb_\w+")
# Words of Metal and C++14 that are taken: no name of ours may be one.
KEYWORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor case catch class compl const_cast decltype default delete do double "
    "dynamic_cast enum explicit export extern friend goto mutable new noexcept not not_eq operator or or_eq private "
    "protected public register signed sizeof static static_assert static_cast switch template this thread_local throw try "
    "typedef typeid typename union unsigned virtual volatile wchar_t while xor xor_eq fragment vertex sampler texture2d "
    "texture2d_array array patch ray_data object_data mesh object visible intersection quad packed bfloat size_t "
    "ptrdiff_t".split())
WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
CAST = re.compile(r"\((?:const )?(?:device|constant|thread|threadgroup) \w+ ?\*\)")


def code_only(text):
    return re.sub(r"//[^\n]*", "", text)


def complaints(name, text):
    """What is wrong with the text of kernel `name`."""
    out = []
    code = code_only(text)
    for word in sorted(set(WORD.findall(code))):
        if word in KEYWORDS or (word not in ALLOWED and word != name and not OWN.fullmatch(word)):
            out.append(f"the word {word}")
    if CAST.search(code):
        out.append("a cast in C's form between pointers")
    if name in ALLOWED or name in KEYWORDS:
        out.append("a kernel's name that is a word of the language")
    return out
