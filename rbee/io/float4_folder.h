#pragma once
// Hugging Face folders with weights in floats of 4 bits (E2M1): NVFP4 and MXFP4.

#include <string>
#include <string_view>
#include <vector>

#include "rbee/io/tensor_entry.h"

namespace rbee::io {

// Whether config.json names a method with such weights:
//  - "modelopt" with quant_algo "NVFP4" or "W4A16_NVFP4" (TensorRT Model Optimizer);
//  - "compressed-tensors" with the format "nvfp4-pack-quantized" or "mxfp4-pack-quantized";
//  - "quark" (AMD) whose global_quant_config has weights of "fp4" in groups of 32 with E8M0 scales.
// GPT-OSS's "mxfp4" has a form of its own, which the family reads. False for empty text. Throws
// invalid_argument naming `source`, the field and its value, and unsupported for another form of
// one of these methods, except what fp8_folder.h and integer_folder.h read.
bool has_float4_weights(std::string_view config_json, const std::string& source);

// Replaces the tensors of each such matrix by one entry "<layer>.weight" of (out, in) in nvfp4 or
// mxfp4 (IntegerMatrix::Order::e2m1): "<layer>.weight" or ".weight_packed", ".weight_scale", and of
// NVFP4 ".weight_scale_2" (a factor) or ".weight_global_scale" (a divisor), which becomes the f32
// tensor "<layer>.scale", as in GGUF files. Leaves out the scales of activations and caches. Throws
// as above, not_found naming a tensor that is missing, and invalid_argument naming one whose type,
// shape or values do not fit; rows have to be whole blocks of 64 inputs (NVFP4) or 32.
std::vector<TensorEntry> with_float4_weights(std::vector<TensorEntry> tensors,
                                             std::string_view config_json,
                                             const std::string& source);

}  // namespace rbee::io
