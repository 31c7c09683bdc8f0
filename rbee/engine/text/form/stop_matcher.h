#pragma once
// Finds stop texts in a stream of text pieces, also across their borders. It holds text back while
// that text may still become the start of a stop text.

#include <string>
#include <string_view>
#include <vector>

namespace rbee::engine {

class StopMatcher {
 public:
  // stops: non-empty texts; if there are none, all text passes at once.
  explicit StopMatcher(std::vector<std::string> stops);

  // Adds text and returns what can be sent now. After a match it returns nothing more.
  std::string push(std::string_view text);
  // The same for text in which no stop text can end; one may begin there.
  std::string pass(std::string_view text);
  // The text still held back, at the end of the stream.
  std::string flush();
  // The first stop text in the stream (the longest, if several begin at one place), or empty.
  const std::string& matched() const { return matched_; }

 private:
  std::string release();

  std::vector<std::string> stops_;
  std::string held_;
  size_t passed_ = 0;  // leading bytes of held_ in which no stop text ends
  std::string matched_;
};

}  // namespace rbee::engine
