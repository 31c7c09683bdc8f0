#pragma once
// What later requests can go on from: OpenAI's stored responses, those that are made in the
// background, and conversations. Thread-safe.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/llm/live_response.h"

namespace rbee::server {

// What a request added to a chat, and what its answer did.
struct StoredTurn {
  std::string id;                            // of the answer
  std::shared_ptr<const std::string> input;  // JSON: a text, or a list of items
  std::string output;                        // JSON: a list of items
  size_t bytes() const { return sizeof(StoredTurn) + id.size() + input->size() + output.size(); }
};
using StoredTurns = std::vector<std::shared_ptr<const StoredTurn>>;

struct StoredResponse {
  std::string object;  // JSON of the answer, without its output
  StoredTurns turns;   // of the chat up to the answer, which is in the last of them
  bool whole = true;   // false: it failed or was cancelled, and no chat goes on from it
  std::shared_ptr<LiveResponse> live = nullptr;  // with its events; null: it was not in background
};

// A response has its conversation to itself until it ends this, or forgets it. Thread-safe.
class ConversationHold {
 public:
  void end() { ended_ = true; }
  bool ended() const { return ended_; }

 private:
  std::atomic<bool> ended_ = false;
};

// One that is still made in the background.
struct RunningResponse {
  std::shared_ptr<LiveResponse> live;
  StoredTurns turns;  // as a StoredResponse's; the output of the last is an empty list
  std::shared_ptr<ConversationHold> hold = nullptr;  // null: it is of no conversation
};

// A chat under a name of its own, to which clients and responses add turns.
struct Conversation {
  std::string id;
  int64_t created = 0;   // seconds since 1970
  std::string metadata;  // JSON of an object
  StoredTurns turns = {};
};

struct ResponseStoreOptions {
  size_t bytes = size_t{64} << 20;  // 0: it keeps nothing
  size_t most = 10'000;             // answers and conversations
  std::chrono::seconds age{30 * 24 *
                           3600};  // for which one is kept; of a conversation's last change
  // The time; null: the steady clock's.
  std::chrono::steady_clock::time_point (*now)() = nullptr;
};

// Holds at most so many bytes and answers; a conversation counts as one. An answer that has more
// bytes, with the chat before it, is not kept. If all have more, the client that holds most (bytes,
// or answers) loses the answer or conversation that it used least recently. So no client can push
// out what is of one that holds less. Answers and conversations share turns, which are counted
// once. Answers that run in the background are counted when they end: how many run and wait is the
// engine's limit.
class ResponseStore {
 public:
  explicit ResponseStore(ResponseStoreOptions options);

  bool on() const { return options_.bytes > 0; }
  // For the events of one that runs in the background.
  size_t most_event_bytes() const { return options_.bytes / 8; }
  // How the ids of this store's answers begin, and those of no other; empty if it keeps nothing.
  const std::string& prefix() const { return prefix_; }
  // The same without "resp_": in ids of all else.
  std::string tag() const { return prefix_.substr(prefix_.find('_') + 1); }
  // Null if there is none, or it is another client's.
  std::shared_ptr<const StoredResponse> find(const std::string& client, const std::string& id);
  void add(const std::string& client, StoredResponse response);
  // False if find(), find_running() and find_conversation() would find nothing. Ends the hold of
  // one that runs.
  bool remove(const std::string& client, const std::string& id);
  size_t bytes() const;

  void begin(const std::string& client, RunningResponse response);
  std::optional<RunningResponse> find_running(const std::string& client,
                                              const std::string& id) const;
  // Of a response that ran: its hold ends, and it is kept as add() does, unless it was removed.
  void finish(const std::string& client, StoredResponse response);
  size_t running() const;

  // Whether a conversation of so many more bytes is not too large for the store.
  bool has_room(const Conversation& conversation, size_t more) const;
  // False: it is too large, and not kept.
  bool add_conversation(const std::string& client, Conversation conversation);
  // Null as find().
  std::shared_ptr<const Conversation> find_conversation(const std::string& client,
                                                        const std::string& id);
  // Null while another response holds it. Of one that is not there it holds nothing.
  std::shared_ptr<ConversationHold> hold_conversation(const std::string& client,
                                                      const std::string& id);
  enum class Changed : uint8_t { done, not_found, too_large };
  // Nobody else changes it while `change` runs, which must be quick. One that would become larger
  // than the store stays as it is; one that is too large beside other clients' answers goes.
  Changed change_conversation(const std::string& client, const std::string& id,
                              const std::function<void(Conversation&)>& change);

 private:
  // One of the two.
  struct Entry {
    std::shared_ptr<const StoredResponse> response;
    std::shared_ptr<const Conversation> conversation;
    std::weak_ptr<const ConversationHold> hold = {};  // on the conversation
    std::chrono::steady_clock::time_point kept = {};  // since then

    const StoredTurns& turns() const { return response ? response->turns : conversation->turns; }
    const std::string& id() const { return response ? turns().back()->id : conversation->id; }
    size_t own_bytes() const;  // without its turns, which others may share
    size_t bytes() const;
  };
  struct Client {
    std::list<Entry> order;  // the one used last is last
    std::unordered_map<std::string, decltype(order)::iterator> entries;
    std::unordered_map<const StoredTurn*, size_t> turns;  // in how many entries each is
    size_t bytes = 0;
  };
  using Clients = std::map<std::string, Client>;
  Entry* find_locked(const std::string& client, const std::string& id);
  bool add_locked(const std::string& client, Entry entry);
  bool end_running(const std::string& client, const std::string& id);
  void drop(Clients::iterator client, const std::string& id);
  void drop_old();
  std::chrono::steady_clock::time_point now() const;
  void grow(Client& client, size_t bytes);
  void shrink(Client& client, size_t bytes);

  const ResponseStoreOptions options_;
  const std::string prefix_;
  mutable std::mutex mutex_;
  Clients clients_;  // those that hold any
  size_t bytes_ = 0, count_ = 0;
  std::chrono::steady_clock::time_point swept_;  // when old answers were looked for
  std::map<std::pair<std::string, std::string>, RunningResponse> running_;  // by client and id
};

}  // namespace rbee::server
