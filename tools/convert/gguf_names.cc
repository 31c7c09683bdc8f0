#include "tools/convert/gguf_names.h"

#include <algorithm>
#include <map>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/models/registry.h"
#include "rbee/nn/matrix_scale.h"

namespace rbee::tools {
namespace {

// The name without what multimodal checkpoints put around the language model's, and with what
// models for embeddings leave out.
std::string plain_name(std::string_view name) {
  constexpr std::string_view kOuter = "language_model.", kInner = "model.language_model.";
  if (name.starts_with(kOuter)) return std::string(name.substr(kOuter.size()));
  if (name.starts_with(kInner)) return cat("model.", name.substr(kInner.size()));
  for (const std::string_view bare : {"layers.", "embed_tokens.", "norm."}) {
    if (name.starts_with(bare)) return cat("model.", name);
  }
  return std::string(name);
}

std::string numbered(std::string_view pattern, char place, int64_t number) {
  const size_t at = pattern.find(place);
  if (at == std::string_view::npos) return std::string(pattern);
  return cat(pattern.substr(0, at), number, pattern.substr(at + 1));
}

[[noreturn]] void fail_missing(const std::string& name) {
  fail(Code::not_found, "convert", "tensor ", name, ".weight is missing from the checkpoint");
}

constexpr std::string_view kChoiceBias = "blk.*.exp_probs_b";

// Whether a row of the table is of experts, or of the MLP that layers without them have.
bool is_of_experts(std::string_view role) {
  return role.ends_with("_exps") || role.ends_with("_shexp") || role.ends_with("ffn_gate_inp") ||
         role == kChoiceBias;
}
bool is_of_dense(std::string_view role) {
  return role == "blk.*.ffn_gate" || role == "blk.*.ffn_up" || role == "blk.*.ffn_down";
}

class Collector {
 public:
  Collector(const io::Checkpoint& checkpoint, const GgufForm& form)
      : checkpoint_(checkpoint), form_(form) {
    for (const io::TensorEntry& entry : checkpoint.tensors()) {
      left_.emplace(plain_name(entry.name), &entry);
    }
  }

  // The weight of a row of the table, and its bias where there is one.
  void take(const nn::TensorName& row, int64_t layer) {
    const std::string from = numbered(row.hf, '*', layer), to = numbered(row.gguf, '*', layer);
    if (from.find('#') != std::string::npos) return take_stack(from, to + ".weight");
    if (row.gguf == kChoiceBias) return take_choice_bias(from + ".e_score_correction_bias", to);
    if (!take(from + ".weight", to + ".weight")) fail_missing(from);
    take(from + ".bias", to + ".bias");
  }

  std::vector<SourceTensor> finish() {
    if (!left_.empty()) {
      constexpr int kNamed = 4;
      std::string first;
      int named = 0;
      for (const auto& [name, entry] : left_) {
        if (named++ < kNamed) first += cat(first.empty() ? "" : ", ", entry->name);
      }
      log(LogLevel::warn, "tensors that the architecture does not have are left out",
          {{"count", cat(left_.size())}, {"first", first}});
    }
    return std::move(out_);
  }

 private:
  // A layer's experts, each a tensor of its own, as one tensor.
  void take_stack(const std::string& from, const std::string& to) {
    SourceTensor tensor{.stored = {}, .edit = edit_of(form_, to), .made = {}, .stack = {}};
    for (int64_t expert = 0; expert < form_.experts->all; ++expert) {
      const std::string name = numbered(from, '#', expert);
      const auto found = left_.find(name + ".weight");
      if (found == left_.end()) fail_missing(name);
      const io::TensorEntry& entry = *found->second;
      const Shape& first = tensor.stack.empty() ? entry.shape : tensor.stack.front().shape;
      check(entry.shape.rank() == 2 && entry.shape == first, "convert", "tensor ", entry.name,
            " is (", entry.shape, "), the layer's first expert's (", first, ")");
      tensor.stack.push_back(entry);
      take_scale(entry, tensor.edit);
      left_.erase(found);
    }
    const size_t scales = tensor.edit.scales.size();
    check(scales == 0 || scales == tensor.stack.size(), "convert", "of the ", tensor.stack.size(),
          " experts of ", from, ", ", scales, " have a scale of their own");
    const io::TensorEntry& first = tensor.stack.front();
    tensor.stored.name = to;
    tensor.stored.dtype = first.dtype;
    tensor.stored.is_e5m2 = first.is_e5m2;
    tensor.stored.shape = Shape{form_.experts->all, first.shape[0], first.shape[1]};
    out_.push_back(std::move(tensor));
  }

  // The bias for the choice of experts, which stands beside their router's weight.
  void take_choice_bias(const std::string& from, const std::string& to) {
    if (!take(from, to + ".bias")) fail(Code::not_found, "convert", "tensor ", from, " is missing");
    io::TensorEntry& bias = out_.back().stored;
    bias.shape = Shape{numel(bias.shape)};  // ERNIE's has an axis of one more
  }

  bool take(const std::string& from, const std::string& to) {
    const auto found = left_.find(from);
    if (found == left_.end()) return false;
    SourceTensor tensor{
        .stored = *found->second, .edit = edit_of(form_, to), .made = {}, .stack = {}};
    take_scale(tensor.stored, tensor.edit);
    tensor.stored.name = to;
    out_.push_back(std::move(tensor));
    left_.erase(found);
    return true;
  }

  // The scale of an NVFP4 matrix, where there is one; of experts one after another.
  void take_scale(const io::TensorEntry& matrix, RowEdit& edit) {
    const io::TensorEntry* scale = nn::scale_beside(checkpoint_, matrix.name);
    if (scale == nullptr) return;
    std::ranges::copy(nn::scales_in(*scale, 1), std::back_inserter(edit.scales));
    left_.erase(plain_name(scale->name));
  }

  const io::Checkpoint& checkpoint_;
  const GgufForm& form_;
  std::map<std::string, const io::TensorEntry*> left_;  // by plain name
  std::vector<SourceTensor> out_;
};

}  // namespace

std::vector<SourceTensor> gguf_tensors(const io::Checkpoint& checkpoint, const GgufForm& form) {
  const auto names = models::find_family(checkpoint.architecture()).tensor_names();
  const auto is_layered = [](const nn::TensorName& row) {
    return row.gguf.find('*') != std::string_view::npos;
  };
  const auto is_there = [&](const nn::TensorName& row) {
    return std::ranges::find(form.absent, row.gguf) == form.absent.end();
  };
  const auto is_in_layer = [&](const nn::TensorName& row, int64_t layer) {
    if (form.sparse.empty()) return true;
    return form.sparse[static_cast<size_t>(layer)] ? !is_of_dense(row.gguf)
                                                   : !is_of_experts(row.gguf);
  };
  Collector collector(checkpoint, form);
  for (const nn::TensorName& row : names) {
    const bool tied = form.config.tied_embeddings && row.gguf == "output";
    if (!is_layered(row) && !tied) collector.take(row, 0);
  }
  for (int64_t layer = 0; layer < form.config.layers; ++layer) {
    for (const nn::TensorName& row : names) {
      if (is_layered(row) && is_there(row) && is_in_layer(row, layer)) collector.take(row, layer);
    }
  }
  return collector.finish();
}

}  // namespace rbee::tools
