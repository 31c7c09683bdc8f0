#pragma once
// Asks for models that are not served yet, on threads of its own. Internal to server/front: used on
// the io_context's thread.

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
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
  using Done = std::function<void(const FoundModel& found)>;

  Finder(boost::asio::io_context& io, Find find);
  ~Finder();  // answers that are still missing never come
  Finder(const Finder&) = delete;
  Finder& operator=(const Finder&) = delete;

  // Requests that ask for one name at once share the answer. False: too many names are asked for.
  bool ask(const std::string& name, Done done);

 private:
  // Of the threads too: one that waits for a server must not delay the end of the front.
  struct Shared {
    std::mutex mutex;
    boost::asio::io_context* io;  // null: the finder is gone
  };

  void told(const std::string& name, const FoundModel& found);

  const Find find_;
  std::shared_ptr<Shared> shared_;
  std::map<std::string, std::vector<Done>> asked_;
};

}  // namespace rbee::server
