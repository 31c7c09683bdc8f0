// A model's use, as sentence-transformers' files and GGUF files describe it.

#include <nlohmann/json.hpp>
#include <utility>

#include "rbee/io/json_config.h"
#include "rbee/io/json_parse.h"
#include "rbee/models/common_config.h"
#include "rbee/models/rank_head.h"

namespace rbee::models {
namespace {

using io::JsonConfig;
using nlohmann::json;

constexpr const char* kModules = "modules.json";

// ggml's numbers.
constexpr int64_t kNone = 0, kMean = 1, kCls = 2, kLast = 3, kRank = 4;

bool sees_both_ways(const io::Checkpoint& checkpoint) {
  return is_encoder(checkpoint.architecture()) ||
         !is_causal(ConfigReader(checkpoint, "text_config"));
}

Pooling usual_pooling(const io::Checkpoint& checkpoint) {
  return sees_both_ways(checkpoint) ? Pooling::mean : Pooling::last;
}

std::optional<int64_t> gguf_pooling(const io::Checkpoint& checkpoint) {
  if (checkpoint.format() != io::Checkpoint::Format::gguf) return std::nullopt;
  return checkpoint.metadata().get_i64(cat(checkpoint.architecture(), ".pooling_type"));
}

std::optional<JsonConfig> read_config(const io::Checkpoint& checkpoint, const std::string& name) {
  const auto text = checkpoint.text_file(name);
  if (!text) return std::nullopt;
  return JsonConfig(*text, name);
}

// Of a module's folder.
JsonConfig module_config(const io::Checkpoint& checkpoint, const std::string& path) {
  const std::string file = cat(path, "/config.json");
  auto config = read_config(checkpoint, file);
  if (!config) fail(Code::not_found, kModules, "names ", file, ", which is missing");
  return *std::move(config);
}

Pooling pooling_of(const JsonConfig& config) {
  const std::string& file = config.source();
  if (!config.flag_or("include_prompt", true)) {
    fail(Code::unsupported, file, "include_prompt is false; prompts are pooled with their text");
  }
  const std::string named = config.text_or("pooling_mode", "");
  if (named == "mean" || named == "cls") return parse_pooling(named);
  if (named == "lasttoken") return Pooling::last;
  std::vector<Pooling> chosen;
  const auto add = [&](const char* key, Pooling pooling) {
    if (config.flag_or(key, false)) chosen.push_back(pooling);
  };
  add("pooling_mode_mean_tokens", Pooling::mean);
  add("pooling_mode_cls_token", Pooling::cls);
  add("pooling_mode_lasttoken", Pooling::last);
  bool other = !named.empty();
  for (const char* key : {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
                          "pooling_mode_weightedmean_tokens"}) {
    other |= config.flag_or(key, false);
  }
  if (other || chosen.size() != 1) {
    fail(Code::unsupported, file, "names a pooling that is not implemented; known are mean, cls ",
         "and lasttoken, one of them");
  }
  return chosen.front();
}

DenseModule read_dense(const io::Checkpoint& checkpoint, const std::string& path) {
  constexpr io::IntegerRange kWidth{1, 1 << 16};
  const JsonConfig config = module_config(checkpoint, path);
  DenseModule out{.folder = path,
                  .in = config.integer("in_features", kWidth),
                  .out = config.integer("out_features", kWidth),
                  .bias = config.flag_or("bias", true)};
  for (const char* key : {"module_input_name", "module_output_name"}) {
    const std::string name = config.text_or(key, "sentence_embedding");
    if (name != "sentence_embedding") {
      fail(Code::unsupported, config.source(), key, " is \"", name,
           "\"; sentence_embedding is implemented");
    }
  }
  const std::string activation = config.text_or("activation_function", "Tanh");
  const std::string_view kind = std::string_view(activation).substr(activation.rfind('.') + 1);
  out.tanh = kind == "Tanh";
  if (!out.tanh && kind != "Identity") {
    fail(Code::unsupported, config.source(), "activation_function is \"", activation,
         "\"; known are Tanh and Identity");
  }
  return out;
}

void read_prompts(const io::Checkpoint& checkpoint, EmbeddingSettings& out) {
  const std::string file = "config_sentence_transformers.json";
  const auto config = read_config(checkpoint, file);
  if (!config) return;
  const JsonConfig prompts = config->section("prompts");
  for (const std::string& name : prompts.fields()) {
    out.prompts[name] = prompts.text_or(name, "");
  }
  out.default_prompt = config->text_or("default_prompt_name", "");
  check(out.default_prompt.empty() || out.prompts.contains(out.default_prompt), file,
        "default_prompt_name is \"", out.default_prompt, "\", which is none of its prompts");
}

RankWords read_words(const io::Checkpoint& checkpoint, const std::string& path) {
  constexpr io::IntegerRange kToken{0, INT32_MAX};
  constexpr const char* kNo = "false_token_id";
  const JsonConfig config = module_config(checkpoint, path);
  const auto token = [&](const char* key) {
    return static_cast<int32_t>(config.integer(key, kToken));
  };
  return {.yes = token("true_token_id"),
          .no = config.has(kNo) ? std::optional(token(kNo)) : std::nullopt};
}

EmbeddingSettings read_modules(const io::Checkpoint& checkpoint, const json& modules) {
  check(modules.is_array(), kModules, "is not an array");
  EmbeddingSettings out{.pooling = usual_pooling(checkpoint), .dense = {}, .normalise = false};
  bool pooled = false;
  for (const json& entry : modules) {
    const JsonConfig module(entry.dump(), kModules);
    const std::string type = module.text_or("type", "");
    const std::string path = module.text_or("path", "");
    const std::string_view kind = std::string_view(type).substr(type.rfind('.') + 1);
    if (kind == "Normalize") {
      out.normalise = true;
    } else if (kind == "Pooling") {
      out.pooling = pooling_of(module_config(checkpoint, path));
      pooled = true;
    } else if (kind == "Dense") {
      if (!pooled || out.normalise) {
        fail(Code::unsupported, kModules, "has the module ", path,
             " elsewhere than between Pooling and Normalize");
      }
      out.dense.push_back(read_dense(checkpoint, path));
    } else if (kind == "LogitScore") {
      out.words = read_words(checkpoint, path);
      out.ranks = true;
    } else if (kind != "Transformer") {
      fail(Code::unsupported, kModules, "has the module \"", type,
           "\"; known are Transformer, Pooling, Dense, Normalize and LogitScore");
    }
  }
  if (const auto config = read_config(checkpoint, "sentence_bert_config.json")) {
    out.max_tokens = config->integer_or("max_seq_length", 0, {0, INT32_MAX});
  }
  read_prompts(checkpoint, out);
  return out;
}

// GGUF files may have it; of the others only Qwen3's rankers' is known (the model card of
// Qwen3-Reranker-0.6B).
std::string pair_template(const io::Checkpoint& checkpoint) {
  if (checkpoint.format() == io::Checkpoint::Format::gguf) {
    const auto own = checkpoint.metadata().get_string("tokenizer.chat_template.rerank");
    if (own) return std::string(*own);
  }
  if (checkpoint.architecture() != "qwen3") return "";
  return "<|im_start|>system\nJudge whether the Document meets the requirements based on the "
         "Query and the Instruct provided. Note that the answer can only be \"yes\" or "
         "\"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: {instruction}\n<Query>: {query}\n"
         "<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
}

// Behind one another, as llama.cpp's converter names what sentence-transformers has in folders.
std::vector<DenseModule> gguf_dense(const io::Checkpoint& checkpoint) {
  std::vector<DenseModule> out;
  for (const char* name : {"dense_2", "dense_3"}) {
    const io::TensorEntry* weight = checkpoint.find(cat(name, ".weight"));
    if (weight == nullptr) continue;
    check(weight->shape.rank() == 2, "load", weight->name, " is (", weight->shape,
          "), wanted two axes");
    out.push_back({.folder = {},
                   .tensor = name,
                   .in = weight->shape[1],
                   .out = weight->shape[0],
                   .bias = checkpoint.find(cat(name, ".bias")) != nullptr,
                   .tanh = false});
  }
  return out;
}

}  // namespace

EmbeddingSettings read_embedding_settings(const io::Checkpoint& checkpoint) {
  if (checkpoint.format() == io::Checkpoint::Format::safetensors) {
    if (const auto modules = checkpoint.text_file(kModules)) {
      EmbeddingSettings out = read_modules(checkpoint, io::parse_json(*modules, kModules));
      out.pair_template = pair_template(checkpoint);
      return out;
    }
  }
  const bool gguf = checkpoint.format() == io::Checkpoint::Format::gguf;
  EmbeddingSettings out{.pooling = usual_pooling(checkpoint),
                        .dense = gguf ? gguf_dense(checkpoint) : std::vector<DenseModule>()};
  const int64_t type = gguf_pooling(checkpoint).value_or(kNone);
  if (type == kMean) out.pooling = Pooling::mean;
  if (type == kCls || type == kRank) out.pooling = Pooling::cls;
  if (type == kLast || (type == kRank && !is_encoder(checkpoint.architecture()))) {
    out.pooling = Pooling::last;
  }
  check(type >= kNone && type <= kRank, "pooling_type", type, " is not known");
  out.ranks = type == kRank;
  out.pair_template = pair_template(checkpoint);
  return out;
}

bool makes_embeddings(const io::Checkpoint& checkpoint) {
  if (sees_both_ways(checkpoint) || RankHead::in(checkpoint)) return true;
  if (checkpoint.format() == io::Checkpoint::Format::gguf) {
    return gguf_pooling(checkpoint).value_or(kNone) != kNone;
  }
  return checkpoint.text_file(kModules).has_value();
}

}  // namespace rbee::models
