#include "server/llm/response_store.h"

#include <algorithm>
#include <utility>

#include "rbee/core/cat.h"
#include "server/http/ids.h"

namespace rbee::server {
namespace {

constexpr size_t kTagBytes = 4;
// About what the lists and tables take for an answer, and for each turn in it.
constexpr size_t kAnswerBytes = 256;
constexpr size_t kTurnBytes = 16;

// Of the answer itself, without its turns, which others may share.
size_t own_bytes(const StoredResponse& response) {
  const size_t events = response.live ? response.live->bytes() : 0;
  return kAnswerBytes + response.object.size() + kTurnBytes * response.turns.size() + events;
}

// Between two looks for old answers; one that is asked for is looked at anyway.
constexpr std::chrono::seconds kSweepEvery{60};

}  // namespace

ResponseStore::ResponseStore(ResponseStoreOptions options)
    : options_(options),
      prefix_(options.bytes == 0 ? "" : cat("resp_", random_hex(kTagBytes), "-")),
      swept_(now()) {}

std::chrono::steady_clock::time_point ResponseStore::now() const {
  return options_.now != nullptr ? options_.now() : std::chrono::steady_clock::now();
}

std::shared_ptr<const StoredResponse> ResponseStore::find(const std::string& client,
                                                          const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto owner = clients_.find(client);
  if (owner == clients_.end()) return nullptr;
  Client& held = owner->second;
  const auto found = held.answers.find(id);
  if (found == held.answers.end()) return nullptr;
  if (now() - (*found->second)->kept > options_.age) {
    drop(owner, id);
    return nullptr;
  }
  held.order.splice(held.order.end(), held.order, found->second);
  return *found->second;
}

void ResponseStore::grow(Client& client, size_t bytes) {
  client.bytes += bytes;
  bytes_ += bytes;
}

void ResponseStore::shrink(Client& client, size_t bytes) {
  client.bytes -= bytes;
  bytes_ -= bytes;
}

void ResponseStore::add(const std::string& client, StoredResponse response) {
  const std::lock_guard lock(mutex_);
  add_locked(client, std::move(response));
}

void ResponseStore::add_locked(const std::string& client, StoredResponse response) {
  size_t alone = own_bytes(response);
  for (const auto& turn : response.turns) alone += turn->bytes();
  if (alone > options_.bytes) return;
  if (now() - swept_ > kSweepEvery) drop_old();
  const std::string id = response.turns.back()->id;
  response.kept = now();
  Client& held = clients_[client];
  grow(held, own_bytes(response));
  for (const auto& turn : response.turns) {
    if (held.turns[turn.get()]++ == 0) grow(held, turn->bytes());
  }
  held.order.push_back(std::make_shared<const StoredResponse>(std::move(response)));
  held.answers[id] = std::prev(held.order.end());
  ++count_;
  while (bytes_ > options_.bytes || count_ > options_.most) {
    const bool too_large = bytes_ > options_.bytes;
    const auto largest = std::ranges::max_element(clients_, {}, [&](const auto& entry) {
      return too_large ? entry.second.bytes : entry.second.answers.size();
    });
    drop(largest, largest->second.order.front()->turns.back()->id);
  }
}

void ResponseStore::drop_old() {
  swept_ = now();
  std::vector<std::pair<std::string, std::string>> old;  // clients and ids
  for (const auto& [client, held] : clients_) {
    for (const auto& answer : held.order) {
      if (swept_ - answer->kept > options_.age) old.emplace_back(client, answer->turns.back()->id);
    }
  }
  for (const auto& [client, id] : old) drop(clients_.find(client), id);
}

void ResponseStore::begin(const std::string& client, RunningResponse response) {
  const std::lock_guard lock(mutex_);
  std::pair<std::string, std::string> key(client, response.live->id());
  running_.emplace(std::move(key), std::move(response));
}

std::optional<RunningResponse> ResponseStore::find_running(const std::string& client,
                                                           const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find({client, id});
  return found == running_.end() ? std::nullopt : std::optional(found->second);
}

void ResponseStore::finish(const std::string& client, StoredResponse response) {
  const std::lock_guard lock(mutex_);
  if (running_.erase({client, response.turns.back()->id}) == 0) return;
  add_locked(client, std::move(response));
}

size_t ResponseStore::running() const {
  const std::lock_guard lock(mutex_);
  return running_.size();
}

bool ResponseStore::remove(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (running_.erase({client, id}) > 0) return true;
  const auto owner = clients_.find(client);
  if (owner == clients_.end() || !owner->second.answers.contains(id)) return false;
  drop(owner, id);
  return true;
}

void ResponseStore::drop(Clients::iterator client, const std::string& id) {
  Client& held = client->second;
  const auto entry = held.answers.extract(held.answers.find(id)).mapped();
  const std::shared_ptr<const StoredResponse> response = *entry;
  held.order.erase(entry);
  --count_;
  shrink(held, own_bytes(*response));
  for (const auto& turn : response->turns) {
    const auto counted = held.turns.find(turn.get());
    if (--counted->second > 0) continue;
    held.turns.erase(counted);
    shrink(held, turn->bytes());
  }
  if (held.answers.empty()) clients_.erase(client);
}

size_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace rbee::server
