#pragma once
// Hugging Face folders whose matrices are floats of one byte times scales.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/io/tensor_entry.h"

namespace rbee::io {

// Whether config.json names a method of quantisation whose weights are floats of one byte: "fp8"
// (transformers' FineGrainedFP8Config and the like), "modelopt" with quant_algo FP8, and
// "compressed-tensors" with format "float-quantized" or "naive-quantized", or "mixed-precision"
// where one of its groups of weights is such. Empty text: false.
// Throws invalid_argument naming `source`, the field and its value, and unsupported for another
// form of one of these methods.
bool has_fp8_weights(std::string_view config_json, const std::string& source);

// Gives the matrices of such a folder their scales. "<layer>.weight_scale_inv" or
// "<layer>.weight_scale" is one number, one for each row, or one for each of the config's blocks
// of (rows, columns); values are multiplied by it. Leaves out these tensors, and those about
// activations and caches, which nothing here rounds. Throws as above, and not_found naming a
// matrix without a scale.
std::vector<TensorEntry> with_fp8_scales(std::vector<TensorEntry> tensors,
                                         std::string_view config_json, const std::string& source);

// Whether a tensor of a quantised folder says how activations or caches were rounded, by its name.
bool is_activation_scale(std::string_view name);

}  // namespace rbee::io
