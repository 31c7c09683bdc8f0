#pragma once
// Cuts large pieces of device memory to size and joins them again, so that memory freed by one part
// of a model serves the next part, whatever its sizes are. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

namespace rbee::gpu {

// The owner of a free block: a stream's work, or a captured graph's pool.
struct MemoryPlace {
  void* stream = nullptr;  // of a pool: null
  uint64_t pool = 0;
  auto operator<=>(const MemoryPlace&) const = default;
};

class SegmentHeap {
 public:
  // A new segment, all of it free.
  void add(void* data, size_t bytes, const MemoryPlace& place);
  // Takes the smallest free block of `place` with at least `bytes` and cuts off the rest; null if
  // there is none. bytes: a multiple of the wanted alignment.
  void* take(const MemoryPlace& place, size_t bytes);
  // A block that take() returned. Returns its size.
  size_t size(void* data) const { return blocks_.at(data)->bytes; }
  // The block is free for `place`, and is joined with its free neighbours there.
  void give(void* data, const MemoryPlace& place);
  // What is free for `from` is free for `to`.
  void move(const MemoryPlace& from, const MemoryPlace& to);
  // Removes and gives the segments without any block that is in use or in a pool.
  std::vector<std::pair<void*, size_t>> take_free_segments();
  // Every segment that was added and not taken back.
  std::vector<void*> segments() const;

 private:
  struct Block {
    void* data = nullptr;
    size_t bytes = 0;
    bool free = true;
    MemoryPlace place;  // of a free block
    Block* before = nullptr;
    Block* next = nullptr;
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->data < b->data;
    }
  };

  void insert(Block* block);
  void remove(Block* block);
  // Adds the block behind `block`, which goes, to it.
  void join(Block* block);

  std::unordered_map<void*, std::unique_ptr<Block>> blocks_;  // free ones too
  std::map<MemoryPlace, std::set<Block*, BySize>> free_;
};

}  // namespace rbee::gpu
