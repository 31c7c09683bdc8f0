#pragma once
// Hugging Face folders with integer weights (GPTQ, AWQ, compressed-tensors): packed integers of a
// few bits times scales.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/io/tensor_entry.h"

namespace rbee::io {

// Whether config.json names a quantisation method with integer weights:
//  - "awq" (AutoAWQ): 4 bits, version "gemm";
//  - "gptq" (AutoGPTQ, GPTQModel): 2, 3, 4 or 8 bits, checkpoint_format "gptq" or "gptq_v2"; with
//    "dynamic", which gives modules other settings, bits and groups follow from tensors' shapes;
//  - "compressed-tensors" (llm-compressor): format "pack-quantized", or "mixed-precision" where one
//    of its groups of weights is such: 4 or 8 bits, a scale for each group or row. Of several
//    groups a matrix belongs to the one that its tensors' shapes fit.
// False for empty text. Throws invalid_argument naming `source`, the field and its value, and
// unsupported for another form of one of these methods.
bool has_integer_weights(std::string_view config_json, const std::string& source);

// Replaces the tensors of each such matrix by one entry "<layer>.weight" of (out, in):
// "<layer>.qweight", ".qzeros", ".scales" and ".g_idx" (AWQ, GPTQ), or "<layer>.weight_packed",
// ".weight_scale", ".weight_zero_point", ".weight_shape" and ".weight_g_idx". Leaves out the scales
// of activations and caches. Reads scales, zeros and groups to choose the entries' types:
//  - q4_0, up to 4 bits whose zeros are all the middle: exact where scales are f16 numbers;
//  - q4_1, up to 4 bits with other zeros: -zero * scale is rounded to f16;
//  - q8_0, 8 bits whose zeros are the middle: exact as q4_0;
//  - f16, or bf16 where f16's range does not do, for rows that are no whole blocks of 32 inputs
//    with one scale, 8 bits with other zeros, and scales that f16 does not hold within 2^-11 of
//    themselves or 2^-18 of the largest. Where an order by activations is all that is in the way,
//    the matrix says so (IntegerMatrix::inputs_by_group);
//  - of experts, whose names differ in a number after ".experts.", the widest that one needs.
// Throws as above, not_found naming a tensor that is missing, and invalid_argument naming one
// whose type, shape or values do not fit.
std::vector<TensorEntry> with_integer_weights(std::vector<TensorEntry> tensors,
                                              std::string_view config_json,
                                              const std::string& source);

}  // namespace rbee::io
