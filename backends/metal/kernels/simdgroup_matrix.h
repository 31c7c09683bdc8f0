#pragma once
// Matrices of 8 x 8 elements that the lanes of a wave hold together: Metal's simdgroup matrices
// (Metal Shading Language Specification 3.0, "SIMD-Group Matrix Data Types" and "SIMD-Group Matrix
// Functions"). Which lane holds which element is not known, so a matrix comes from shared memory
// and goes there. All lanes of a wave take part in each call, and see one another's memory only
// behind a barrier.
//
// To clang a matrix is a pointer into an address space that no memory has: a value that nothing can
// look into or compute with. tools/metal makes it a variable of Metal's type.

#include "backends/gpu/portable.h"

namespace rbee {
namespace gpu {

struct MatrixTag;
using FloatMatrix = __attribute__((address_space(100))) MatrixTag*;
using HalfMatrix = __attribute__((address_space(101))) MatrixTag*;

extern "C" {
__attribute__((device)) __attribute__((const)) FloatMatrix rb_metal_matrix_zero();
__attribute__((device)) __attribute__((pure)) FloatMatrix
rb_metal_matrix_load_float(const void* from, u32 pitch);
__attribute__((device)) __attribute__((pure)) FloatMatrix
rb_metal_matrix_load_float_across(const void* from, u32 pitch);
__attribute__((device)) __attribute__((pure)) HalfMatrix rb_metal_matrix_load_half(const void* from,
                                                                                   u32 pitch);
__attribute__((device)) __attribute__((pure)) HalfMatrix
rb_metal_matrix_load_half_across(const void* from, u32 pitch);
__attribute__((device)) __attribute__((const)) FloatMatrix
rb_metal_matrix_multiply_float(FloatMatrix a, FloatMatrix b, FloatMatrix c);
__attribute__((device)) __attribute__((const)) FloatMatrix
rb_metal_matrix_multiply_half(HalfMatrix a, HalfMatrix b, FloatMatrix c);
__attribute__((device)) void rb_metal_matrix_store(FloatMatrix matrix, void* to, u32 pitch);
}

// Element (r, c) is from[r * pitch + c], of shared memory.
RB_DEVICE FloatMatrix load_matrix(const float* from, u32 pitch) {
  return rb_metal_matrix_load_float(from, pitch);
}
RB_DEVICE HalfMatrix load_matrix(const f16* from, u32 pitch) {
  return rb_metal_matrix_load_half(from, pitch);
}
// Element (r, c) is from[c * pitch + r].
RB_DEVICE FloatMatrix load_transposed(const float* from, u32 pitch) {
  return rb_metal_matrix_load_float_across(from, pitch);
}
RB_DEVICE HalfMatrix load_transposed(const f16* from, u32 pitch) {
  return rb_metal_matrix_load_half_across(from, pitch);
}
// a * b + c
RB_DEVICE FloatMatrix multiply_add(FloatMatrix a, FloatMatrix b, FloatMatrix c) {
  return rb_metal_matrix_multiply_float(a, b, c);
}
RB_DEVICE FloatMatrix multiply_add(HalfMatrix a, HalfMatrix b, FloatMatrix c) {
  return rb_metal_matrix_multiply_half(a, b, c);
}

}  // namespace gpu
}  // namespace rbee
