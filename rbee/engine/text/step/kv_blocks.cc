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

void KvBlockPool::use_states(int64_t slots) {
  RB_ASSERT(used() == 0 && slots <= INT32_MAX);
  has_states_ = true;
  for (int64_t slot = slots; slot-- > 0;) free_states_.push_back(static_cast<int32_t>(slot));
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

int32_t KvBlockPool::take(CopyTime time) {
  int32_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    index = kept_.front();
    kept_.pop_front();
    give_up_text(index, time);
  }
  Block& block = blocks_[static_cast<size_t>(index)];
  // Others' copies that wait must not come after what the new owner writes.
  while (time == CopyTime::now && block.copies > 0) copy_some(queued_.size());
  block.references = 1;
  block.draft = false;
  return index;
}

BlockNamePtr KvBlockPool::name_of(const BlockNamePtr* before, std::span<const int32_t> tokens,
                                  const TextScope& scope) const {
  const bool after_unnamed = before != nullptr && *before == nullptr;
  // Numbers of pictures mean nothing to others.
  const bool pictures = std::ranges::any_of(tokens, [](int32_t token) { return token < 0; });
  if (events_ == nullptr || after_unnamed || pictures) return nullptr;
  return events_->name(before == nullptr ? nullptr : before->get(), tokens, scope);
}

void KvBlockPool::tell_stored(const Texts::value_type& text, KvMedium medium) {
  const auto& [key, known] = text;
  if (known.name == nullptr) return;
  // Of a text's first block, a table's mark comes before the tokens.
  const std::span<const int32_t> tokens(key.tokens);
  events_->stored(*known.name, medium, tokens.last(static_cast<size_t>(block_size_)));
}

void KvBlockPool::tell_removed(const Known& known, KvMedium medium) {
  if (known.name != nullptr) events_->removed(*known.name, medium);
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

std::vector<KvBlockPool::Texts::value_type*> KvTable::find(std::span<const int32_t> tokens) const {
  std::vector<KvBlockPool::Texts::value_type*> out;
  std::vector<int32_t> room;
  const auto size = static_cast<size_t>(pool_->block_size_);
  uint64_t node = node_;
  while ((out.size() + 1) * size < tokens.size()) {
    const std::span<const int32_t> held = tokens.subspan(out.size() * size, size);
    const KvBlockPool::TextView text{node, key(out.size(), held, room)};
    const auto known = pool_->texts_.find(text);
    if (known == pool_->texts_.end()) break;
    out.push_back(&*known);
    node = known->second.node;
  }
  return out;
}

int64_t KvTable::adopt(std::span<const int32_t> tokens) {
  RB_ASSERT(blocks_.empty());
  if (pool_->has_states_) return 0;
  const auto found = find(tokens);
  // All are held before the first block is taken, which may give up others.
  size_t first_in_host = found.size();
  int64_t in_host = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const KvBlockPool::Known& known = found[i]->second;
    if (known.block != KvBlockPool::kNone) {
      pool_->refer(known.block);
    } else {
      pool_->pin(known.slot);
      if (in_host++ == 0) first_in_host = i;
    }
  }
  const int64_t wanted = std::ssize(tokens) / pool_->block_size_ + 1;
  const bool room = wanted - std::ssize(found) + in_host <= pool_->available();
  const size_t taken = room ? found.size() : first_in_host;
  for (size_t i = found.size(); i-- > taken;) {
    const KvBlockPool::Known& known = found[i]->second;
    known.block != KvBlockPool::kNone ? pool_->give_back(known.block) : pool_->unpin(known.slot);
  }
  for (auto* text : std::span(found).first(taken)) {
    const KvBlockPool::Known& known = text->second;
    if (known.block == KvBlockPool::kNone) {
      pool_->load(*text);
      pool_->unpin(known.slot);
    }
    blocks_.push_back(known.block);
    node_ = known.node;
    name_ = known.name;
  }
  published_ = blocks_.size();
  return std::ssize(blocks_) * pool_->block_size_;
}

void KvTable::publish(std::span<const int32_t> tokens) {
  if (pool_->has_states_) return;
  std::vector<int32_t> room;
  const auto size = static_cast<size_t>(pool_->block_size_);
  for (; published_ < blocks_.size() && (published_ + 1) * size <= tokens.size(); ++published_) {
    const std::span<const int32_t> own = tokens.subspan(published_ * size, size);
    const std::span<const int32_t> held = key(published_, own, room);
    const int32_t index = blocks_[published_];
    const auto [known, added] = pool_->texts_.try_emplace(
        {node_, {held.begin(), held.end()}}, KvBlockPool::Known{.node = pool_->last_node_ + 1});
    if (added) {
      ++pool_->last_node_;
      known->second.name = pool_->name_of(published_ == 0 ? nullptr : &name_, own, scope_);
    }
    if (known->second.block == KvBlockPool::kNone) {
      known->second.block = index;
      pool_->tell_stored(*known, KvMedium::device);
    }
    if (known->second.block == index) {
      pool_->blocks_[static_cast<size_t>(index)].text = &known->first;
    }
    // If another block holds this text already, the rest continues from that one.
    node_ = known->second.node;
    name_ = known->second.name;
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

bool KvTable::reserve(int64_t tokens, CopyTime time) {
  const auto wanted = static_cast<size_t>((tokens + pool_->block_size_ - 1) / pool_->block_size_);
  if (wanted <= blocks_.size()) return true;
  const size_t missing = wanted - blocks_.size();
  if (missing > static_cast<size_t>(pool_->available())) return false;
  if (pool_->has_states_ && state_slot_ == KvBlockPool::kNone) {
    if (pool_->free_states_.empty()) return false;
    state_slot_ = pool_->free_states_.back();
    pool_->free_states_.pop_back();
  }
  for (size_t i = 0; i < missing; ++i) blocks_.push_back(pool_->take(time));
  return true;
}

bool KvTable::ready() const {
  return !pool_->copies_wait() || std::ranges::all_of(blocks_, [&](int32_t index) {
    return pool_->blocks_[static_cast<size_t>(index)].copies == 0;
  });
}

// From the last: a kept block is useless without those before it, so it must go first.
void KvTable::release() {
  while (!blocks_.empty()) {
    pool_->give_back(blocks_.back());
    blocks_.pop_back();
  }
  if (state_slot_ != KvBlockPool::kNone) {
    pool_->free_states_.push_back(state_slot_);
    state_slot_ = KvBlockPool::kNone;
  }
  published_ = 0;
  noted_ = 0;
  node_ = 0;
  name_ = nullptr;
}

int32_t KvTable::slot(int64_t position) const {
  const int64_t block = position / pool_->block_size_;
  return static_cast<int32_t>(blocks_[static_cast<size_t>(block)] * pool_->block_size_ +
                              position % pool_->block_size_);
}

}  // namespace rbee::engine
