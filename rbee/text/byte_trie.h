#pragma once
// Finds all keys of a set with which a text starts, in one walk.

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace rbee::text {

class ByteTrie {
 public:
  // Keys must not be empty and values must be >= 0. Of equal keys, the highest value counts.
  explicit ByteTrie(std::vector<std::pair<std::string_view, int32_t>> keys = {});

  // visit(length, value) for every key that `text` starts with, shortest first.
  template <typename Visit>
  void prefixes(std::string_view text, const Visit& visit) const {
    if (text.empty()) return;
    int32_t at = first_[static_cast<uint8_t>(text[0])];
    for (size_t depth = 1; at >= 0; ++depth) {
      if (nodes_[static_cast<size_t>(at)].value >= 0) {
        visit(depth, nodes_[static_cast<size_t>(at)].value);
      }
      if (depth == text.size()) return;
      at = child(nodes_[static_cast<size_t>(at)], static_cast<uint8_t>(text[depth]));
    }
  }
  bool can_start(char byte) const { return first_[static_cast<uint8_t>(byte)] >= 0; }

 private:
  struct Node {
    int32_t value = -1;
    int32_t children = 0;  // index of the first; they are neighbours, by byte
    uint16_t count = 0;
    uint8_t byte = 0;
  };
  int32_t child(const Node& node, uint8_t byte) const {
    int32_t low = node.children, high = low + node.count;
    while (low < high) {
      const int32_t middle = (low + high) / 2;
      if (nodes_[static_cast<size_t>(middle)].byte < byte) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const bool found =
        low < node.children + node.count && nodes_[static_cast<size_t>(low)].byte == byte;
    return found ? low : -1;
  }

  std::array<int32_t, 256> first_{};
  std::vector<Node> nodes_;
};

}  // namespace rbee::text
