#pragma once
// What the environment says of Hugging Face's hub: the variables that huggingface_hub reads, with
// the same meaning.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace rbee::hub {

struct Settings {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT, without a slash at the end
  std::filesystem::path cache;                      // HF_HUB_CACHE, or <HF_HOME>/hub
  std::string token;                                // empty = none
  bool offline = false;                             // HF_HUB_OFFLINE: the cache alone
};

// The value of a variable; absent if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

// Throws invalid_argument if the endpoint is no http or https address, or a token holds characters
// that a header cannot.
Settings read_settings(const Environment& environment = process_environment);

}  // namespace rbee::hub
