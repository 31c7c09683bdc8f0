#include "tools/convert/encoder_form.h"

#include <algorithm>
#include <map>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/models/bert/config.h"
#include "rbee/models/bert/model.h"
#include "rbee/models/modern_bert/config.h"
#include "rbee/models/modern_bert/model.h"
#include "rbee/models/nomic_bert/config.h"
#include "rbee/models/nomic_bert/model.h"
#include "rbee/models/rank_head.h"
#include "tools/convert/keys.h"

namespace rbee::tools {
namespace {

constexpr const char* kOp = "convert";

// ggml's numbers.
constexpr int64_t kMean = 1, kCls = 2, kLast = 3, kRank = 4;

void refuse(bool wrong, std::string_view what) {
  if (wrong) fail(Code::unsupported, kOp, what, ", which GGUF files of this kind cannot say");
}

// Layers are at the top, or below a head's prefix.
std::string_view bare_name(std::string_view name) {
  for (const std::string_view prefix : {"bert.", "roberta.", "model."}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

// Weights by their GGUF names, from a family's table.
class EncoderTensors {
 public:
  EncoderTensors(const io::Checkpoint& checkpoint, std::span<const nn::TensorName> names)
      : checkpoint_(checkpoint), names_(names) {
    for (const io::TensorEntry& entry : checkpoint.tensors()) {
      entries_.emplace(bare_name(entry.name), &entry);
    }
  }

  // leaf: the end of the name, "weight" or the checkpoint's own. Null: there is none.
  const io::TensorEntry* find(std::string_view role, std::string_view leaf = "weight") const {
    const auto entry = entries_.find(cat(bare_name(hf_name(role)), ".", leaf));
    return entry == entries_.end() ? nullptr : entry->second;
  }
  const io::TensorEntry& require(std::string_view role, std::string_view leaf = "weight") const {
    const io::TensorEntry* entry = find(role, leaf);
    if (entry != nullptr) return *entry;
    fail(Code::not_found, kOp, "tensor ", hf_name(role), ".", leaf,
         " is missing from the checkpoint");
  }

  // The weight, and its bias where there is one.
  void take(std::string_view role) { take(role, role); }
  void take(std::string_view role, std::string_view as) {
    add(cat(as, ".weight"), require(role));
    if (const io::TensorEntry* bias = find(role, "bias")) add(cat(as, ".bias"), *bias);
  }

  void add(std::string name, const io::TensorEntry& stored) {
    SourceTensor tensor{.stored = stored, .edit = {}, .made = {}, .stack = {}};
    tensor.stored.name = std::move(name);
    out_.push_back(std::move(tensor));
  }
  SourceTensor& back() { return out_.back(); }

  std::vector<SourceTensor> finish() {
    const auto head = models::RankHead::tensor_names(checkpoint_);
    for (const auto& [gguf, hf] : head) {
      if (!models::RankHead::in(checkpoint_)) break;
      const io::TensorEntry& weight = checkpoint_.require(cat(hf, ".weight"));
      if (gguf == "cls.output" && weight.shape[0] != 1) {
        fail(Code::unsupported, kOp, weight.name, " is (", weight.shape, "): a classifier of ",
             weight.shape[0], " labels; only rankers, with one, are converted");
      }
      add(cat(gguf, ".weight"), weight);
      if (const auto* bias = checkpoint_.find(cat(hf, ".bias"))) add(cat(gguf, ".bias"), *bias);
    }
    return std::move(out_);
  }

 private:
  // "blk.3.attn_q" as the checkpoint has it, with what stands before the layers in the table.
  std::string hf_name(std::string_view role) const {
    constexpr std::string_view kLayer = "blk.";
    std::string pattern(role), layer;
    if (role.starts_with(kLayer)) {
      const size_t end = role.find('.', kLayer.size());
      layer = role.substr(kLayer.size(), end - kLayer.size());
      pattern = cat("blk.*", role.substr(end));
    }
    const auto row = std::ranges::find(names_, std::string_view(pattern), &nn::TensorName::gguf);
    RB_ASSERT(row != names_.end());
    std::string name(row->hf);
    if (const size_t star = name.find('*'); star != name.npos) name.replace(star, 1, layer);
    return name;
  }

  const io::Checkpoint& checkpoint_;
  std::span<const nn::TensorName> names_;
  std::map<std::string, const io::TensorEntry*, std::less<>> entries_;  // by bare name
  std::vector<SourceTensor> out_;
};

int64_t pooling_type(const io::Checkpoint& checkpoint) {
  if (models::RankHead::in(checkpoint)) return kRank;
  const models::EmbeddingSettings settings = models::read_embedding_settings(checkpoint);
  refuse(!settings.dense.empty(), "modules.json has Dense modules");
  const auto warn = [](std::string_view field) {
    log(LogLevel::warn, "GGUF files cannot say what the folder says",
        {{"field", std::string(field)}});
  };
  if (!settings.normalise) warn("modules.json without Normalize");
  if (!settings.prompts.empty()) warn("prompts");
  if (settings.max_tokens > 0) warn("max_seq_length");
  if (settings.pooling == models::Pooling::cls) return kCls;
  return settings.pooling == models::Pooling::last ? kLast : kMean;
}

void set_common_keys(const models::ModelConfig& config, const io::Checkpoint& checkpoint,
                     Keys& keys) {
  set_size_keys(config, keys);
  keys.number("attention.layer_norm_epsilon", config.norm_eps);
  keys.flag("attention.causal", false);
  keys.integer("vocab_size", config.vocab_size);
  keys.integer("pooling_type", pooling_type(checkpoint));
}

void set_segments(int64_t segments, io::GgufWriter& writer) {
  writer.set_u32("tokenizer.ggml.token_type_count", static_cast<uint32_t>(segments));
}

// The table from a text's first position on: readers count from 0.
void take_places(int64_t first, EncoderTensors& tensors) {
  tensors.take("position_embd");
  io::TensorEntry& table = tensors.back().stored;
  check(table.shape.rank() == 2 && table.shape[0] > first, kOp, "tensor ", table.name, " is (",
        table.shape, "), wanted more than ", first, " rows");
  const auto skipped = static_cast<size_t>(first * row_bytes(table.dtype, table.shape[1]));
  table.data = table.data.subspan(skipped);
  table.shape = {table.shape[0] - first, table.shape[1]};
}

ModelTensors bert_to_gguf(const io::Checkpoint& checkpoint, io::GgufWriter& writer) {
  const auto config = models::read_bert_config(models::ConfigReader(checkpoint));
  refuse(config.activation != UnaryOp::gelu_erf, "config.json's hidden_act is not gelu");
  writer.set_string("general.architecture", "bert");
  Keys keys("bert", writer);
  set_common_keys(config, checkpoint, keys);
  set_segments(config.segments, writer);
  EncoderTensors tensors(checkpoint, models::bert_tensor_names());
  tensors.take("token_embd");
  take_places(config.first_position, tensors);
  if (config.segments > 0) tensors.take("token_types");
  tensors.take("token_embd_norm");
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_output", "attn_output_norm",
                             "ffn_up", "ffn_down", "layer_output_norm"}) {
      tensors.take(cat("blk.", layer, ".", part));
    }
  }
  return {config, tensors.finish()};
}

// The n of "every n-th layer from the first sees all".
int64_t period_of(const models::ModernBertConfig& config) {
  for (int64_t period = 1; period <= config.layers; ++period) {
    bool holds = true;
    for (int64_t layer = 0; layer < config.layers; ++layer) {
      holds = holds && (config.windows[static_cast<size_t>(layer)] != 0) == (layer % period != 0);
    }
    if (holds) return period;
  }
  fail(Code::unsupported, kOp, "config.json's layer_types are not every n-th one without a ",
       "window, which GGUF files of this kind cannot say");
}

ModelTensors modern_bert_to_gguf(const io::Checkpoint& checkpoint, io::GgufWriter& writer) {
  const auto config = models::read_modern_bert_config(models::ConfigReader(checkpoint));
  refuse(config.activation != GateOp::gelu_erf, "config.json's hidden_activation is not gelu");
  refuse(config.global_rope.scaling != nn::RopeScaling::none, "config.json scales rope");
  if (models::RankHead::in(checkpoint)) {
    refuse(config.head_activation != UnaryOp::gelu_erf, "classifier_activation is not gelu");
    refuse(config.head_pooling != models::Pooling::mean, "classifier_pooling is not mean");
  }
  writer.set_string("general.architecture", "modern-bert");
  Keys keys("modern-bert", writer);
  set_common_keys(config, checkpoint, keys);
  // The config counts the keys on one side and the token itself.
  keys.integer("attention.sliding_window", config.reach == 0 ? 0 : 2 * (config.reach - 1));
  keys.integer("attention.sliding_window_pattern", period_of(config));
  keys.number("rope.freq_base", config.global_rope.base);
  keys.number("rope.freq_base_swa", config.local_rope.base);
  keys.text("rope.scaling.type", "none");
  EncoderTensors tensors(checkpoint, models::modern_bert_tensor_names());
  for (const char* part : {"token_embd", "token_embd_norm", "output_norm"}) tensors.take(part);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    if (layer > 0) tensors.take(cat("blk.", layer, ".attn_norm"));
    for (const char* part : {"attn_qkv", "attn_output", "ffn_norm", "ffn_up", "ffn_down"}) {
      tensors.take(cat("blk.", layer, ".", part));
    }
  }
  return {config, tensors.finish()};
}

void check_experts(const io::TensorEntry& entry, const Shape& wanted) {
  refuse(io::is_fp8(entry) || entry.integers != nullptr, cat("tensor ", entry.name, " is packed"));
  check(entry.shape == wanted, kOp, "tensor ", entry.name, " is (", entry.shape, "), wanted (",
        wanted, ")");
}

// The experts' matrices follow one another; the second ones have their outputs as columns.
void take_experts(const models::NomicBertConfig& config, const std::string& layer,
                  EncoderTensors& tensors) {
  const int64_t experts = config.experts, ffn = config.ffn_dim, dim = config.dim;
  tensors.take(layer + "ffn_gate_inp");
  const io::TensorEntry& up = tensors.require(layer + "ffn_up_exps", "w1");
  check_experts(up, {experts * ffn, dim});
  tensors.add(layer + "ffn_up_exps.weight", up);
  tensors.back().stored.shape = {experts, ffn, dim};
  const io::TensorEntry& down = tensors.require(layer + "ffn_down_exps", "w2");
  check_experts(down, {experts * ffn, dim});
  tensors.add(layer + "ffn_down_exps.weight", down);
  tensors.back().stored.shape = {experts, dim, ffn};
  tensors.back().edit.transposed = true;
  if (const io::TensorEntry* bias = tensors.find(layer + "ffn_exps", "bias")) {
    const std::vector<float> values = io::read_floats(*bias);
    refuse(std::ranges::any_of(values, [](float value) { return value != 0; }),
           cat("tensor ", bias->name, " is not zero"));
  }
}

void take_feed_forward(const models::NomicBertConfig& config, int64_t index,
                       EncoderTensors& tensors) {
  const std::string layer = cat("blk.", index, ".");
  if (config.gated) {
    for (const char* part : {"ffn_up", "ffn_gate", "ffn_down"}) tensors.take(layer + part);
  } else if (index % config.expert_period == 1) {
    take_experts(config, layer, tensors);
  } else {
    tensors.take(layer + "ffn_fc1", layer + "ffn_up");
    tensors.take(layer + "ffn_down");
  }
}

ModelTensors nomic_bert_to_gguf(const io::Checkpoint& checkpoint, io::GgufWriter& writer) {
  const auto config = models::read_nomic_bert_config(models::ConfigReader(checkpoint));
  if (config.gated) {
    refuse(config.activation != GateOp::silu, "config.json's activation is not swiglu");
  } else {
    refuse(config.expert_period == 0, "MLPs without a gate beside no experts");
    refuse(config.plain_activation != UnaryOp::gelu_erf, "config.json's activation is not gelu");
  }
  refuse(config.rope.scaling != nn::RopeScaling::none, "config.json scales rope");
  const char* architecture = config.gated ? "nomic-bert" : "nomic-bert-moe";
  writer.set_string("general.architecture", architecture);
  Keys keys(architecture, writer);
  set_common_keys(config, checkpoint, keys);
  keys.number("rope.freq_base", config.rope.base);
  if (!config.gated) {
    keys.integer("moe_every_n_layers", config.expert_period);
    keys.integer("expert_count", config.experts);
    keys.integer("expert_used_count", config.chosen_experts);
  }
  set_segments(config.segments, writer);
  EncoderTensors tensors(checkpoint, models::nomic_bert_tensor_names());
  tensors.take("token_embd");
  if (config.segments > 0) tensors.take("token_types");
  tensors.take("token_embd_norm");
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    for (const char* part : {"attn_qkv", "attn_output", "attn_output_norm"}) {
      tensors.take(cat("blk.", layer, ".", part));
    }
    take_feed_forward(config, layer, tensors);
    tensors.take(cat("blk.", layer, ".layer_output_norm"));
  }
  return {config, tensors.finish()};
}

}  // namespace

void set_decoder_pooling(const io::Checkpoint& checkpoint, Keys& keys) {
  const bool ranks = models::RankHead::in(checkpoint);
  if (ranks || !checkpoint.text_file("modules.json")) return;
  // Of a model that ranks by its words the whole output matrix goes along, for chats.
  if (models::read_embedding_settings(checkpoint).words) return;
  keys.integer("pooling_type", pooling_type(checkpoint));
}

ModelTensors encoder_to_gguf(const io::Checkpoint& checkpoint, io::GgufWriter& writer) {
  const std::string architecture = checkpoint.architecture();
  if (architecture == "modernbert") return modern_bert_to_gguf(checkpoint, writer);
  if (architecture == "nomic_bert") return nomic_bert_to_gguf(checkpoint, writer);
  return bert_to_gguf(checkpoint, writer);
}

}  // namespace rbee::tools
