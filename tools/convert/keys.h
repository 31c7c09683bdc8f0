#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/io/gguf_writer.h"
#include "rbee/models/common_config.h"

namespace rbee::tools {

// Sets keys under an architecture's prefix.
class Keys {
 public:
  // writer: must outlive the keys.
  Keys(std::string_view architecture, io::GgufWriter& writer)
      : prefix_(architecture), out_(writer) {}

  void integer(std::string_view name, int64_t value) {
    check(value >= 0 && value <= UINT32_MAX, "convert", key(name), " would be ", value);
    out_.set_u32(key(name), static_cast<uint32_t>(value));
  }
  void number(std::string_view name, double value) {
    out_.set_f32(key(name), static_cast<float>(value));
  }
  void text(std::string_view name, std::string_view value) { out_.set_string(key(name), value); }
  void flag(std::string_view name, bool value) { out_.set_bool(key(name), value); }
  void flags(std::string_view name, const std::vector<bool>& values) {
    out_.set_bools(key(name), values);
  }

 private:
  std::string key(std::string_view name) const { return cat(prefix_, ".", name); }

  std::string prefix_;
  io::GgufWriter& out_;
};

// What decoders and encoders both have.
inline void set_size_keys(const models::ModelConfig& config, Keys& keys) {
  keys.integer("context_length", config.context_length);
  keys.integer("embedding_length", config.dim);
  keys.integer("block_count", config.layers);
  keys.integer("feed_forward_length", config.ffn_dim);
  keys.integer("attention.head_count", config.heads);
}

}  // namespace rbee::tools
