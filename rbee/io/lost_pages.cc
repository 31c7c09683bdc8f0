#include "rbee/io/lost_pages.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <system_error>

#include "rbee/core/error.h"

namespace rbee::io {

// Written under the table's lock, read by a signal handler without it. text: null if no file has
// the slot; it is written last and taken away first.
struct LostPagesEntry::Slot {
  std::atomic<const char*> text = nullptr;
  std::atomic<uintptr_t> first = 0;
  std::atomic<uintptr_t> end = 0;
};

namespace {

using Slot = LostPagesEntry::Slot;

static_assert(std::atomic<const char*>::is_always_lock_free &&
              std::atomic<uintptr_t>::is_always_lock_free);

constexpr size_t kPage = 4096;  // or a part of one

// Grows and is never destroyed: threads may still read files while the program's statics go away.
class Table {
 public:
  constexpr Table() = default;

  Slot* add(uintptr_t first, uintptr_t end, const char* text) {
    const std::scoped_lock lock(mutex_);
    Slot& slot = free_slot();
    slot.first = first;
    slot.end = end;
    slot.text = text;
    return &slot;
  }

  // The rest is for signal handlers. Null for an address that is not mapped.
  const char* text_at(uintptr_t address) const {
    for (const Chunk* chunk = &first_; chunk != nullptr; chunk = chunk->next) {
      for (const Slot& slot : chunk->slots) {
        const bool inside = slot.first <= address && address < slot.end;
        const char* text = slot.text;
        if (inside && text != nullptr) return text;
      }
    }
    return nullptr;
  }

  void unlink_all() const {
    for (const Chunk* chunk = &first_; chunk != nullptr; chunk = chunk->next) {
      for (const Slot& slot : chunk->slots) {
        const char* text = slot.text;
        if (text != nullptr) ::unlink(text);
      }
    }
  }

 private:
  struct Chunk {
    std::array<Slot, 64> slots;
    std::atomic<Chunk*> next = nullptr;
  };

  Slot& free_slot() {
    for (Chunk* chunk = &first_;; chunk = chunk->next) {
      for (Slot& slot : chunk->slots) {
        if (slot.text == nullptr) return slot;
      }
      if (chunk->next == nullptr) chunk->next = new Chunk;
    }
  }

  std::mutex mutex_;
  Chunk first_;
};

constinit Table mapped_files;
constinit Table unfinished_files;  // without addresses

using Handler = void (*)(const char* file);
constinit Handler on_lost = nullptr;
constinit struct sigaction before = {};  // handles the other faults

void give_up(const char* file) {
  static std::atomic_flag given_up = ATOMIC_FLAG_INIT;
  while (given_up.test_and_set()) ::pause();  // another thread ends the process
  unfinished_files.unlink_all();
  on_lost(file);
}

// Only signal-safe calls, here and in what it calls.
void on_bus_error(int number, siginfo_t* info, void* context) {
  const char* file = info->si_code > 0
                         ? mapped_files.text_at(reinterpret_cast<uintptr_t>(info->si_addr))
                         : nullptr;
  if (file != nullptr) return give_up(file);
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    return before.sa_handler(number);
  }
  ::signal(number, SIG_DFL);
  ::raise(number);  // comes when this handler returns
}

}  // namespace

void handle_lost_pages(Handler handler) {
  on_lost = handler;
  struct sigaction now = {};
  ::sigaction(SIGBUS, nullptr, &now);
  if (now.sa_sigaction != on_bus_error) before = now;
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  if (::sigaction(SIGBUS, &action, nullptr) != 0) {
    fail(Code::io, "sigaction", std::generic_category().message(errno));
  }
}

void touch_pages(std::span<const std::byte> bytes) {
  const volatile std::byte* data = bytes.data();
  const auto read = [data](size_t at) { [[maybe_unused]] const std::byte byte = data[at]; };
  for (size_t at = 0; at < bytes.size(); at += kPage) read(at);
  if (!bytes.empty()) read(bytes.size() - 1);
}

LostPagesEntry::LostPagesEntry(std::span<const std::byte> mapped, const char* shown)
    : slot_(mapped_files.add(reinterpret_cast<uintptr_t>(mapped.data()),
                             reinterpret_cast<uintptr_t>(mapped.data() + mapped.size()), shown)) {}

LostPagesEntry::LostPagesEntry(const char* unfinished)
    : slot_(unfinished_files.add(0, 0, unfinished)) {}

LostPagesEntry::~LostPagesEntry() {
  slot_->text = nullptr;
}

}  // namespace rbee::io
