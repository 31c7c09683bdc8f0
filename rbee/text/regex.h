#pragma once
// Regular expressions of tokenizer files, run by PCRE2 (with its JIT if it has one) within limits.
// \s and \w mean what they mean in Hugging Face's engine: White_Space, and Unicode words.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace rbee::text {

class Regex {
 public:
  // Throws Error(unsupported) with the place of the fault; the message begins with `where`.
  Regex(std::string_view pattern, std::string_view where);
  ~Regex();
  Regex(Regex&&) noexcept;

  // Calls on_match(begin, end) for every match in `text` (valid UTF-8), left to right, but not for
  // empty ones. Throws Error(invalid_argument) if a match takes too many steps. Thread-safe.
  void each_match(std::string_view text, const std::function<void(size_t, size_t)>& on_match) const;

 private:
  struct Compiled;
  std::string pattern_;
  std::unique_ptr<Compiled> code_;
};

}  // namespace rbee::text
