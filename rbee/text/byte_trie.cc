#include "rbee/text/byte_trie.h"

#include <algorithm>
#include <deque>

namespace rbee::text {

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, int32_t>> keys) {
  first_.fill(-1);
  std::sort(keys.begin(), keys.end());
  // A range of keys that share `depth` bytes, and the node they hang from (-1: the root).
  struct Range {
    size_t begin, end, depth;
    int32_t node;
  };
  std::deque<Range> open{{0, keys.size(), 0, -1}};
  while (!open.empty()) {
    Range range = open.front();
    open.pop_front();
    while (range.begin < range.end && keys[range.begin].first.size() == range.depth) {
      if (range.node >= 0) nodes_[static_cast<size_t>(range.node)].value = keys[range.begin].second;
      ++range.begin;
    }
    const auto children = static_cast<int32_t>(nodes_.size());
    uint16_t count = 0;
    for (size_t begin = range.begin; begin < range.end;) {
      const char byte = keys[begin].first[range.depth];
      size_t end = begin;
      while (end < range.end && keys[end].first[range.depth] == byte) ++end;
      open.push_back({begin, end, range.depth + 1, static_cast<int32_t>(nodes_.size())});
      if (range.node < 0) {
        first_[static_cast<uint8_t>(byte)] = static_cast<int32_t>(nodes_.size());
      }
      nodes_.push_back({-1, 0, 0, static_cast<uint8_t>(byte)});
      ++count;
      begin = end;
    }
    if (range.node >= 0) {
      nodes_[static_cast<size_t>(range.node)].children = children;
      nodes_[static_cast<size_t>(range.node)].count = count;
    }
  }
}

}  // namespace rbee::text
