// The part of KvBlockPool that keeps texts in host memory.
//
// A slot has pins while a copy of it waits, so that its text stays until then. Blocks are given up
// from the last of a text to the first (KvTable::release()), and each is then the most recently
// used slot; so in host memory too, the end of a text is dropped before its beginning.

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/engine/text/step/kv_blocks.h"

namespace rbee::engine {

void KvBlockPool::use_host(int64_t slots, BlockCopier& copier) {
  check(slots > 0 && slots <= INT32_MAX, "KvBlockPool", slots, " slots are outside of 1 to ",
        INT32_MAX);
  copier_ = &copier;
  slots_.resize(static_cast<size_t>(slots));
  free_slots_.reserve(slots_.size());
  for (int64_t slot = slots; slot-- > 0;) free_slots_.push_back(static_cast<int32_t>(slot));
}

// The block will hold another text.
void KvBlockPool::give_up_text(int32_t index, CopyTime time) {
  Block& block = blocks_[static_cast<size_t>(index)];
  const auto text = texts_.find(*block.text);
  block.text = nullptr;
  Known& known = text->second;
  known.block = kNone;
  tell_removed(known, KvMedium::device);
  if (known.slot != kNone) {  // it was copied before
    pin(known.slot);
    unpin(known.slot);
    return;
  }
  known.slot = take_slot();
  if (known.slot == kNone) {
    texts_.erase(text);
    return;
  }
  slots_[static_cast<size_t>(known.slot)] = {.text = &text->first, .pins = 1, .used = {}};
  ++host_counts_.stored;
  tell_stored(*text, KvMedium::host);
  const BlockCopy copy{.block = index, .slot = known.slot, .to_host = true};
  if (time == CopyTime::now) {
    copier_->copy({&copy, 1});
  } else {
    queue(copy);
  }
  unpin(copy.slot);
}

int32_t KvBlockPool::take_slot() {
  if (!free_slots_.empty()) {
    const int32_t index = free_slots_.back();
    free_slots_.pop_back();
    return index;
  }
  if (used_.empty()) return kNone;
  const int32_t index = used_.front();
  used_.pop_front();
  const auto text = texts_.find(*slots_[static_cast<size_t>(index)].text);
  text->second.slot = kNone;
  tell_removed(text->second, KvMedium::host);
  if (text->second.block == kNone) texts_.erase(text);
  ++host_counts_.dropped;
  return index;
}

void KvBlockPool::pin(int32_t index) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (slot.pins++ == 0) used_.erase(slot.used);
}

void KvBlockPool::unpin(int32_t index) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (--slot.pins == 0) slot.used = used_.insert(used_.end(), index);
}

void KvBlockPool::load(Texts::value_type& text) {
  auto& [key, known] = text;
  known.block = take(CopyTime::later);
  blocks_[static_cast<size_t>(known.block)].text = &key;
  ++host_counts_.loaded;
  tell_stored(text, KvMedium::device);
  queue({.block = known.block, .slot = known.slot, .to_host = false});
}

void KvBlockPool::queue(const BlockCopy& copy) {
  pin(copy.slot);
  ++blocks_[static_cast<size_t>(copy.block)].copies;
  queued_.push_back(copy);
}

void KvBlockPool::finish_copies() {
  for (const BlockCopy& copy : begun_) {
    unpin(copy.slot);
    --blocks_[static_cast<size_t>(copy.block)].copies;
  }
  begun_.clear();
}

void KvBlockPool::copy_some(size_t most) {
  if (!copies_wait()) return;
  const auto end = queued_.begin() + static_cast<std::ptrdiff_t>(std::min(most, queued_.size()));
  const std::vector<BlockCopy> next(queued_.begin(), end);
  copier_->copy_beside(next);
  finish_copies();
  queued_.erase(queued_.begin(), end);
  begun_ = next;
}

}  // namespace rbee::engine
