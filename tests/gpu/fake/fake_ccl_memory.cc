#include "tests/gpu/fake/fake_ccl_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <ctime>

namespace rbee::fake {

// Zero bytes are a state in which nothing has happened.
struct CclMemory::State {
  struct Rank {
    std::atomic<int32_t> ranks;  // 0: has not come
    std::atomic<uint64_t> turn;
    std::array<CclOperation, 2> operations;
  };
  std::array<Rank, kMostRanks> ranks;
  std::array<std::array<std::array<std::byte, kAreaBytes>, 2>, kMostRanks> areas;
};

namespace {

template <typename Done>
bool wait_until(const std::atomic<bool>& ended, const Done& done) {
  while (!done()) {
    if (ended) return false;
    const timespec pause{.tv_sec = 0, .tv_nsec = 50'000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

}  // namespace

std::string CclMemory::create() {
  const int fd = memfd_create("rbee-fake-ccl", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sizeof(State)) != 0) return {};
  // It stays open until the process ends: ranks come when they like.
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd);
}

std::unique_ptr<CclMemory> CclMemory::attach(const std::string& where, int rank, int ranks) {
  const int fd = open(where.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* const memory = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<CclMemory>(new CclMemory(memory, rank, ranks));
}

CclMemory::CclMemory(void* memory, int rank, int ranks)
    : state_(static_cast<State*>(memory)), rank_(rank), ranks_(ranks) {}

CclMemory::~CclMemory() {
  munmap(state_, sizeof(State));
}

std::byte* CclMemory::area_at(int rank, uint64_t turn) const {
  return state_->areas[static_cast<size_t>(rank)][turn % 2].data();
}

const CclOperation& CclMemory::operation_of(int rank) const {
  return state_->ranks[static_cast<size_t>(rank)].operations[turn_ % 2];
}

bool CclMemory::join(const std::atomic<bool>& ended) {
  state_->ranks[static_cast<size_t>(rank_)].ranks = ranks_;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto& other = state_->ranks[static_cast<size_t>(rank)].ranks;
    if (!wait_until(ended, [&] { return other != 0; }) || other != ranks_) return false;
  }
  return true;
}

bool CclMemory::meet(const CclOperation& operation, const std::atomic<bool>& ended) {
  ++turn_;
  auto& own = state_->ranks[static_cast<size_t>(rank_)];
  own.operations[turn_ % 2] = operation;
  own.turn = turn_;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto& other = state_->ranks[static_cast<size_t>(rank)].turn;
    if (!wait_until(ended, [&] { return other >= turn_; })) return false;
  }
  return true;
}

}  // namespace rbee::fake
