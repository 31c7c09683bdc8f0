#include "rbee/engine/text/step/kv_blocks.h"

#include <algorithm>

#include "rbee/core/error.h"

namespace rbee::engine {

KvBlockPool::KvBlockPool(int64_t blocks, int64_t block_size) : block_size_(block_size) {
  check(blocks > 0 && block_size > 0 && blocks <= INT32_MAX / block_size, "KvBlockPool", blocks,
        " blocks of ", block_size, " tokens do not fit 32-bit slots");
  blocks_.resize(static_cast<size_t>(blocks));
  free_.reserve(static_cast<size_t>(blocks));
  for (int64_t block = blocks; block-- > 0;) free_.push_back(static_cast<int32_t>(block));
}

// SplitMix64's finaliser (Steele et al. 2014) over each number in turn.
size_t KvBlockPool::Hash::operator()(const TextView& text) const {
  uint64_t hash = text.before;
  for (const int32_t token : text.tokens) {
    hash = (hash ^ static_cast<uint32_t>(token)) + 0x9e3779b97f4a7c15;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
    hash ^= hash >> 31;
  }
  return hash;
}

bool KvBlockPool::Equal::same(const TextView& a, const TextView& b) {
  return a.before == b.before && std::ranges::equal(a.tokens, b.tokens);
}

int32_t KvBlockPool::take() {
  int32_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    index = kept_.front();
    kept_.pop_front();
    Block& block = blocks_[static_cast<size_t>(index)];
    texts_.erase(texts_.find(*block.text));
    block.text = nullptr;
  }
  Block& block = blocks_[static_cast<size_t>(index)];
  block.references = 1;
  block.draft = false;
  return index;
}

void KvBlockPool::refer(int32_t index) {
  Block& block = blocks_[static_cast<size_t>(index)];
  if (block.references++ == 0) kept_.erase(block.kept);
}

void KvBlockPool::give_back(int32_t index) {
  Block& block = blocks_[static_cast<size_t>(index)];
  if (--block.references > 0) return;
  if (block.text != nullptr) {
    block.kept = kept_.insert(kept_.end(), index);
  } else {
    free_.push_back(index);
  }
}

std::span<const int32_t> KvTable::key(size_t index, std::span<const int32_t> tokens,
                                      std::vector<int32_t>& room) const {
  if (index > 0 || mark_.empty()) return tokens;
  room = mark_;
  room.insert(room.end(), tokens.begin(), tokens.end());
  return room;
}

int64_t KvTable::adopt(std::span<const int32_t> tokens) {
  RB_ASSERT(blocks_.empty());
  std::vector<int32_t> room;
  const auto size = static_cast<size_t>(pool_->block_size_);
  while ((blocks_.size() + 1) * size < tokens.size()) {
    const std::span<const int32_t> held = tokens.subspan(blocks_.size() * size, size);
    const KvBlockPool::TextView text{node_, key(blocks_.size(), held, room)};
    const auto known = pool_->texts_.find(text);
    if (known == pool_->texts_.end()) break;
    pool_->refer(known->second.block);
    blocks_.push_back(known->second.block);
    node_ = known->second.node;
  }
  published_ = blocks_.size();
  return static_cast<int64_t>(blocks_.size() * size);
}

void KvTable::publish(std::span<const int32_t> tokens) {
  std::vector<int32_t> room;
  const auto size = static_cast<size_t>(pool_->block_size_);
  for (; published_ < blocks_.size() && (published_ + 1) * size <= tokens.size(); ++published_) {
    const std::span<const int32_t> held =
        key(published_, tokens.subspan(published_ * size, size), room);
    const int32_t index = blocks_[published_];
    const auto [known, added] = pool_->texts_.try_emplace(
        {node_, {held.begin(), held.end()}},
        KvBlockPool::Known{.node = pool_->last_node_ + 1, .block = index});
    if (added) {
      ++pool_->last_node_;
      pool_->blocks_[static_cast<size_t>(index)].text = &known->first;
    }
    // If another block holds this text already, the rest continues from that one.
    node_ = known->second.node;
  }
}

void KvTable::note_draft(int64_t tokens) {
  const size_t whole = std::min(static_cast<size_t>(tokens / pool_->block_size_), blocks_.size());
  for (; noted_ < whole; ++noted_) {
    pool_->blocks_[static_cast<size_t>(blocks_[noted_])].draft = true;
  }
}

int64_t KvTable::draft_tokens() const {
  const auto end = std::ranges::find_if(
      blocks_, [&](int32_t index) { return !pool_->blocks_[static_cast<size_t>(index)].draft; });
  return (end - blocks_.begin()) * pool_->block_size_;
}

bool KvTable::reserve(int64_t tokens) {
  const auto wanted = static_cast<size_t>((tokens + pool_->block_size_ - 1) / pool_->block_size_);
  if (wanted <= blocks_.size()) return true;
  const size_t missing = wanted - blocks_.size();
  if (missing > static_cast<size_t>(pool_->available())) return false;
  for (size_t i = 0; i < missing; ++i) blocks_.push_back(pool_->take());
  return true;
}

// From the last: a kept block is useless without those before it, so it must go first.
void KvTable::release() {
  while (!blocks_.empty()) {
    pool_->give_back(blocks_.back());
    blocks_.pop_back();
  }
  published_ = 0;
  noted_ = 0;
  node_ = 0;
}

int32_t KvTable::slot(int64_t position) const {
  const int64_t block = position / pool_->block_size_;
  return static_cast<int32_t>(blocks_[static_cast<size_t>(block)] * pool_->block_size_ +
                              position % pool_->block_size_);
}

}  // namespace rbee::engine
