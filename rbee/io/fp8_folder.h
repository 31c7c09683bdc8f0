#pragma once
// Hugging Face folders with FP8 weights: matrices of one-byte floats times scales.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/io/tensor_entry.h"

namespace rbee::io {

// Whether config.json names an FP8 quantisation method: "fp8" (transformers' FineGrainedFP8Config
// and the like), "modelopt" with quant_algo FP8, and "compressed-tensors" with format
// "float-quantized" or "naive-quantized", or "mixed-precision" if one of its groups of weights has
// such a format. False for empty text. Throws invalid_argument naming `source`, the field and its
// value, and unsupported for another form of one of these methods.
bool has_fp8_weights(std::string_view config_json, const std::string& source);

// Gives the matrices of such a folder their scales. "<layer>.weight_scale_inv" or
// "<layer>.weight_scale" holds one factor for the matrix, for each row, or for each of the config's
// blocks of (rows, columns). Leaves out these tensors, and the scales of activations and caches,
// which this project does not round. Throws as above, and not_found naming a matrix without a
// scale.
std::vector<TensorEntry> with_fp8_scales(std::vector<TensorEntry> tensors,
                                         std::string_view config_json, const std::string& source);

// Whether the name is that of a scale of activations or caches in a quantised folder.
bool is_activation_scale(std::string_view name);

}  // namespace rbee::io
