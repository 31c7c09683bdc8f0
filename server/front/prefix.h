#pragma once
// Which worker has seen a prompt's beginning: its KV cache may still hold the blocks. The front
// does not see tokens, nor what a worker has forgotten, so this may be wrong. Internal to
// server/front.

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rbee::server {

// The beginnings of a prompt, a hash for each KiB: of the parts that templates write first (tools,
// the system's text), then of the messages. What is beyond 512 KiB of either does not count.
class PromptPrefixes {
 public:
  // Parts of a request's body, in its order.
  void add_first(std::string_view text);
  void add(std::string_view text);
  // What the whole cache of a prompt depends on: an adapter, a salt.
  void add_scope(std::string_view text);
  // Each is of all before it and one more, the shortest first. Empty for prompts below 1 KiB.
  std::vector<uint64_t> hashes() const;

 private:
  struct Rolling {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a's beginning
    size_t bytes = 0;
    std::vector<uint64_t> pieces{};  // the hash after each KiB
  };
  static void add_to(Rolling& rolling, std::string_view text);

  Rolling scope_, first_, rest_;
};

// The beginnings that one worker was sent, the least recently used of them forgotten.
class PrefixIndex {
 public:
  static constexpr size_t kMost = 10'000;

  PrefixIndex() = default;
  PrefixIndex(PrefixIndex&&) = default;
  PrefixIndex& operator=(PrefixIndex&&) = default;

  // How many of these, from the first on, the worker has probably cached.
  size_t match(const std::vector<uint64_t>& prefixes) const;
  void note(const std::vector<uint64_t>& prefixes);
  void clear();

 private:
  std::list<uint64_t> order_;  // the last used first
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> places_;
};

// A worker that may take a request.
struct PrefixCandidate {
  int busy = 0;        // its requests
  size_t matched = 0;  // PrefixIndex::match()
};

// The candidate for a request of `prefixes` beginnings. That is the one with the most of them, if
// it has a tenth and not many more requests than the least busy one; else the least busy one. Of
// equal ones the first. There must be one.
size_t choose_by_prefix(const std::vector<PrefixCandidate>& candidates, size_t prefixes);

}  // namespace rbee::server
