#include "backends/gpu/segment_heap.h"

namespace rbee::gpu {
namespace {

// A rest smaller than this stays with its block: it would serve nobody.
constexpr size_t kSmallestRest = size_t{1} << 19;

}  // namespace

void SegmentHeap::insert(Block* block) {
  free_[block->place].insert(block);
}

void SegmentHeap::remove(Block* block) {
  const auto of_place = free_.find(block->place);
  of_place->second.erase(block);
  if (of_place->second.empty()) free_.erase(of_place);
}

void SegmentHeap::join(Block* block) {
  Block* next = block->next;
  block->bytes += next->bytes;
  block->next = next->next;
  if (block->next != nullptr) block->next->before = block;
  blocks_.erase(next->data);
}

void SegmentHeap::add(void* data, size_t bytes, const MemoryPlace& place) {
  auto block = std::make_unique<Block>(Block{.data = data, .bytes = bytes, .place = place});
  insert(block.get());
  blocks_[data] = std::move(block);
}

void* SegmentHeap::take(const MemoryPlace& place, size_t bytes) {
  const auto of_place = free_.find(place);
  if (of_place == free_.end()) return nullptr;
  Block wanted;
  wanted.bytes = bytes;
  const auto found = of_place->second.lower_bound(&wanted);
  if (found == of_place->second.end()) return nullptr;
  Block* block = *found;
  if (block->bytes - bytes >= kSmallestRest) {
    auto rest = std::make_unique<Block>(Block{.data = static_cast<std::byte*>(block->data) + bytes,
                                              .bytes = block->bytes - bytes,
                                              .place = place,
                                              .before = block,
                                              .next = block->next});
    Block* next = rest.get();
    blocks_[next->data] = std::move(rest);
    insert(next);
    remove(block);
    if (next->next != nullptr) next->next->before = next;
    block->next = next;
    block->bytes = bytes;
  } else {
    remove(block);
  }
  block->free = false;
  return block->data;
}

void SegmentHeap::give(void* data, const MemoryPlace& place) {
  Block* block = blocks_.at(data).get();
  const auto joins = [&](const Block* other) {
    return other != nullptr && other->free && other->place == place;
  };
  if (joins(block->next)) {
    remove(block->next);
    join(block);
  }
  if (joins(block->before)) {
    block = block->before;
    remove(block);
    join(block);
  }
  block->free = true;
  block->place = place;
  insert(block);
}

void SegmentHeap::move(const MemoryPlace& from, const MemoryPlace& to) {
  std::vector<void*> moved;
  if (const auto of_place = free_.find(from); of_place != free_.end()) {
    for (const Block* block : of_place->second) moved.push_back(block->data);
  }
  for (void* data : moved) {
    const auto block = blocks_.find(data);
    if (block == blocks_.end()) continue;  // joined with one before it
    remove(block->second.get());
    give(data, to);
  }
}

std::vector<std::pair<void*, size_t>> SegmentHeap::take_free_segments() {
  std::vector<std::pair<void*, size_t>> out;
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    Block& b = *block->second;
    const bool whole = b.before == nullptr && b.next == nullptr;
    if (!whole || !b.free || b.place.pool != 0) {
      ++block;
      continue;
    }
    out.emplace_back(b.data, b.bytes);
    remove(&b);
    block = blocks_.erase(block);
  }
  return out;
}

std::vector<void*> SegmentHeap::segments() const {
  std::vector<void*> out;
  for (const auto& [data, block] : blocks_) {
    if (block->before == nullptr) out.push_back(data);
  }
  return out;
}

}  // namespace rbee::gpu
