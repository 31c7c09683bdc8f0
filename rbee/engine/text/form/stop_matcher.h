#pragma once
// Finds stop texts in a stream of text pieces, also across their borders. Text that may still turn
// out to be the beginning of a stop text is held back.

#include <string>
#include <string_view>
#include <vector>

namespace rbee::engine {

class StopMatcher {
 public:
  // stops: non-empty texts; none = everything passes at once.
  explicit StopMatcher(std::vector<std::string> stops);

  // Adds text; returns what may be emitted now. After a match nothing more is emitted.
  std::string push(std::string_view text);
  // The same of text in which no stop text ends; one may begin there.
  std::string pass(std::string_view text);
  // Text still held back, once no more is to come.
  std::string flush();
  // The stop text found first in the stream (the longest of those that begin at one place), or
  // empty.
  const std::string& matched() const { return matched_; }

 private:
  std::string release();

  std::vector<std::string> stops_;
  std::string held_;
  size_t passed_ = 0;  // leading bytes of held_ in which no stop text ends
  std::string matched_;
};

}  // namespace rbee::engine
