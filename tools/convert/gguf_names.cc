#include "tools/convert/gguf_names.h"

#include <map>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/models/registry.h"

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

std::string numbered(std::string_view pattern, int64_t layer) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  return cat(pattern.substr(0, star), layer, pattern.substr(star + 1));
}

class Collector {
 public:
  Collector(const io::Checkpoint& checkpoint, const GgufForm& form) : form_(form) {
    for (const io::TensorEntry& entry : checkpoint.tensors()) {
      left_.emplace(plain_name(entry.name), &entry);
    }
  }

  // The weight of a row of the table, and its bias where there is one.
  void take(const nn::TensorName& row, int64_t layer) {
    const std::string from = numbered(row.hf, layer), to = numbered(row.gguf, layer);
    if (!take(from + ".weight", to + ".weight")) {
      fail(Code::not_found, "convert", "tensor ", from, ".weight is missing from the checkpoint");
    }
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
  bool take(const std::string& from, const std::string& to) {
    const auto found = left_.find(from);
    if (found == left_.end()) return false;
    SourceTensor tensor{.stored = *found->second, .edit = edit_of(form_, to), .made = {}};
    tensor.stored.name = to;
    out_.push_back(std::move(tensor));
    left_.erase(found);
    return true;
  }

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
  Collector collector(checkpoint, form);
  for (const nn::TensorName& row : names) {
    const bool tied = form.config.tied_embeddings && row.gguf == "output";
    if (!is_layered(row) && !tied) collector.take(row, 0);
  }
  for (int64_t layer = 0; layer < form.config.layers; ++layer) {
    for (const nn::TensorName& row : names) {
      if (is_layered(row)) collector.take(row, layer);
    }
  }
  return collector.finish();
}

}  // namespace rbee::tools
