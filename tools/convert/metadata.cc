#include "tools/convert/metadata.h"

#include <set>
#include <string>

#include "rbee/models/embedding_model.h"
#include "rbee/nn/matrix_scale.h"
#include "tools/convert/gguf_form.h"

namespace rbee::tools {
namespace {

// Keys that the new file says itself or that no longer hold.
bool is_replaced(std::string_view key) {
  return key == "general.file_type" || key == "general.quantization_version" ||
         key.starts_with("split.") || key.starts_with("quantize.imatrix.");
}

}  // namespace

std::vector<SourceTensor> as_stored(const io::Checkpoint& checkpoint) {
  std::vector<SourceTensor> tensors;
  tensors.reserve(checkpoint.tensors().size());
  for (const io::TensorEntry& entry : checkpoint.tensors()) {
    tensors.push_back({.stored = entry, .edit = {}, .made = {}, .stack = {}});
  }
  return tensors;
}

std::vector<SourceTensor> copy_gguf(const io::Checkpoint& checkpoint, io::GgufWriter& writer) {
  for (const io::MetaEntry& entry : checkpoint.metadata().entries()) {
    if (!is_replaced(entry.key)) writer.copy(entry);
  }
  std::vector<SourceTensor> tensors = as_stored(checkpoint);
  std::set<std::string> spent;
  for (SourceTensor& tensor : tensors) {
    const io::TensorEntry& matrix = tensor.stored;
    const std::string_view stem = std::string_view(matrix.name).substr(0, matrix.name.rfind('.'));
    if (matrix.dtype == DType::nvfp4) spent.insert(cat(stem, ".input_scale"));
    const io::TensorEntry* scale = nn::scale_beside(checkpoint, matrix.name);
    if (scale == nullptr) continue;
    tensor.edit.scales = nn::scales_in(*scale, matrix.shape.rank() > 2 ? matrix.shape[0] : 1);
    spent.insert(scale->name);
  }
  std::erase_if(tensors,
                [&](const SourceTensor& tensor) { return spent.contains(tensor.stored.name); });
  return tensors;
}

void set_recipe_keys(const Recipe& recipe, io::GgufWriter& writer) {
  constexpr uint32_t kQuantizationVersion = 2;
  if (recipe.file_type) writer.set_u32("general.file_type", *recipe.file_type);
  if (is_quantized(recipe.base)) {
    writer.set_u32("general.quantization_version", kQuantizationVersion);
  }
}

int64_t gqa_of(const io::Checkpoint& checkpoint) {
  if (checkpoint.format() == io::Checkpoint::Format::safetensors) {
    if (models::is_encoder(checkpoint.architecture())) return 1;
    const models::ModelConfig config = read_gguf_form(checkpoint).config;
    return config.heads / config.kv_heads;
  }
  const io::Metadata& metadata = checkpoint.metadata();
  const std::string prefix = metadata.contains("general.architecture")
                                 ? cat(checkpoint.architecture(), ".attention.head_count")
                                 : "";
  const auto heads_at = [&](const std::string& key) -> int64_t {
    const io::MetaEntry* entry = metadata.find(key);
    return entry != nullptr && io::is_integer(entry->type) ? metadata.require_i64(key) : 0;
  };
  const int64_t heads = heads_at(prefix), kv_heads = heads_at(prefix + "_kv");
  return heads > 0 && kv_heads > 0 ? heads / kv_heads : 1;
}

int64_t experts_of(const io::Checkpoint& checkpoint) {
  if (checkpoint.format() == io::Checkpoint::Format::safetensors) {
    if (models::is_encoder(checkpoint.architecture())) return 1;
    const GgufForm form = read_gguf_form(checkpoint);
    return form.experts ? std::max<int64_t>(form.experts->all, 1) : 1;
  }
  const io::Metadata& metadata = checkpoint.metadata();
  if (!metadata.contains("general.architecture")) return 1;
  const std::string key = cat(checkpoint.architecture(), ".expert_count");
  const io::MetaEntry* entry = metadata.find(key);
  const bool says = entry != nullptr && io::is_integer(entry->type);
  return says ? std::max<int64_t>(metadata.require_i64(key), 1) : 1;
}

}  // namespace rbee::tools
