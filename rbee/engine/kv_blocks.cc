#include "rbee/engine/kv_blocks.h"

#include "rbee/core/error.h"

namespace rbee::engine {

KvBlockPool::KvBlockPool(int64_t blocks, int64_t block_size)
    : total_(blocks), block_size_(block_size) {
  check(blocks > 0 && block_size > 0 && blocks <= INT32_MAX / block_size, "KvBlockPool", blocks,
        " blocks of ", block_size, " tokens do not fit 32-bit slots");
  free_.reserve(static_cast<size_t>(blocks));
  for (int64_t block = blocks; block-- > 0;) free_.push_back(static_cast<int32_t>(block));
}

bool KvTable::reserve(int64_t tokens) {
  const auto wanted = static_cast<size_t>((tokens + pool_->block_size_ - 1) / pool_->block_size_);
  if (wanted <= blocks_.size()) return true;
  const size_t missing = wanted - blocks_.size();
  if (missing > pool_->free_.size()) return false;
  for (size_t i = 0; i < missing; ++i) {
    blocks_.push_back(pool_->free_.back());
    pool_->free_.pop_back();
  }
  return true;
}

void KvTable::release() {
  while (!blocks_.empty()) {
    pool_->free_.push_back(blocks_.back());
    blocks_.pop_back();
  }
}

int32_t KvTable::slot(int64_t position) const {
  const int64_t block = position / pool_->block_size_;
  return static_cast<int32_t>(blocks_[static_cast<size_t>(block)] * pool_->block_size_ +
                              position % pool_->block_size_);
}

}  // namespace rbee::engine
