#pragma once
// Asks for models by name, and for the list of models, on threads of its own. Internal to
// server/front: used on the io_context's thread.
//
// Names that are asked for at once share the threads: a client has few of them, so that one whose
// names are slow to find leaves some to others. A name that nobody waits for any more is not looked
// for: it leaves the queue, or its thread is told to end and keeps its place among the threads
// until then.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/front/config.h"

namespace rbee::server {

struct FoundModel {
  std::optional<ServedModel> model;  // nothing: there is none
  std::string problem;               // why it could not be asked for, or is not there; may be empty
  bool retriable = false;            // a later request may find it
  bool invalid = false;              // no model can have this name
};

class Finder {
 public:
  using Find = std::function<std::optional<ServedModel>(const std::string& name)>;
  using List = std::function<std::vector<ServedModel>()>;
  using Done = std::function<void(const FoundModel& found)>;
  using Listed = std::function<void(const std::optional<std::vector<ServedModel>>& models)>;

  Finder(boost::asio::io_context& io, Find find, List list);
  ~Finder();  // answers that are still missing never come
  Finder(const Finder&) = delete;
  Finder& operator=(const Finder&) = delete;

  // Requests that ask for one name at once share the answer. Nothing: too many names are asked for,
  // by this client or by all. Else a number for leave().
  std::optional<uint64_t> ask(const std::string& name, const std::string& client, Done done);
  // Whoever asked does not wait any more. Does nothing after the answer.
  void leave(uint64_t waiter);
  // All models; nothing if they could not be listed.
  void list(Listed done);

 private:
  // Of the threads too: one that waits for a server must not delay the end of the front.
  struct Shared {
    std::mutex mutex;
    boost::asio::io_context* io;  // null: the finder is gone
  };
  struct Waiter {
    uint64_t number;
    std::string client;
    Done done;
  };
  struct Asked {
    std::string name;
    uint64_t number;
    std::string client;           // of the first who waits, or waited
    std::vector<Waiter> waiting;  // empty: all have left, and its thread has not ended yet
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
    bool runs = false;

    bool wanted() const { return !waiting.empty(); }
  };

  void start_next();
  void start(const Asked& asked);
  void told(uint64_t number, const FoundModel& found);

  const Find find_;
  const List list_;
  std::shared_ptr<Shared> shared_;
  std::deque<Asked> asked_;  // in the order in which they came
  uint64_t last_ = 0;        // of the numbers of both
};

}  // namespace rbee::server
