#pragma once
// Handles pages of a mapped file that cannot be read any more, because the file was truncated or
// its disk fails. The system sends SIGBUS to the thread that reads such a page.

#include <cstddef>
#include <span>

namespace rbee::io {

// For programs: installs `handler` for such a page of a MappedFile. It runs in a signal handler,
// after unfinished OutputFiles are removed, gets the file's name without control characters, and
// must end the process. Other SIGBUS go to the previous handler. Throws io.
void handle_lost_pages(void (*handler)(const char* file));

// Reads a byte of each page. Call it after a system call has failed to read the bytes.
void touch_pages(std::span<const std::byte> bytes);

// Tells the handler of a mapped or an unfinished file while it lives. Texts are not copied and must
// outlive it.
class LostPagesEntry {
 public:
  struct Slot;
  // A mapped file. shown: its name without control characters.
  LostPagesEntry(std::span<const std::byte> mapped, const char* shown);
  // A file that the handler must remove.
  explicit LostPagesEntry(const char* unfinished);
  ~LostPagesEntry();
  LostPagesEntry(const LostPagesEntry&) = delete;
  LostPagesEntry& operator=(const LostPagesEntry&) = delete;

 private:
  Slot* const slot_;
};

}  // namespace rbee::io
