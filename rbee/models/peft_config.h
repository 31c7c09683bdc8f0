#pragma once
// PEFT's adapter_config.json: the factors of a LoRA adapter's matrices.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rbee/io/json_config.h"

namespace rbee::models {

// alpha / divisor. Throws invalid_argument naming `source` if that is not a usable number.
float lora_factor(const std::string& source, double alpha, double divisor);

// Whether DoRA's magnitudes are read (Liu et al. 2024).
enum class Dora : uint8_t { refused, read };

class PeftConfig {
 public:
  static constexpr const char* kName = "adapter_config.json";
  static constexpr const char* kWeightsName = "adapter_model.safetensors";

  // Errors name `source`. Throws invalid_argument if the text is not such a file, and unsupported
  // for what is not implemented: other methods than LoRA, DoRA if it is refused, biases, changed
  // token tables, and modules saved as a whole.
  PeftConfig(std::string_view text, const std::string& source, Dora dora = Dora::refused);

  // alpha / rank of a module whose tensors have this rank, or alpha / sqrt(rank). Throws
  // invalid_argument if the file gives it another rank.
  float factor(const std::string& module, int64_t rank) const;

 private:
  std::optional<std::string> match(const io::JsonConfig& patterns, const std::string& module) const;

  io::JsonConfig config_, ranks_, alphas_;
  int64_t rank_ = 0;
  double alpha_ = 0;
  bool root_ = false;  // rank-stabilised (Kalajdzievski 2023)
};

}  // namespace rbee::models
