#pragma once
// Which blocks of the paged KV cache belong to which sequence, and which hold beginnings of texts
// that may come again. Blocks hold `block_size` tokens. Sharing of blocks: Kwon et al. 2023,
// section 4.4; blocks found by the texts that end in them: Zheng et al. 2024 (RadixAttention).

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

namespace rbee::engine {

// The blocks of one cache. A block is free, or used (sequences refer to it), or kept: nobody
// refers to it, but its tokens may be asked for again. Kept blocks are taken like free ones, the
// one unused for the longest first.
class KvBlockPool {
 public:
  KvBlockPool(int64_t blocks, int64_t block_size);

  int64_t total() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t used() const { return total() - available(); }
  int64_t kept() const { return static_cast<int64_t>(kept_.size()); }
  // Blocks that can be taken, free and kept.
  int64_t available() const { return static_cast<int64_t>(free_.size() + kept_.size()); }
  int64_t block_size() const { return block_size_; }

 private:
  friend class KvTable;

  // A text: what its last block holds, and the node of the text before that block. Nodes are
  // numbers that never come again, so that equal texts are equal, not just their hashes.
  struct Text {
    uint64_t before = 0;
    std::vector<int32_t> tokens;
  };
  struct TextView {
    uint64_t before;
    std::span<const int32_t> tokens;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const TextView& text) const;
    size_t operator()(const Text& text) const {
      return (*this)(TextView{text.before, text.tokens});
    }
  };
  struct Equal {
    using is_transparent = void;
    static TextView view(const Text& text) { return {text.before, text.tokens}; }
    static TextView view(const TextView& text) { return text; }
    bool operator()(const auto& a, const auto& b) const { return same(view(a), view(b)); }
    static bool same(const TextView& a, const TextView& b);
  };
  struct Known {
    uint64_t node;
    int32_t block;
  };
  using Texts = std::unordered_map<Text, Known, Hash, Equal>;
  struct Block {
    int32_t references = 0;
    const Text* text = nullptr;         // its key in texts_; null: nobody can find it
    bool draft = false;                 // a draft model's cache has its tokens too
    std::list<int32_t>::iterator kept;  // its place in kept_, when it is there
  };

  int32_t take();  // available() > 0
  void refer(int32_t block);
  void give_back(int32_t block);

  std::vector<Block> blocks_;
  std::vector<int32_t> free_;
  std::list<int32_t> kept_;  // the one unused for the longest first
  Texts texts_;
  uint64_t last_node_ = 0;  // 0 is the empty text
  int64_t block_size_;
};

// One sequence's blocks, in order; given back when destroyed. The pool must outlive it.
class KvTable {
 public:
  explicit KvTable(KvBlockPool& pool) : pool_(&pool) {}
  ~KvTable() { release(); }
  KvTable(const KvTable&) = delete;
  KvTable& operator=(const KvTable&) = delete;

  // Numbers that stand for what else the keys depend on, such as adapters: only tables of the same
  // mark share blocks. Called before all else; none of the numbers is alone a text's beginning.
  void set_mark(std::vector<int32_t> mark) { mark_ = std::move(mark); }
  // Of a table without blocks: takes the blocks that hold the beginning of `tokens`, all but the
  // last token at most. Returns how many tokens they hold.
  int64_t adopt(std::span<const int32_t> tokens);
  // Lets others adopt the blocks that `tokens` fill. tokens: what the cache holds of the sequence.
  // Nothing happens after release().
  void publish(std::span<const int32_t> tokens);
  // A draft model, whose cache has blocks of the same numbers, has the first `tokens` there.
  void note_draft(int64_t tokens);
  // Tokens in front, in whole blocks, that have been noted so, by this table or by another.
  int64_t draft_tokens() const;
  // Makes room for `tokens` in all; false, and nothing changed, when the pool has too few blocks.
  bool reserve(int64_t tokens);
  void release();
  const std::vector<int32_t>& blocks() const { return blocks_; }
  // Row of the cache for a token: block * block_size + offset.
  int32_t slot(int64_t position) const;

 private:
  // What block `index` is found by, given the tokens that it holds; `room` keeps the first one's.
  std::span<const int32_t> key(size_t index, std::span<const int32_t> tokens,
                               std::vector<int32_t>& room) const;

  KvBlockPool* pool_;
  std::vector<int32_t> mark_;
  std::vector<int32_t> blocks_;
  size_t published_ = 0;  // leading blocks that publish() is done with
  size_t noted_ = 0;      // leading blocks that note_draft() is done with
  uint64_t node_ = 0;     // of the text that they hold
};

}  // namespace rbee::engine
