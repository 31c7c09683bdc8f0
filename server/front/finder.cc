#include "server/front/finder.h"

#include <boost/asio/post.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "rbee/core/error.h"

namespace rbee::server {
namespace {

constexpr size_t kMostNames = 8;  // at once

FoundModel found_by(const Finder::Find& find, const std::string& name) {
  try {
    return {.model = find(name), .problem = {}};
  } catch (const Error& error) {
    return {.model = {}, .problem = error.what(), .retriable = error.code() == Code::io};
  } catch (const std::exception& error) {
    return {.model = {}, .problem = error.what(), .retriable = true};
  }
}

}  // namespace

Finder::Finder(boost::asio::io_context& io, Find find)
    : find_(std::move(find)), shared_(std::make_shared<Shared>()) {
  shared_->io = &io;
}

Finder::~Finder() {
  const std::scoped_lock lock(shared_->mutex);
  shared_->io = nullptr;
}

bool Finder::ask(const std::string& name, Done done) {
  if (!asked_.contains(name) && asked_.size() >= kMostNames) return false;
  std::vector<Done>& waiting = asked_[name];
  waiting.push_back(std::move(done));
  if (waiting.size() > 1) return true;
  try {
    std::thread([this, name, find = find_, shared = shared_] {
      FoundModel found = found_by(find, name);
      const std::scoped_lock lock(shared->mutex);
      if (shared->io == nullptr) return;
      boost::asio::post(*shared->io, [this, name, found = std::move(found)] { told(name, found); });
    }).detach();
  } catch (const std::system_error&) {  // no more threads
    asked_.erase(name);
    return false;
  }
  return true;
}

void Finder::told(const std::string& name, const FoundModel& found) {
  const std::vector<Done> waiting = std::exchange(asked_[name], {});
  asked_.erase(name);
  for (const Done& done : waiting) done(found);
}

}  // namespace rbee::server
