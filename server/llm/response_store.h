#pragma once
// Answers that later requests can go on from: OpenAI's stored responses. Thread-safe.

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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
};

// Holds at most so many bytes. An answer that has more, with the chat before it, is not kept. If
// all have more, the client that holds most loses the answer that it used least recently. So no
// client can push out the answers of one that holds less. Answers of one chat share its turns,
// which are counted once.
class ResponseStore {
 public:
  // bytes: 0: it keeps nothing.
  explicit ResponseStore(size_t bytes);

  bool on() const { return most_ > 0; }
  // How the ids of this store's answers begin, and those of no other; empty if it keeps nothing.
  const std::string& prefix() const { return prefix_; }
  // Null if there is none, or it is another client's.
  std::shared_ptr<const StoredResponse> find(const std::string& client, const std::string& id);
  void add(const std::string& client, StoredResponse response);
  // False if find() would find nothing.
  bool remove(const std::string& client, const std::string& id);
  size_t bytes() const;

 private:
  struct Client {
    std::list<std::shared_ptr<const StoredResponse>> order;  // the one used last is last
    std::unordered_map<std::string, decltype(order)::iterator> answers;
    std::unordered_map<const StoredTurn*, size_t> turns;  // in how many answers each is
    size_t bytes = 0;
  };
  using Clients = std::map<std::string, Client>;
  void drop(Clients::iterator client, const std::string& id);
  void grow(Client& client, size_t bytes);
  void shrink(Client& client, size_t bytes);

  const size_t most_;
  const std::string prefix_;
  mutable std::mutex mutex_;
  Clients clients_;  // those that hold any
  size_t bytes_ = 0;
};

}  // namespace rbee::server
