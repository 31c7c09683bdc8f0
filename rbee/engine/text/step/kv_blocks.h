#pragma once
// Assigns the blocks of the paged KV cache to sequences, and keeps blocks whose text may come
// again. A block holds `block_size` tokens. Sharing of blocks: Kwon et al. 2023, section 4.4;
// blocks found by the text that ends in them: Zheng et al. 2024 (RadixAttention).

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

namespace rbee::engine {

// The blocks of one cache. A block is free, used (sequences refer to it), or kept (no sequence
// refers to it, but its tokens may come again). Kept blocks can be taken like free ones, the least
// recently used first.
class KvBlockPool {
 public:
  KvBlockPool(int64_t blocks, int64_t block_size);

  int64_t total() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t used() const { return total() - available(); }
  int64_t kept() const { return static_cast<int64_t>(kept_.size()); }
  // Blocks that can be taken: free ones and kept ones.
  int64_t available() const { return static_cast<int64_t>(free_.size() + kept_.size()); }
  int64_t block_size() const { return block_size_; }

 private:
  friend class KvTable;

  // A text: the tokens of its last block, and the node of the text before that block. Node numbers
  // are never used again, so equal keys mean equal texts, not just equal hashes.
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
    const Text* text = nullptr;         // its key in texts_; null: it cannot be found
    bool draft = false;                 // a draft model's cache has its tokens too
    std::list<int32_t>::iterator kept;  // its place in kept_, if it is there
  };

  int32_t take();  // Needs available() > 0.
  void refer(int32_t block);
  void give_back(int32_t block);

  std::vector<Block> blocks_;
  std::vector<int32_t> free_;
  std::list<int32_t> kept_;  // least recently used first
  Texts texts_;
  uint64_t last_node_ = 0;  // 0 is the empty text
  int64_t block_size_;
};

// The blocks of one sequence, in order; the destructor gives them back. The pool must outlive it.
class KvTable {
 public:
  explicit KvTable(KvBlockPool& pool) : pool_(&pool) {}
  ~KvTable() { release(); }
  KvTable(const KvTable&) = delete;
  KvTable& operator=(const KvTable&) = delete;

  // Numbers for what else the keys depend on, such as adapters: only tables with the same mark
  // share blocks. Call it first. No mark may be the start of a text.
  void set_mark(std::vector<int32_t> mark) { mark_ = std::move(mark); }
  // Of a table without blocks: takes the cached blocks of the first `tokens`, at most all but the
  // last token. Returns how many tokens they hold.
  int64_t adopt(std::span<const int32_t> tokens);
  // Lets other tables adopt the blocks that `tokens` fill. tokens: what the cache holds of the
  // sequence. Does nothing after release().
  void publish(std::span<const int32_t> tokens);
  // A draft model's cache, which uses the same block numbers, now holds the first `tokens`.
  void note_draft(int64_t tokens);
  // Leading tokens, in whole blocks, that this or another table has noted.
  int64_t draft_tokens() const;
  // Makes room for `tokens` in all. If the pool has too few blocks, it returns false and changes
  // nothing.
  bool reserve(int64_t tokens);
  void release();
  const std::vector<int32_t>& blocks() const { return blocks_; }
  // Row of the cache for a token: block * block_size + offset.
  int32_t slot(int64_t position) const;

 private:
  // The key of block `index` for the tokens that it holds; `room` is memory for the first block's
  // key.
  std::span<const int32_t> key(size_t index, std::span<const int32_t> tokens,
                               std::vector<int32_t>& room) const;

  KvBlockPool* pool_;
  std::vector<int32_t> mark_;
  std::vector<int32_t> blocks_;
  size_t published_ = 0;  // leading blocks that publish() has done
  size_t noted_ = 0;      // leading blocks that note_draft() has done
  uint64_t node_ = 0;     // of the text that these blocks hold
};

}  // namespace rbee::engine
