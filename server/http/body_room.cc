#include "server/http/body_room.h"

#include <map>
#include <mutex>
#include <utility>

namespace rbee::server {

class BodyRoom::Held {
 public:
  explicit Held(size_t all) : free_(all) {}

  bool take(const std::string& client, size_t bytes) {
    const std::lock_guard lock(mutex_);
    size_t& own = clients_[client];
    const bool fits = bytes <= free_ && own + bytes <= free_ - bytes;
    if (fits) {
      own += bytes;
      free_ -= bytes;
    } else if (own == 0) {
      clients_.erase(client);
    }
    return fits;
  }
  void give_back(const std::string& client, size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_ += bytes;
    size_t& own = clients_[client];
    own -= bytes;
    if (own == 0) clients_.erase(client);
  }

 private:
  std::mutex mutex_;
  size_t free_;
  std::map<std::string, size_t> clients_;  // those that hold any
};

class BodyRoom::PartOf final : public Part {
 public:
  PartOf(std::shared_ptr<Held> held, std::string client)
      : held_(std::move(held)), client_(std::move(client)) {}
  ~PartOf() override {
    if (bytes_ > 0) held_->give_back(client_, bytes_);
  }
  PartOf(const PartOf&) = delete;
  PartOf& operator=(const PartOf&) = delete;

  bool grow_to(size_t bytes) override {
    if (bytes <= bytes_) return true;
    if (!held_->take(client_, bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }

 private:
  const std::shared_ptr<Held> held_;
  const std::string client_;
  size_t bytes_ = 0;
};

BodyRoom::BodyRoom(size_t bytes) : held_(std::make_shared<Held>(bytes)) {}

std::shared_ptr<BodyRoom::Part> BodyRoom::part(std::string client) const {
  return std::make_shared<PartOf>(held_, std::move(client));
}

}  // namespace rbee::server
