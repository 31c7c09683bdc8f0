#include "backends/cpu/group_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "rbee/core/error.h"
#include "rbee/core/system/shared_memory.h"

namespace rbee::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOp = "group";
constexpr uint64_t kMagic = 0x314d474545425221;  // "!RBEEGM1"
constexpr int kMostRanks = 256;
constexpr size_t kPage = 4096;
constexpr size_t kLongestReason = 240;
constexpr auto kSpin = std::chrono::microseconds(20);
// Only bounds a sleep that began while the group was ended.
constexpr auto kLongestSleep = std::chrono::milliseconds(100);

enum Ending : uint32_t { kRunning, kWritten, kEnded };

// Turns are compared across the wrap of their number.
bool behind(uint32_t turn, uint32_t wanted) {
  return static_cast<int32_t>(turn - wanted) < 0;
}

}  // namespace

struct GroupMemory::Head {
  std::atomic<uint64_t> magic;
  uint64_t area_bytes;
  int32_t ranks;
  std::atomic<uint32_t> ending;
  std::array<char, kLongestReason + 1> reason;
};

struct alignas(64) GroupMemory::RankState {
  std::atomic<uint32_t> turn;
  std::atomic<uint32_t> sleepers;  // ranks that wait for this one's turn
  std::atomic<uint32_t> taken;
  std::array<Turn, 2> turns;  // by the last bit of the turn's number
};

namespace {

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

size_t states_bytes(int ranks) {
  return (static_cast<size_t>(ranks) * 64 + kPage - 1) / kPage * kPage;
}

size_t memory_bytes(int ranks) {
  return kPage + states_bytes(ranks) + static_cast<size_t>(ranks) * 2 * GroupMemory::kAreaBytes;
}

std::byte* map(int fd, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    fail(Code::out_of_memory, kOp, "cannot map ", bytes, " bytes: ", std::strerror(errno));
  }
  return static_cast<std::byte*>(memory);
}

}  // namespace

int GroupMemory::create(int ranks) {
  static_assert(sizeof(Head) <= kPage && sizeof(RankState) == 64);
  check(ranks >= 2 && ranks <= kMostRanks, kOp, "ranks is ", ranks, ", wanted 2 to ", kMostRanks);
  const int fd = new_shared_memory();
  const size_t bytes = memory_bytes(ranks);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    fail(Code::out_of_memory, kOp, "no ", bytes, " bytes for ", ranks,
         " ranks: ", std::strerror(error));
  }
  try {
    std::byte* memory = map(fd, kPage);
    auto* head = new (memory) Head{};
    head->area_bytes = kAreaBytes;
    head->ranks = ranks;
    head->magic.store(kMagic);
    munmap(memory, kPage);
  } catch (...) {
    close(fd);
    throw;
  }
  return fd;
}

std::unique_ptr<GroupMemory> GroupMemory::attach(int fd, int rank) {
  struct stat file{};
  check(fstat(fd, &file) == 0 && file.st_size >= static_cast<off_t>(kPage), kOp, "descriptor ", fd,
        " is no memory of a group");
  std::byte* first = map(fd, kPage);
  const auto* head = reinterpret_cast<const Head*>(first);
  const bool made = head->magic.load() == kMagic && head->area_bytes == kAreaBytes;
  const int ranks = made ? head->ranks : 0;
  munmap(first, kPage);
  check(
      ranks >= 2 && ranks <= kMostRanks && file.st_size == static_cast<off_t>(memory_bytes(ranks)),
      kOp, "descriptor ", fd, " is no memory of a group of this program");
  check(rank >= 0 && rank < ranks, kOp, "rank is ", rank, ", wanted 0 to ", ranks - 1);
  const size_t bytes = memory_bytes(ranks);
  std::unique_ptr<GroupMemory> group(new GroupMemory(map(fd, bytes), bytes, rank, ranks));
  if (group->state(rank).taken.exchange(1) != 0) {
    fail(Code::device, kOp, "rank ", rank, " is attached already");
  }
  return group;
}

GroupMemory::~GroupMemory() {
  munmap(memory_, bytes_);
}

GroupMemory::Head& GroupMemory::head() const {
  return *reinterpret_cast<Head*>(memory_);
}

// Zero bytes are a state in which nothing has happened.
GroupMemory::RankState& GroupMemory::state(int rank) const {
  return reinterpret_cast<RankState*>(memory_ + kPage)[rank];
}

std::byte* GroupMemory::area_at(int rank, uint32_t turn) const {
  const size_t index = 2 * static_cast<size_t>(rank) + turn % 2;
  return memory_ + kPage + states_bytes(ranks_) + index * kAreaBytes;
}

std::byte* GroupMemory::area() {
  return area_at(rank_, turn_ + 1);
}

const std::byte* GroupMemory::area_of(int rank) const {
  return area_at(rank, turn_);
}

void GroupMemory::end(std::string_view reason) noexcept {
  uint32_t running = kRunning;
  if (head().ending.compare_exchange_strong(running, kWritten)) {
    const size_t length = std::min(reason.size(), kLongestReason);
    std::copy_n(reason.begin(), length, head().reason.begin());
    head().ending.store(kEnded);
  }
  for (int rank = 0; rank < ranks_; ++rank) wake_all(state(rank).turn);
}

bool GroupMemory::ended() const noexcept {
  return head().ending.load(std::memory_order_relaxed) != kRunning;
}

void GroupMemory::fail_ended() const {
  const bool said = head().ending.load() == kEnded;
  const std::string reason(head().reason.data(), strnlen(head().reason.data(), kLongestReason));
  fail(Code::device, kOp, "the group has ended: ", said ? reason : "nobody says why");
}

void GroupMemory::meet(const Turn& turn) {
  if (ended()) fail_ended();
  ++turn_;
  RankState& own = state(rank_);
  own.turns[turn_ % 2] = turn;
  own.turn.store(turn_);
  if (own.sleepers.load() > 0) wake_all(own.turn);
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    wait_for(rank, turn_);
    const Turn& other = state(rank).turns[turn_ % 2];
    if (other.kind == turn.kind && other.bytes == turn.bytes) continue;
    end(cat("rank ", rank, " is in operation ", other.kind, " of ", other.bytes, " bytes and rank ",
            rank_, " in operation ", turn.kind, " of ", turn.bytes));
    fail_ended();
  }
}

void GroupMemory::wait_for(int rank, uint32_t turn) {
  RankState& other = state(rank);
  const Clock::time_point start = Clock::now();
  while (behind(other.turn.load(std::memory_order_acquire), turn)) {
    if (ended()) fail_ended();
    const auto waited = Clock::now() - start;
    if (waited < kSpin) continue;
    if (waited >= limit_) {
      end(cat("rank ", rank, " did not come within ", limit_.count(), " ms to turn ", turn,
              ", where rank ", rank_, " waits"));
      fail_ended();
    }
    const auto left = std::min<std::chrono::nanoseconds>(limit_ - waited, kLongestSleep);
    other.sleepers.fetch_add(1);
    const uint32_t seen = other.turn.load();
    if (behind(seen, turn) && !ended()) sleep_on(other.turn, seen, left);
    other.sleepers.fetch_sub(1);
  }
}

}  // namespace rbee::cpu
