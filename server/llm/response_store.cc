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
  return kAnswerBytes + response.object.size() + kTurnBytes * response.turns.size();
}

}  // namespace

ResponseStore::ResponseStore(size_t bytes)
    : most_(bytes), prefix_(bytes == 0 ? "" : cat("resp_", random_hex(kTagBytes), "-")) {}

std::shared_ptr<const StoredResponse> ResponseStore::find(const std::string& client,
                                                          const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto owner = clients_.find(client);
  if (owner == clients_.end()) return nullptr;
  Client& held = owner->second;
  const auto found = held.answers.find(id);
  if (found == held.answers.end()) return nullptr;
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
  size_t alone = own_bytes(response);
  for (const auto& turn : response.turns) alone += turn->bytes();
  if (alone > most_) return;
  const std::string id = response.turns.back()->id;
  const std::lock_guard lock(mutex_);
  Client& held = clients_[client];
  grow(held, own_bytes(response));
  for (const auto& turn : response.turns) {
    if (held.turns[turn.get()]++ == 0) grow(held, turn->bytes());
  }
  held.order.push_back(std::make_shared<const StoredResponse>(std::move(response)));
  held.answers[id] = std::prev(held.order.end());
  while (bytes_ > most_) {
    const auto largest = std::ranges::max_element(
        clients_, {}, [](const auto& entry) { return entry.second.bytes; });
    drop(largest, largest->second.order.front()->turns.back()->id);
  }
}

bool ResponseStore::remove(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
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
