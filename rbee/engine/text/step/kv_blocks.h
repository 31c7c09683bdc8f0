#pragma once
// Assigns the blocks of the paged KV cache to sequences, and keeps blocks whose text may come
// again. A block holds `block_size` tokens. Sharing of blocks: Kwon et al. 2023, section 4.4;
// blocks found by the text that ends in them: Zheng et al. 2024 (RadixAttention).
//
// With a host cache, a block that is taken for another text is first copied to a slot in host
// memory, where the same tables find it: when a text with that beginning comes, its blocks are
// copied back.

#include <cstdint>
#include <deque>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "rbee/engine/text/step/block_events.h"

namespace rbee::engine {

// Keys and values of a block that go to a slot in host memory, or come from there.
struct BlockCopy {
  int32_t block = 0;
  int32_t slot = 0;
  bool to_host = false;

  bool operator==(const BlockCopy&) const = default;
};

// Does the copies of a pool. Copies of one block or slot are done in the order of the calls.
class BlockCopier {
 public:
  virtual ~BlockCopier() = default;
  // In order with steps: all that begin later find the copies done.
  virtual void copy(std::span<const BlockCopy> copies) = 0;
  // Begins copies beside the next steps, which must not use the blocks. Steps after the next call,
  // which may be one without copies, find them done.
  virtual void copy_beside(std::span<const BlockCopy> copies) = 0;
};

// What a host cache has done.
struct HostCacheCounts {
  uint64_t stored = 0;   // blocks copied to host memory
  uint64_t loaded = 0;   // blocks copied back
  uint64_t dropped = 0;  // blocks that made room for others
};

// When the pool does the copies that it needs to take a block.
enum class CopyTime : uint8_t {
  now,    // before the call returns
  later,  // by copy_some(); KvTable::ready() is false until then
};

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

  // From now on each table with blocks also has one of so many slots of states, and none finds the
  // blocks of another: a beginning could go on only from the states at its end, which are not kept.
  // Call it before any block is taken.
  void use_states(int64_t slots);
  bool has_states() const { return has_states_; }

  // From now on, keeps the texts of as many blocks in slots of host memory. The copier must outlive
  // the pool's use. Call it before any block is taken.
  void use_host(int64_t slots, BlockCopier& copier);
  int64_t host_slots() const { return std::ssize(slots_); }
  int64_t host_kept() const { return host_slots() - std::ssize(free_slots_); }
  const HostCacheCounts& host_counts() const { return host_counts_; }
  // Begins at most `most` of the waiting copies. The copies that the last call began are done then.
  void copy_some(size_t most);
  // From now on, tells of texts that come and go. events must outlive the pool's use.
  void use_events(BlockEvents& events) { events_ = &events; }
  bool copies_wait() const { return !queued_.empty() || !begun_.empty(); }

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
  static constexpr int32_t kNone = -1;
  // Where a text's keys and values are: in a block, in a slot, or in both.
  struct Known {
    uint64_t node;
    int32_t block = kNone;
    int32_t slot = kNone;
    BlockNamePtr name = nullptr;  // null: events do not tell of it
  };
  using Texts = std::unordered_map<Text, Known, Hash, Equal>;
  struct Block {
    int32_t references = 0;
    const Text* text = nullptr;         // its key in texts_; null: it cannot be found
    bool draft = false;                 // a draft model's cache has its tokens too
    int32_t copies = 0;                 // that wait or are under way
    std::list<int32_t>::iterator kept;  // its place in kept_, if it is there
  };
  struct Slot {
    const Text* text = nullptr;         // its key in texts_; null: the slot is free
    int32_t pins = 0;                   // copies that wait or are under way, and pin()
    std::list<int32_t>::iterator used;  // its place in used_, if it has no pins
  };

  int32_t take(CopyTime time);  // Needs available() > 0.
  void refer(int32_t block);
  void give_back(int32_t block);
  void give_up_text(int32_t block, CopyTime time);
  int32_t take_slot();  // kNone: all have pins, or there are none.
  void pin(int32_t slot);
  void unpin(int32_t slot);
  // Takes a block for a text that is in host memory alone. Needs available() > 0.
  void load(Texts::value_type& text);
  void queue(const BlockCopy& copy);
  void finish_copies();
  // The name of a text's next block; before: what is known of the text, null: it begins.
  BlockNamePtr name_of(const BlockNamePtr* before, std::span<const int32_t> tokens,
                       const TextScope& scope) const;
  void tell_stored(const Texts::value_type& text, KvMedium medium);
  void tell_removed(const Known& known, KvMedium medium);

  std::vector<Block> blocks_;
  std::vector<int32_t> free_;
  bool has_states_ = false;
  std::vector<int32_t> free_states_;
  std::list<int32_t> kept_;  // least recently used first
  Texts texts_;
  uint64_t last_node_ = 0;  // 0 is the empty text
  int64_t block_size_;

  BlockCopier* copier_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<int32_t> free_slots_;
  std::list<int32_t> used_;  // slots without pins, least recently used first
  std::deque<BlockCopy> queued_;
  std::vector<BlockCopy> begun_;  // under way
  HostCacheCounts host_counts_;

  BlockEvents* events_ = nullptr;  // null: nobody listens
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
  // The mark as people and other programs read it, for events.
  void set_scope(TextScope scope) { scope_ = std::move(scope); }
  // Of a table without blocks: takes the cached blocks of the first `tokens`, at most all but the
  // last token. Returns how many tokens they hold. Blocks in host memory count if the pool has room
  // for all tokens; they are copied back later, see ready().
  int64_t adopt(std::span<const int32_t> tokens);
  // Lets other tables adopt the blocks that `tokens` fill. tokens: what the cache holds of the
  // sequence. Does nothing after release().
  void publish(std::span<const int32_t> tokens);
  // A draft model's cache, which uses the same block numbers, now holds the first `tokens`.
  void note_draft(int64_t tokens);
  // Leading tokens, in whole blocks, that this or another table has noted.
  int64_t draft_tokens() const;
  // Makes room for `tokens` in all. If the pool has too few blocks, or no slot for the states of a
  // table that has no blocks yet, it returns false and changes nothing.
  bool reserve(int64_t tokens, CopyTime time = CopyTime::now);
  // Whether no copy of its blocks waits or is under way: steps may use them.
  bool ready() const;
  void release();
  const std::vector<int32_t>& blocks() const { return blocks_; }
  // Of its states; kNone: it has no blocks, or the pool no states.
  int32_t state_slot() const { return state_slot_; }
  // Row of the cache for a token: block * block_size + offset.
  int32_t slot(int64_t position) const;

 private:
  // The texts of the first blocks that are known.
  std::vector<KvBlockPool::Texts::value_type*> find(std::span<const int32_t> tokens) const;
  // The key of block `index` for the tokens that it holds; `room` is memory for the first block's
  // key.
  std::span<const int32_t> key(size_t index, std::span<const int32_t> tokens,
                               std::vector<int32_t>& room) const;

  KvBlockPool* pool_;
  std::vector<int32_t> mark_;
  TextScope scope_;
  std::vector<int32_t> blocks_;
  int32_t state_slot_ = KvBlockPool::kNone;
  size_t published_ = 0;  // leading blocks that publish() has done
  size_t noted_ = 0;      // leading blocks that note_draft() has done
  uint64_t node_ = 0;     // of the text that these blocks hold
  BlockNamePtr name_;     // of the same
};

}  // namespace rbee::engine
