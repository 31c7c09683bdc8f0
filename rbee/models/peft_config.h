#pragma once
// PEFT's adapter_config.json: the factors of an adapter's matrices.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rbee/io/json_config.h"

namespace rbee::models {

// alpha / divisor. Throws invalid_argument naming `source` if that is not a usable number.
float lora_factor(const std::string& source, double alpha, double divisor);

// What PEFT's adapters may be: LoRA for texts; for pictures also with DoRA's magnitudes (Liu et al.
// 2024), LoHa and LoKr.
enum class PeftOf : uint8_t { texts, pictures };

class PeftConfig {
 public:
  static constexpr const char* kName = "adapter_config.json";
  static constexpr const char* kWeightsName = "adapter_model.safetensors";

  // Errors name `source`. Throws invalid_argument if the text is not such a file, and unsupported
  // for what is not implemented: other methods than PeftOf's, biases, changed token tables, and
  // modules saved as a whole.
  PeftConfig(std::string_view text, const std::string& source, PeftOf of = PeftOf::texts);

  // alpha / rank of a module, or alpha / sqrt(rank). rank: that of its tensors, if they show one.
  // Throws invalid_argument if the file gives it another rank.
  float factor(const std::string& module, std::optional<int64_t> rank) const;

 private:
  std::optional<std::string> match(const io::JsonConfig& patterns, const std::string& module) const;

  io::JsonConfig config_, ranks_, alphas_;
  int64_t rank_ = 0;
  double alpha_ = 0;
  bool root_ = false;  // rank-stabilised (Kalajdzievski 2023)
};

}  // namespace rbee::models
