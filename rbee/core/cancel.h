#pragma once
// Tells a thread's work that its client has gone away.

#include <atomic>
#include <string_view>

namespace rbee {

// While a scope lives, work of its thread stops at its next check after the flag is set. The flag
// must outlive the scope. The innermost scope counts.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>& flag);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  const std::atomic<bool>* const outer_;
};

// Of the innermost scope; null: there is none.
const std::atomic<bool>* cancel_flag();
bool is_cancelled();

// Between two parts of long work, such as rows of a picture. Throws cancelled, with `subject`, if
// the client has gone away.
void check_cancelled(std::string_view subject);

}  // namespace rbee
