#!/usr/bin/env python3
"""tools/metal over small IR, written by hand in the forms that opt leaves: what is printed, and what is refused."""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools/metal")]

from ir import Unsupported
from print import family_text
from words import complaints

HEAD = '%"struct.P" = type { ptr, i32, i32, double }\n'
TAIL = '\nattributes #0 = { "amdgpu-flat-work-group-size"="1,64" }\n'
PARAMETERS = 'ptr addrspace(4) nocapture readonly byref(%"struct.P") align 8 %0'


def printed(body, head="", name="k", arguments=PARAMETERS):
    ir = f"{HEAD}{head}define protected amdgpu_kernel void @{name}({arguments}) local_unnamed_addr #0 {{\n{body}\n}}{TAIL}"
    return family_text(ir, "").split("{\n", 1)[1]


def lines(text):
    return [line.strip() for line in text.splitlines()]


class Instructions(unittest.TestCase):
    def test_a_store_of_a_sum(self):
        text = printed('''  %2 = load ptr, ptr addrspace(4) %0, align 8, !tbaa !3
  %3 = getelementptr inbounds i8, ptr addrspace(4) %0, i64 8
  %4 = load i32, ptr addrspace(4) %3, align 8
  %5 = tail call noundef i32 @llvm.amdgcn.workitem.id.x(), !range !4, !noundef !5
  %6 = add nsw i32 %4, %5
  store i32 %6, ptr %2, align 4
  ret void''')
        self.assertIn("*reinterpret_cast<device uchar4*>(reinterpret_cast<device uchar*>("
                      "*reinterpret_cast<const constant ulong*>(p))) = as_type<uchar4>("
                      "as_type<uint>(*reinterpret_cast<const constant uchar4*>(p + 8)) + thread_.x);", text)

    def test_a_load_stays_in_front_of_a_store(self):
        text = lines(printed('''  %2 = load ptr, ptr addrspace(4) %0, align 8
  %3 = load i32, ptr %2, align 4
  store i32 0, ptr %2, align 4
  %4 = add i32 %3, 1
  store i32 %4, ptr %2, align 4
  ret void'''))
        load = next(i for i, line in enumerate(text) if line.startswith("uint "))
        store = next(i for i, line in enumerate(text) if " = as_type<uchar4>(0u);" in line)
        self.assertLess(load, store)

    def test_memory_that_is_aligned_to_less_is_taken_in_pieces(self):
        text = printed('''  %2 = load ptr, ptr addrspace(4) %0, align 8
  %3 = load i32, ptr %2, align 2
  store i32 %3, ptr %2, align 4
  ret void''')
        self.assertEqual(text.count("const device uchar2*"), 2)
        self.assertIn("ushort2(", text)

    def test_loops_and_their_variables(self):
        text = printed('''  %2 = load ptr, ptr addrspace(4) %0, align 8
  br label %3

3:                                                ; preds = %3, %1
  %4 = phi i32 [ 0, %1 ], [ %6, %3 ]
  %5 = phi i32 [ 1, %1 ], [ %4, %3 ]
  %6 = add i32 %4, %5
  %7 = icmp slt i32 %6, 100
  br i1 %7, label %3, label %8

8:                                                ; preds = %3
  store i32 %6, ptr %2, align 4
  ret void''')
        for piece in ("for (;;) {", "(int(", ") < int(100u))", "} else {", "break;"):
            self.assertIn(piece, text)

    def test_phis_that_feed_each_other_are_set_at_once(self):
        text = lines(printed('''  %2 = load ptr, ptr addrspace(4) %0, align 8
  br label %3

3:                                                ; preds = %3, %1
  %4 = phi i32 [ 0, %1 ], [ %5, %3 ]
  %5 = phi i32 [ 1, %1 ], [ %4, %3 ]
  store i32 %4, ptr %2, align 4
  %6 = icmp eq i32 %5, 7
  br i1 %6, label %3, label %7

7:                                                ; preds = %3
  ret void'''))
        saved = [line for line in text if "_ = " in line]
        self.assertEqual(len(saved), 2, text)
        self.assertEqual(len([line for line in text if line.endswith("_;") and " = " in line]), 2, text)

    def test_f64_is_computed_by_functions(self):
        text = printed('''  %2 = load ptr, ptr addrspace(4) %0, align 8
  %3 = load double, ptr %2, align 8
  %4 = fmul contract double %3, 2.500000e-01
  %5 = fadd contract double %4, %3
  %6 = fcmp contract ogt double %5, 0.000000e+00
  %7 = select i1 %6, double %5, double %3
  store double %7, ptr %2, align 8
  ret void''')
        for piece in ("rb_f64_mul(", "0x3fd0000000000000ul)", "rb_f64_add(", "rb_f64_less(0x0ul, "):
            self.assertIn(piece, text)

    def test_atomics_fences_barriers_and_memset(self):
        text = printed('''  %2 = alloca [4 x i32], align 16, addrspace(5)
  %3 = load ptr, ptr addrspace(4) %0, align 8
  call void @llvm.memset.p5.i64(ptr addrspace(5) noundef align 16 dereferenceable(16) %2, i8 0, i64 16, i1 false)
  fence syncscope("workgroup") release
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("agent") release
  %4 = atomicrmw add ptr %3, i32 1 syncscope("agent-one-as") monotonic, align 4
  %5 = getelementptr inbounds [4 x i32], ptr addrspace(5) %2, i32 0, i32 %4
  store i32 7, ptr addrspace(5) %5, align 4
  ret void''')
        self.assertIn("reinterpret_cast<thread uint4*>(v1)[0] = uint4(0u);", text)
        self.assertEqual(text.count("threadgroup_barrier("), 1)
        self.assertEqual(text.count("rb_device_fence();"), 1)
        self.assertIn("= atomic_fetch_add_explicit(reinterpret_cast<device atomic_uint*>(", text)
        self.assertIn("*reinterpret_cast<thread uchar4*>(v1 + long(int(", text)

    def test_a_copied_sign(self):
        text = printed('''  %2 = load ptr, ptr addrspace(4) %0, align 8
  %3 = load float, ptr %2, align 4
  %4 = tail call float @llvm.copysign.f32(float 1.000000e+00, float %3)
  store float %4, ptr %2, align 4
  ret void''')
        self.assertIn("(as_type<uint>(as_type<float>(0x3f800000u)) & 2147483647u) | (as_type<uint>(", text)

    def test_a_copy_from_a_pointer_that_is_used_once(self):
        text = printed('''  %2 = alloca [4 x i32], align 16, addrspace(5)
  %3 = load ptr, ptr addrspace(4) %0, align 8
  %4 = getelementptr inbounds i8, ptr %3, i64 32
  call void @llvm.memcpy.p5.p0.i64(ptr addrspace(5) noundef align 16 dereferenceable(16) %2, ptr noundef align 16 %4, i64 16, i1 false)
  ret void''')
        self.assertIn("[0] = reinterpret_cast<const device uint4*>((reinterpret_cast<device uchar*>(", text)

    def test_shared_memory_and_tables(self):
        head = ('@s = internal addrspace(3) global [5 x float] undef, align 16\n'
                '@t = internal unnamed_addr addrspace(4) constant [4 x i8] c"\\00\\01z\\FF", align 16\n')
        text = printed('''  %2 = load ptr, ptr addrspace(4) %0, align 8
  %3 = load i8, ptr addrspace(4) getelementptr inbounds (i8, ptr addrspace(4) @t, i64 2), align 2
  store i8 %3, ptr addrspace(3) @s, align 16
  ret void''', head)
        self.assertIn("RB_SHARED uint4 ", text)
        self.assertIn("[2];", text)
        ir = HEAD + head + f"define amdgpu_kernel void @k({PARAMETERS}) #0 {{\n  ret void\n}}" + TAIL
        self.assertIn(f"constant uint4 rb_table0[] = {{uint4({0xff7a0100}u, 0u, 0u, 0u)}};", family_text(ir, ""))

    def test_what_shares_too_much_memory_is_left_out(self):
        head = "@s = internal addrspace(3) global [8193 x float] undef, align 16\n"
        ir = (f"{HEAD}{head}define amdgpu_kernel void @k({PARAMETERS}) #0 {{\n"
              f"  store i32 1, ptr addrspace(3) @s, align 16\n  ret void\n}}{TAIL}")
        text = family_text(ir, "")
        self.assertIn("// left out: k shared 32784", text)
        self.assertNotIn("// kernel k", text)

    def test_shuffles_are_never_conditional(self):
        text = lines(printed('''  %2 = load ptr, ptr addrspace(4) %0, align 8
  %3 = load i32, ptr %2, align 4
  %4 = tail call noundef i32 @rb_metal_shuffle_xor(i32 noundef %3, i32 noundef 16)
  %5 = icmp eq i32 %3, 0
  %6 = select i1 %5, i32 %4, i32 %3
  store i32 %6, ptr %2, align 4
  ret void'''))
        self.assertTrue(any(line.startswith("uint v") and "= simd_shuffle_xor(" in line for line in text), text)

    def test_a_variable_by_way_of_a_member(self):
        text = printed('''  %2 = alloca i32, align 4, addrspace(5)
  %3 = alloca { ptr, i32 }, align 8, addrspace(5)
  %4 = addrspacecast ptr addrspace(5) %2 to ptr
  store ptr %4, ptr addrspace(5) %3, align 8
  %5 = load ptr, ptr addrspace(5) %3, align 8
  store i32 1, ptr %5, align 4
  ret void''')
        self.assertIn("*reinterpret_cast<thread uchar4*>(v1) = ", text)


MATRIX_HEAD = "@s = internal addrspace(3) global [64 x float] undef, align 16\n"
SHARED = "ptr noundef addrspacecast (ptr addrspace(3) @s to ptr)"


class Matrices(unittest.TestCase):
    def test_loads_products_and_stores(self):
        text = printed(f'''  %2 = tail call ptr addrspace(100) @rb_metal_matrix_zero() #3
  br label %3

3:                                                ; preds = %3, %1
  %4 = phi ptr addrspace(100) [ %2, %1 ], [ %8, %3 ]
  %5 = phi i32 [ 0, %1 ], [ %9, %3 ]
  %6 = tail call ptr addrspace(101) @rb_metal_matrix_load_half({SHARED}, i32 noundef 40) #4
  %7 = tail call ptr addrspace(101) @rb_metal_matrix_load_half_across({SHARED}, i32 noundef 40) #4
  %8 = tail call ptr addrspace(100) @rb_metal_matrix_multiply_half(ptr addrspace(101) noundef %6, ptr addrspace(101) noundef %7, ptr addrspace(100) noundef %4) #3
  %9 = add i32 %5, 1
  %10 = icmp slt i32 %9, 3
  br i1 %10, label %3, label %11

11:                                               ; preds = %3
  tail call void @rb_metal_matrix_store(ptr addrspace(100) noundef %8, {SHARED}, i32 noundef 8) #5
  ret void''', MATRIX_HEAD)
        self.assertRegex(text, r"simdgroup_float8x8 v\d+ = make_filled_simdgroup_matrix<float, 8>\(0.0f\);")
        self.assertRegex(text, r"simdgroup_half8x8 v\d+, v\d+;")
        self.assertRegex(text, r"simdgroup_load\(v\d+, reinterpret_cast<const threadgroup half\*>\(v\d+\), ulong\(40u\)\);")
        self.assertRegex(text, r"simdgroup_load\(v\d+, .*, ulong\(40u\), ulong2\(0ul, 0ul\), true\);")
        product = re.search(r"simdgroup_multiply_accumulate\((v\d+), v\d+, v\d+, (v\d+)\);", text)
        self.assertIn(f" {product[2]} = {product[1]};", text)
        self.assertRegex(text, rf"simdgroup_store\({product[1]}, reinterpret_cast<threadgroup float\*>\(v\d+\), ulong\(8u\)\);")
        self.assertEqual(complaints("k", text), [])

    def test_only_shared_memory_holds_matrices(self):
        for body, what in (('''  %2 = load ptr, ptr addrspace(4) %0, align 8
  %3 = tail call ptr addrspace(100) @rb_metal_matrix_load_float(ptr noundef %2, i32 noundef 8)
  ret void''', "a matrix in device memory"), ('''  %2 = alloca ptr addrspace(100), align 8, addrspace(5)
  %3 = tail call ptr addrspace(100) @rb_metal_matrix_zero()
  store ptr addrspace(100) %3, ptr addrspace(5) %2, align 8
  ret void''', "a matrix in the thread's own memory"), ('''  %2 = tail call ptr addrspace(100) @rb_metal_matrix_turn()
  ret void''', "rb_metal_matrix_turn")):
            with self.assertRaisesRegex(Unsupported, what):
                printed(body)


class Refusals(unittest.TestCase):
    def refused(self, body, *words):
        with self.assertRaises(Unsupported) as caught:
            printed(body)
        for word in words + ("kernel k",):
            self.assertIn(word, str(caught.exception))

    def test_an_unknown_instruction(self):
        self.refused("  %2 = load ptr, ptr addrspace(4) %0, align 8\n"
                     "  %3 = cmpxchg ptr %2, i32 0, i32 1 monotonic monotonic, align 4\n  ret void", "cmpxchg")

    def test_an_unknown_function(self):
        self.refused("  %2 = tail call i32 @llvm.amdgcn.readfirstlane(i32 1)\n  ret void",
                     "llvm.amdgcn.readfirstlane")

    def test_inline_assembly(self):
        self.refused('  %2 = tail call i32 asm sideeffect "v_mov $0, 1", "=v"()\n  ret void', "asm")

    def test_pointers_of_two_spaces_that_meet(self):
        self.refused('''  %2 = alloca i32, align 4, addrspace(5)
  %3 = load ptr, ptr addrspace(4) %0, align 8
  %4 = addrspacecast ptr addrspace(5) %2 to ptr
  %5 = select i1 true, ptr %3, ptr %4
  store i32 0, ptr %5, align 4
  ret void''', "two spaces")

    def test_the_command_ends_with_one_line_and_1(self):
        with tempfile.TemporaryDirectory() as folder:
            ir, preamble = Path(folder, "a.ll"), Path(folder, "preamble")
            ir.write_text(f"{HEAD}define amdgpu_kernel void @odd({PARAMETERS}) #0 {{\n  %2 = va_arg ptr %0, i32\n"
                          f"  ret void\n}}{TAIL}", encoding="utf-8")
            preamble.write_text("", encoding="utf-8")
            done = subprocess.run([sys.executable, str(ROOT / "tools/metal/print.py"), str(ir), "--preamble", str(preamble),
                                   "-o", str(Path(folder, "a.metal"))], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("kernel odd", done.stderr)
            self.assertIn("va_arg", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertFalse(Path(folder, "a.metal").exists())


class Words(unittest.TestCase):
    def test_words_that_are_not_allowed_are_told(self):
        self.assertEqual(complaints("k", " uint v1 = as_type<uint>(1.0f); // goto"), [])
        self.assertEqual(complaints("k", " double v1;"), ["the word double"])
        self.assertEqual(complaints("k", " goto v1;"), ["the word goto"])
        self.assertEqual(complaints("half", " uint v1;"), ["a kernel's name that is a word of the language"])
        self.assertTrue(complaints("k", " v1 = (device uchar*)(v2);"))


if __name__ == "__main__":
    unittest.main()
