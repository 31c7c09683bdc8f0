#pragma once
// What happens when a page of a mapped file cannot be read any more: the file was cut, or its disk
// fails. The system sends SIGBUS to the thread that reads such a page.

#include <cstddef>
#include <span>

namespace rbee::io {

// For programs: from here on `handler` hears of such a page of a MappedFile. It gets the file's
// name without control characters once unfinished OutputFiles are removed, runs in a signal handler
// and ends the process. Other SIGBUS go where they went before. Throws io.
void handle_lost_pages(void (*handler)(const char* file));

// Reads a byte of each page, for those who learn from a system call that bytes cannot be read.
void touch_pages(std::span<const std::byte> bytes);

// What the handler has to know of a mapped file or an unfinished one, from the constructor to the
// destructor. Texts are not copied and outlive it.
class LostPagesEntry {
 public:
  struct Slot;
  // A mapped file; shown: its name without control characters.
  LostPagesEntry(std::span<const std::byte> mapped, const char* shown);
  // A file to be removed.
  explicit LostPagesEntry(const char* unfinished);
  ~LostPagesEntry();
  LostPagesEntry(const LostPagesEntry&) = delete;
  LostPagesEntry& operator=(const LostPagesEntry&) = delete;

 private:
  Slot* const slot_;
};

}  // namespace rbee::io
