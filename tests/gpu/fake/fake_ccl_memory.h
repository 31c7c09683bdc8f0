#pragma once
// Memory that the ranks of a fake communicator share, as threads or processes.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace rbee::fake {

// An operation of one rank. All ranks must have the same.
struct CclOperation {
  int32_t kind = 0;
  int32_t type = 0;
  int32_t root = 0;
  int32_t captured = 0;
  uint64_t bytes = 0;

  bool operator==(const CclOperation&) const = default;
};

class CclMemory {
 public:
  static constexpr int kMostRanks = 8;
  static constexpr size_t kAreaBytes = size_t{256} << 10;

  // New memory; the result tells ranks where it is, in at most 128 bytes.
  static std::string create();
  // Null if there is none.
  static std::unique_ptr<CclMemory> attach(const std::string& where, int rank, int ranks);
  ~CclMemory();
  CclMemory(const CclMemory&) = delete;
  CclMemory& operator=(const CclMemory&) = delete;

  // Waits until all ranks have come, or `ended`. False if it ended or a rank has another number of
  // ranks.
  bool join(const std::atomic<bool>& ended);
  // This rank's area for the next turn, and those of all for the last one.
  std::byte* area() { return area_at(rank_, turn_ + 1); }
  const std::byte* area_of(int rank) const { return area_at(rank, turn_); }
  // Counts a turn, and waits for the others' or `ended`. False if it ended.
  bool meet(const CclOperation& operation, const std::atomic<bool>& ended);
  const CclOperation& operation_of(int rank) const;
  int ranks() const { return ranks_; }
  int rank() const { return rank_; }

 private:
  struct State;
  CclMemory(void* memory, int rank, int ranks);
  std::byte* area_at(int rank, uint64_t turn) const;

  State* state_;
  int rank_, ranks_;
  uint64_t turn_ = 0;
};

}  // namespace rbee::fake
