#pragma once
// The one list of block types. rbee/quant/README.md says what a new row needs. GPU kernels read
// this file too, so it holds macros alone.
//
// M(name, Name, elements, bytes, access, ggml, ...)
//   name      of the DType; kernels' names end in it
//   Name      of the structs Block<Name> (as stored), Panel<Name> (packed for CPUs), Format<Name>
//   elements  in a block
//   bytes     of a block
//   access    read_write, or read_only if rbee/quant decodes the type and does not encode it
//   ggml      the type's number in GGUF files, or kNoGgmlType
// A list passes its other arguments on to M.

// Blocks of 32 elements.
#define RB_SMALL_BLOCK_TYPES(M, ...)                       \
  M(q4_0, Q4_0, 32, 18, read_write, 2, ##__VA_ARGS__)      \
  M(q4_1, Q4_1, 32, 20, read_write, 3, ##__VA_ARGS__)      \
  M(q5_0, Q5_0, 32, 22, read_write, 6, ##__VA_ARGS__)      \
  M(q5_1, Q5_1, 32, 24, read_write, 7, ##__VA_ARGS__)      \
  M(q8_0, Q8_0, 32, 34, read_write, 8, ##__VA_ARGS__)      \
  M(iq4_nl, IQ4_NL, 32, 18, read_write, 20, ##__VA_ARGS__) \
  M(mxfp4, MXFP4, 32, 17, read_write, 39, ##__VA_ARGS__)

// Blocks of 256 elements.
#define RB_K_BLOCK_TYPES(M, ...)                         \
  M(q2_k, Q2_K, 256, 84, read_write, 10, ##__VA_ARGS__)  \
  M(q3_k, Q3_K, 256, 110, read_write, 11, ##__VA_ARGS__) \
  M(q4_k, Q4_K, 256, 144, read_write, 12, ##__VA_ARGS__) \
  M(q5_k, Q5_K, 256, 176, read_write, 13, ##__VA_ARGS__) \
  M(q6_k, Q6_K, 256, 210, read_write, 14, ##__VA_ARGS__) \
  M(q8_k, Q8_K, 256, 292, read_write, 15, ##__VA_ARGS__) \
  M(iq4_xs, IQ4_XS, 256, 136, read_write, 23, ##__VA_ARGS__)

// Formats of few bits, most of them indices into a code book.
#define RB_FEW_BIT_BLOCK_TYPES(M, ...)                       \
  M(iq1_s, IQ1_S, 256, 50, read_only, 19, ##__VA_ARGS__)     \
  M(iq1_m, IQ1_M, 256, 56, read_only, 29, ##__VA_ARGS__)     \
  M(iq2_xxs, IQ2_XXS, 256, 66, read_only, 16, ##__VA_ARGS__) \
  M(iq2_xs, IQ2_XS, 256, 74, read_only, 17, ##__VA_ARGS__)   \
  M(iq2_s, IQ2_S, 256, 82, read_only, 22, ##__VA_ARGS__)     \
  M(iq3_xxs, IQ3_XXS, 256, 98, read_only, 18, ##__VA_ARGS__) \
  M(iq3_s, IQ3_S, 256, 110, read_only, 21, ##__VA_ARGS__)    \
  M(tq1_0, TQ1_0, 256, 54, read_only, 34, ##__VA_ARGS__)     \
  M(tq2_0, TQ2_0, 256, 66, read_only, 35, ##__VA_ARGS__)     \
  M(nvfp4, NVFP4, 64, 36, read_only, 40, ##__VA_ARGS__)

// Those of ggml, which GGUF files hold.
#define RB_GGML_BLOCK_TYPES(M, ...)      \
  RB_SMALL_BLOCK_TYPES(M, ##__VA_ARGS__) \
  RB_K_BLOCK_TYPES(M, ##__VA_ARGS__)     \
  RB_FEW_BIT_BLOCK_TYPES(M, ##__VA_ARGS__)

// All. f8_g128 is groups of 128 e4m3 codes with an f32 scale, made from FP8 checkpoints; no file
// holds it.
#define RB_BLOCK_TYPES(M, ...)                                          \
  RB_SMALL_BLOCK_TYPES(M, ##__VA_ARGS__)                                \
  RB_K_BLOCK_TYPES(M, ##__VA_ARGS__)                                    \
  M(f8_g128, F8_G128, 128, 132, read_write, kNoGgmlType, ##__VA_ARGS__) \
  RB_FEW_BIT_BLOCK_TYPES(M, ##__VA_ARGS__)
