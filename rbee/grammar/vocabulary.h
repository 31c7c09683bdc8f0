#pragma once
// The tokens of a vocabulary as a tree over their bytes, in one list: a node's descendants follow
// it. A token is there by its text, and by its id (token_bytes.h).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rbee::grammar {

class Vocabulary {
 public:
  // tokens: their bytes by id; a token without bytes is never allowed, and one with kTokenByte only
  // by its id. ends: tokens that end the text; their bytes do not count.
  Vocabulary(const std::vector<std::string>& tokens, std::span<const int32_t> ends);

  struct Node {
    int32_t after = 0;        // the node after the last descendant
    int32_t first_token = 0;  // of the tokens that end at this node
    int32_t token_count = 0;
    uint8_t byte = 0;
  };
  int64_t size() const { return size_; }  // tokens
  int32_t node_count() const { return static_cast<int32_t>(nodes_.size()); }
  const Node& node(int32_t index) const { return nodes_[static_cast<size_t>(index)]; }
  static constexpr int32_t kRoot = 0;  // has no byte
  std::span<const int32_t> tokens(const Node& node) const {
    return std::span(ids_).subspan(static_cast<size_t>(node.first_token),
                                   static_cast<size_t>(node.token_count));
  }
  const std::vector<int32_t>& ends() const { return ends_; }
  int32_t longest() const { return longest_; }  // bytes of a token
  std::string_view bytes(int32_t id) const;     // empty for tokens that no text has
  // Whether the token is there by its id.
  bool has(int32_t id) const { return id >= 0 && id < size_ && there_[static_cast<size_t>(id)]; }

 private:
  struct Entry {
    std::string_view text;
    int32_t id;
  };
  void add_children(std::span<const Entry> entries, size_t depth);

  int64_t size_;
  std::vector<std::string> texts_;
  std::vector<bool> there_;  // by their ids
  std::vector<Node> nodes_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> ends_;  // sorted
  int32_t longest_ = 0;
};

}  // namespace rbee::grammar
