#pragma once
// The one list of block types. rbee/quant/README.md says what a new row needs. GPU kernels read
// this file too, so it holds macros alone.
//
// M(name, Name, elements, bytes, bits, ggml, ...)
//   name      of the DType; kernels' names end in it
//   Name      of the structs Block<Name> (as stored), Panel<Name> (packed for CPUs), Format<Name>
//   elements  in a block
//   bytes     of a block
//   bits      usual, or few: kernels of GPUs have a family of their own for these types
//   ggml      the type's number in GGUF files, or kNoGgmlType
// A list passes its other arguments on to M.

// Blocks of 32 elements.
#define RB_SMALL_BLOCK_TYPES(M, ...)                  \
  M(q4_0, Q4_0, 32, 18, usual, 2, ##__VA_ARGS__)      \
  M(q4_1, Q4_1, 32, 20, usual, 3, ##__VA_ARGS__)      \
  M(q5_0, Q5_0, 32, 22, usual, 6, ##__VA_ARGS__)      \
  M(q5_1, Q5_1, 32, 24, usual, 7, ##__VA_ARGS__)      \
  M(q8_0, Q8_0, 32, 34, usual, 8, ##__VA_ARGS__)      \
  M(iq4_nl, IQ4_NL, 32, 18, usual, 20, ##__VA_ARGS__) \
  M(mxfp4, MXFP4, 32, 17, usual, 39, ##__VA_ARGS__)

// Blocks of 256 elements.
#define RB_K_BLOCK_TYPES(M, ...)                    \
  M(q2_k, Q2_K, 256, 84, usual, 10, ##__VA_ARGS__)  \
  M(q3_k, Q3_K, 256, 110, usual, 11, ##__VA_ARGS__) \
  M(q4_k, Q4_K, 256, 144, usual, 12, ##__VA_ARGS__) \
  M(q5_k, Q5_K, 256, 176, usual, 13, ##__VA_ARGS__) \
  M(q6_k, Q6_K, 256, 210, usual, 14, ##__VA_ARGS__) \
  M(q8_k, Q8_K, 256, 292, usual, 15, ##__VA_ARGS__) \
  M(iq4_xs, IQ4_XS, 256, 136, usual, 23, ##__VA_ARGS__)

// Formats of few bits, most of them indices into a code book.
#define RB_FEW_BIT_BLOCK_TYPES(M, ...)                 \
  M(iq1_s, IQ1_S, 256, 50, few, 19, ##__VA_ARGS__)     \
  M(iq1_m, IQ1_M, 256, 56, few, 29, ##__VA_ARGS__)     \
  M(iq2_xxs, IQ2_XXS, 256, 66, few, 16, ##__VA_ARGS__) \
  M(iq2_xs, IQ2_XS, 256, 74, few, 17, ##__VA_ARGS__)   \
  M(iq2_s, IQ2_S, 256, 82, few, 22, ##__VA_ARGS__)     \
  M(iq3_xxs, IQ3_XXS, 256, 98, few, 18, ##__VA_ARGS__) \
  M(iq3_s, IQ3_S, 256, 110, few, 21, ##__VA_ARGS__)    \
  M(tq1_0, TQ1_0, 256, 54, few, 34, ##__VA_ARGS__)     \
  M(tq2_0, TQ2_0, 256, 66, few, 35, ##__VA_ARGS__)     \
  M(nvfp4, NVFP4, 64, 36, few, 40, ##__VA_ARGS__)

// Those of ggml, which GGUF files hold.
#define RB_GGML_BLOCK_TYPES(M, ...)      \
  RB_SMALL_BLOCK_TYPES(M, ##__VA_ARGS__) \
  RB_K_BLOCK_TYPES(M, ##__VA_ARGS__)     \
  RB_FEW_BIT_BLOCK_TYPES(M, ##__VA_ARGS__)

// All. f8_g128 is groups of 128 e4m3 codes with an f32 scale, made from FP8 checkpoints; no file
// holds it.
#define RB_BLOCK_TYPES(M, ...)                                     \
  RB_SMALL_BLOCK_TYPES(M, ##__VA_ARGS__)                           \
  RB_K_BLOCK_TYPES(M, ##__VA_ARGS__)                               \
  M(f8_g128, F8_G128, 128, 132, usual, kNoGgmlType, ##__VA_ARGS__) \
  RB_FEW_BIT_BLOCK_TYPES(M, ##__VA_ARGS__)
