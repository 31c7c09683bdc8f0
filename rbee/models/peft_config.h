#pragma once
// PEFT's adapter_config.json: what the matrices of a low-rank adapter are multiplied by.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rbee/io/json_config.h"

namespace rbee::models {

// alpha / divisor. Throws invalid_argument naming `source` where that is no number for layers.
float lora_factor(const std::string& source, double alpha, double divisor);

// Whether lengths of rows are read (Liu et al. 2024).
enum class Dora : uint8_t { refused, read };

class PeftConfig {
 public:
  static constexpr const char* kName = "adapter_config.json";
  static constexpr const char* kWeightsName = "adapter_model.safetensors";

  // `source` is named by errors. Throws invalid_argument for what is no such file, and unsupported
  // for kinds of adapters that are not implemented: others than LoRA, DoRA where it is not read,
  // biases, changed tables of tokens, modules that are saved whole.
  PeftConfig(std::string_view text, const std::string& source, Dora dora = Dora::refused);

  // alpha / rank of a module whose tensors have this rank, or alpha / sqrt(rank). Throws
  // invalid_argument when the file gives it another rank.
  float factor(const std::string& module, int64_t rank) const;

 private:
  std::optional<std::string> match(const io::JsonConfig& patterns, const std::string& module) const;

  io::JsonConfig config_, ranks_, alphas_;
  int64_t rank_ = 0;
  double alpha_ = 0;
  bool root_ = false;  // rank-stabilised (Kalajdzievski 2023)
};

}  // namespace rbee::models
