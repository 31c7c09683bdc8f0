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

// Without the turns, which others may share.
size_t own_bytes(const StoredResponse& response) {
  const size_t events = response.live ? response.live->bytes() : 0;
  return kAnswerBytes + response.object.size() + kTurnBytes * response.turns.size() + events;
}

size_t own_bytes(const Conversation& conversation) {
  return kAnswerBytes + conversation.id.size() + conversation.metadata.size() +
         kTurnBytes * conversation.turns.size();
}

size_t bytes_of(const StoredTurns& turns) {
  size_t out = 0;
  for (const auto& turn : turns) out += turn->bytes();
  return out;
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

size_t ResponseStore::Entry::own_bytes() const {
  return response ? rbee::server::own_bytes(*response) : rbee::server::own_bytes(*conversation);
}

size_t ResponseStore::Entry::bytes() const {
  return own_bytes() + bytes_of(turns());
}

ResponseStore::Entry* ResponseStore::find_locked(const std::string& client, const std::string& id) {
  const auto owner = clients_.find(client);
  if (owner == clients_.end()) return nullptr;
  Client& held = owner->second;
  const auto found = held.entries.find(id);
  if (found == held.entries.end()) return nullptr;
  if (now() - found->second->kept > options_.age) {
    drop(owner, id);
    return nullptr;
  }
  held.order.splice(held.order.end(), held.order, found->second);
  return &*found->second;
}

std::shared_ptr<const StoredResponse> ResponseStore::find(const std::string& client,
                                                          const std::string& id) {
  const std::lock_guard lock(mutex_);
  const Entry* found = find_locked(client, id);
  return found == nullptr ? nullptr : found->response;
}

std::shared_ptr<const Conversation> ResponseStore::find_conversation(const std::string& client,
                                                                     const std::string& id) {
  const std::lock_guard lock(mutex_);
  const Entry* found = find_locked(client, id);
  return found == nullptr ? nullptr : found->conversation;
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
  (void)add_locked(client, {.response = std::make_shared<const StoredResponse>(std::move(response)),
                            .conversation = nullptr});
}

bool ResponseStore::has_room(const Conversation& conversation, size_t more) const {
  return own_bytes(conversation) + bytes_of(conversation.turns) + more <= options_.bytes;
}

bool ResponseStore::add_conversation(const std::string& client, Conversation conversation) {
  const std::lock_guard lock(mutex_);
  return add_locked(
      client, {.response = nullptr,
               .conversation = std::make_shared<const Conversation>(std::move(conversation))});
}

std::shared_ptr<ConversationHold> ResponseStore::hold_conversation(const std::string& client,
                                                                   const std::string& id) {
  const std::lock_guard lock(mutex_);
  Entry* found = find_locked(client, id);
  auto own = std::make_shared<ConversationHold>();
  if (found == nullptr) return own;
  const auto now = found->hold.lock();
  if (now && !now->ended()) return nullptr;
  found->hold = own;
  return own;
}

ResponseStore::Changed ResponseStore::change_conversation(
    const std::string& client, const std::string& id,
    const std::function<void(Conversation&)>& change) {
  const std::lock_guard lock(mutex_);
  const Entry* found = find_locked(client, id);
  if (found == nullptr || !found->conversation) return Changed::not_found;
  Conversation changed = *found->conversation;
  change(changed);
  Entry entry{.response = nullptr,
              .conversation = std::make_shared<const Conversation>(std::move(changed)),
              .hold = found->hold};
  if (entry.bytes() > options_.bytes) return Changed::too_large;
  drop(clients_.find(client), id);
  return add_locked(client, std::move(entry)) ? Changed::done : Changed::too_large;
}

// False: it is larger than all the room, or than what the client may have beside others.
bool ResponseStore::add_locked(const std::string& client, Entry entry) {
  if (entry.bytes() > options_.bytes) return false;
  if (now() - swept_ > kSweepEvery) drop_old();
  entry.kept = now();
  Client& held = clients_[client];
  grow(held, entry.own_bytes());
  for (const auto& turn : entry.turns()) {
    if (held.turns[turn.get()]++ == 0) grow(held, turn->bytes());
  }
  const std::string id = entry.id();
  held.order.push_back(std::move(entry));
  held.entries[id] = std::prev(held.order.end());
  ++count_;
  while (bytes_ > options_.bytes || count_ > options_.most) {
    const bool too_large = bytes_ > options_.bytes;
    const auto largest = std::ranges::max_element(clients_, {}, [&](const auto& one) {
      return too_large ? one.second.bytes : one.second.entries.size();
    });
    drop(largest, std::string(largest->second.order.front().id()));
  }
  const auto owner = clients_.find(client);
  return owner != clients_.end() && owner->second.entries.contains(id);
}

void ResponseStore::drop_old() {
  swept_ = now();
  std::vector<std::pair<std::string, std::string>> old;  // clients and ids
  for (const auto& [client, held] : clients_) {
    for (const Entry& entry : held.order) {
      if (swept_ - entry.kept > options_.age) old.emplace_back(client, entry.id());
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
  if (!end_running(client, response.turns.back()->id)) return;
  (void)add_locked(client, {.response = std::make_shared<const StoredResponse>(std::move(response)),
                            .conversation = nullptr});
}

bool ResponseStore::end_running(const std::string& client, const std::string& id) {
  const auto running = running_.extract({client, id});
  if (running && running.mapped().hold) running.mapped().hold->end();
  return !running.empty();
}

size_t ResponseStore::running() const {
  const std::lock_guard lock(mutex_);
  return running_.size();
}

bool ResponseStore::remove(const std::string& client, const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (end_running(client, id)) return true;
  const auto owner = clients_.find(client);
  if (owner == clients_.end() || !owner->second.entries.contains(id)) return false;
  drop(owner, id);
  return true;
}

void ResponseStore::drop(Clients::iterator client, const std::string& id) {
  Client& held = client->second;
  const auto place = held.entries.extract(held.entries.find(id)).mapped();
  const Entry entry = std::move(*place);
  held.order.erase(place);
  --count_;
  shrink(held, entry.own_bytes());
  for (const auto& turn : entry.turns()) {
    const auto counted = held.turns.find(turn.get());
    if (--counted->second > 0) continue;
    held.turns.erase(counted);
    shrink(held, turn->bytes());
  }
  if (held.entries.empty()) clients_.erase(client);
}

size_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace rbee::server
