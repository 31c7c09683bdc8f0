#pragma once
// What a checkpoint's tensors are, by their names in GGUF and in Hugging Face's files. For
// estimates before a model is loaded; families look their tensors up by nn::TensorName.

#include <cstdint>
#include <optional>
#include <string_view>

namespace rbee::models {

// The layer of a tensor: "blk.3.attn_q.weight", "model.layers.3.mlp.up_proj.weight".
std::optional<int64_t> layer_of(std::string_view name);

// Whether it is of a layer that predicts further tokens (MTP), by a tensor that only such have.
bool is_of_prediction(std::string_view name);
// Whether it is of a layer that keeps states in the place of keys and values.
bool is_of_state(std::string_view name);
// Weights of experts of which a token takes a few, not of one that all tokens share.
bool is_expert(std::string_view name);
bool is_token_table(std::string_view name);
bool is_output_matrix(std::string_view name);

}  // namespace rbee::models
