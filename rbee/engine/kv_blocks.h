#pragma once
// Which blocks of the paged KV cache belong to which sequence. Blocks hold `block_size` tokens.

#include <cstdint>
#include <vector>

namespace rbee::engine {

// The free blocks of one cache.
class KvBlockPool {
 public:
  KvBlockPool(int64_t blocks, int64_t block_size);

  int64_t total() const { return total_; }
  int64_t used() const { return total_ - static_cast<int64_t>(free_.size()); }
  int64_t block_size() const { return block_size_; }

 private:
  friend class KvTable;
  std::vector<int32_t> free_;
  int64_t total_;
  int64_t block_size_;
};

// One sequence's blocks, in order; given back when destroyed. The pool must outlive it.
class KvTable {
 public:
  explicit KvTable(KvBlockPool& pool) : pool_(&pool) {}
  ~KvTable() { release(); }
  KvTable(const KvTable&) = delete;
  KvTable& operator=(const KvTable&) = delete;

  // Makes room for `tokens` in all; false, and nothing changed, when the pool has too few blocks.
  bool reserve(int64_t tokens);
  void release();
  const std::vector<int32_t>& blocks() const { return blocks_; }
  // Row of the cache for a token: block * block_size + offset.
  int32_t slot(int64_t position) const;

 private:
  KvBlockPool* pool_;
  std::vector<int32_t> blocks_;
};

}  // namespace rbee::engine
