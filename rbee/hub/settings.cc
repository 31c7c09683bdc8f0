#include "rbee/hub/settings.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/hub/url.h"

namespace rbee::hub {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxToken = 4096;  // bytes of a token's file

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// "$NAME" and "${NAME}" as Python's expandvars: what is not set stays as it is.
std::string expand_variables(const std::string& text, const Environment& environment) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool braces = text.compare(at, 2, "${") == 0;
    const size_t begin = at + (braces ? 2 : 1);
    size_t end = begin;
    while (end < text.size() && is_name_char(text[end])) ++end;
    const bool closed = !braces || (end < text.size() && text[end] == '}');
    const auto value = text[at] == '$' && end > begin && closed
                           ? environment(text.substr(begin, end - begin))
                           : std::nullopt;
    if (value) {
      out += *value;
      at = end + (braces ? 1 : 0);
    } else {
      out += text[at++];
    }
  }
  return out;
}

fs::path home(const Environment& environment) {
  const std::string text = environment("HOME").value_or("");
  return text.empty() ? "/" : text;
}

// The path that a variable holds; absent if the variable is not set, or empty.
std::optional<fs::path> path_in(const char* name, const Environment& environment) {
  std::string path = environment(name).value_or("");
  if (path == "~" || path.starts_with("~/")) path = home(environment).string() + path.substr(1);
  path = expand_variables(path, environment);
  return path.empty() ? std::nullopt : std::optional(fs::absolute(path));
}

bool is_true(const std::optional<std::string>& value) {
  std::string text = value.value_or("");
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

// Without the spaces and line ends that files and shells leave around it.
std::string trimmed(const std::string& text) {
  constexpr const char* kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::string read_token(const fs::path& hf_home, const Environment& environment) {
  if (is_true(environment("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return {};
  std::string token;
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (token.empty()) token = trimmed(environment(name).value_or(""));
  }
  if (token.empty()) {
    const fs::path file = path_in("HF_TOKEN_PATH", environment).value_or(hf_home / "token");
    std::error_code ignored;
    if (fs::exists(file, ignored)) token = trimmed(read_file(file, kMaxToken));
  }
  // A line end would begin a header of its own.
  const bool plain = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; });
  check(plain, "HF_TOKEN", "the token has characters other than printable ASCII");
  return token;
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Settings read_settings(const Environment& environment) {
  Settings out;
  if (auto endpoint = environment("HF_ENDPOINT"); endpoint && !endpoint->empty()) {
    while (endpoint->ends_with('/')) endpoint->pop_back();
    out.endpoint = *endpoint;
  }
  (void)origin_of(out.endpoint);  // throws if it is none
  fs::path hf_home;
  if (const auto named = path_in("HF_HOME", environment)) {
    hf_home = *named;
  } else if (const auto xdg = path_in("XDG_CACHE_HOME", environment)) {
    hf_home = *xdg / "huggingface";
  } else {
    hf_home = home(environment) / ".cache" / "huggingface";
  }
  out.cache = hf_home / "hub";
  for (const char* name : {"HUGGINGFACE_HUB_CACHE", "HF_HUB_CACHE"}) {
    out.cache = path_in(name, environment).value_or(out.cache);
  }
  out.token = read_token(hf_home, environment);
  const auto offline = environment("HF_HUB_OFFLINE");
  out.offline =
      is_true(offline && !offline->empty() ? offline : environment("TRANSFORMERS_OFFLINE"));
  return out;
}

}  // namespace rbee::hub
