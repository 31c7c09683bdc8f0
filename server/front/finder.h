#pragma once
// Asks for models by name, and for the list of models, on threads of its own. Internal to
// server/front: used on the io_context's thread.
//
// Names that are asked for at once share the threads: a client has few of them, so that one whose
// names are slow to find leaves some to others.

#include <boost/asio/io_context.hpp>
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

  // Requests that ask for one name at once share the answer. False: too many names are asked for,
  // by this client or by all.
  bool ask(const std::string& name, const std::string& client, Done done);
  // All models; nothing if they could not be listed.
  void list(Listed done);

 private:
  // Of the threads too: one that waits for a server must not delay the end of the front.
  struct Shared {
    std::mutex mutex;
    boost::asio::io_context* io;  // null: the finder is gone
  };
  struct Asked {
    std::string name;
    std::string client;  // who asked first
    std::vector<Done> waiting;
    bool runs = false;
  };

  void start_next();
  void start(const Asked& asked);
  void told(const std::string& name, const FoundModel& found);

  const Find find_;
  const List list_;
  std::shared_ptr<Shared> shared_;
  std::deque<Asked> asked_;  // in the order in which they came
};

}  // namespace rbee::server
