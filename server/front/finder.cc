#include "server/front/finder.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "rbee/core/cancel.h"
#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::server {
namespace {

constexpr int64_t kMostAtOnce = 8, kMostAtOnceOfClient = 2;   // names that threads look for
constexpr int64_t kMostNames = 128, kMostNamesOfClient = 16;  // with those that wait for one

FoundModel found_by(const Finder::Find& find, const std::string& name) {
  try {
    return {.model = find(name), .problem = {}};
  } catch (const Error& error) {
    return {.model = {},
            .problem = error.what(),
            .retriable = error.code() == Code::io,
            .invalid = error.code() == Code::invalid_argument};
  } catch (const std::exception& error) {
    return {.model = {}, .problem = error.what(), .retriable = true};
  }
}

std::optional<std::vector<ServedModel>> listed_by(const Finder::List& list) {
  try {
    return list();
  } catch (const std::exception& error) {
    log(LogLevel::warn, "the models cannot be listed", {{"error", error.what()}});
    return std::nullopt;
  }
}

}  // namespace

Finder::Finder(boost::asio::io_context& io, Find find, List list)
    : find_(std::move(find)), list_(std::move(list)), shared_(std::make_shared<Shared>()) {
  shared_->io = &io;
}

Finder::~Finder() {
  const std::scoped_lock lock(shared_->mutex);
  shared_->io = nullptr;
}

std::optional<uint64_t> Finder::ask(const std::string& name, const std::string& client, Done done) {
  auto known = std::ranges::find_if(
      asked_, [&](const Asked& asked) { return asked.wanted() && asked.name == name; });
  if (known == asked_.end()) {
    const auto wanted = std::ranges::count_if(asked_, &Asked::wanted);
    const auto of_client = std::ranges::count_if(
        asked_, [&](const Asked& asked) { return asked.wanted() && asked.client == client; });
    if (wanted >= kMostNames || of_client >= kMostNamesOfClient) return std::nullopt;
    asked_.push_back({.name = name, .number = ++last_, .client = client, .waiting = {}});
    known = std::prev(asked_.end());
  }
  const uint64_t waiter = ++last_;
  known->waiting.push_back({.number = waiter, .client = client, .done = std::move(done)});
  start_next();
  return waiter;
}

void Finder::leave(uint64_t waiter) {
  for (Asked& asked : asked_) {
    if (std::erase_if(asked.waiting, [&](const Waiter& one) { return one.number == waiter; }) == 0)
      continue;
    if (asked.wanted()) asked.client = asked.waiting.front().client;
    *asked.cancelled = !asked.wanted();
    break;
  }
  std::erase_if(asked_, [](const Asked& asked) { return !asked.wanted() && !asked.runs; });
  start_next();  // the name may count for another client now
}

void Finder::start_next() {
  for (Asked& asked : asked_) {
    if (std::ranges::count_if(asked_, &Asked::runs) >= kMostAtOnce) return;
    const auto of_client = std::ranges::count_if(
        asked_, [&](const Asked& other) { return other.runs && other.client == asked.client; });
    if (asked.runs || of_client >= kMostAtOnceOfClient) continue;
    asked.runs = true;
    start(asked);
  }
}

void Finder::start(const Asked& asked) {
  const auto tell = [this, number = asked.number, shared = shared_](FoundModel found) {
    const std::scoped_lock lock(shared->mutex);
    if (shared->io == nullptr) return;
    boost::asio::post(*shared->io,
                      [this, number, found = std::move(found)] { told(number, found); });
  };
  try {
    std::thread([tell, name = asked.name, cancelled = asked.cancelled, find = find_] {
      const CancelScope scope(*cancelled);
      tell(found_by(find, name));
    }).detach();
  } catch (const std::system_error& error) {
    tell({.model = {}, .problem = error.what(), .retriable = true});  // no more threads
  }
}

void Finder::told(uint64_t number, const FoundModel& found) {
  const auto at = std::ranges::find(asked_, number, &Asked::number);
  const std::vector<Waiter> waiting = std::move(at->waiting);
  asked_.erase(at);
  start_next();
  for (const Waiter& one : waiting) one.done(found);
}

void Finder::list(Listed done) {
  const auto tell = [done = std::move(done),
                     shared = shared_](std::optional<std::vector<ServedModel>> models) {
    const std::scoped_lock lock(shared->mutex);
    if (shared->io == nullptr) return;
    boost::asio::post(*shared->io, [done, models = std::move(models)] { done(models); });
  };
  try {
    std::thread([tell, list = list_] { tell(listed_by(list)); }).detach();
  } catch (const std::system_error&) {
    tell(std::nullopt);
  }
}

}  // namespace rbee::server
