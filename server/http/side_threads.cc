#include "server/http/side_threads.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rbee/core/background.h"
#include "rbee/core/cancel.h"

namespace rbee::server {
SideThreads::SideThreads(Options options) : options_(options) {
  for (size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { run(); });
}

SideThreads::~SideThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<DelayedResponse> SideThreads::submit(Task task) {
  auto abandoned = std::make_shared<std::atomic<bool>>(false);
  auto response = std::make_shared<DelayedResponse>([abandoned, on_leave = task.on_leave] {
    *abandoned = true;
    if (on_leave) on_leave();
  });
  std::optional<Waiting> given_up;
  {
    const std::lock_guard lock(mutex_);
    drop_abandoned();
    auto client = find(task.client);
    if (count_waiting() >= options_.most_waiting) {
      const size_t with_it = 1 + (client == clients_.end() ? 0 : client->waiting.size());
      const auto most = with_more_than(with_it);
      if (most == clients_.end()) return nullptr;
      given_up = std::move(most->waiting.back());
      most->waiting.pop_back();
    }
    if (client == clients_.end()) {
      client = clients_.insert(clients_.end(), {.name = task.client, .waiting = {}});
    }
    client->waiting.push_back({std::move(task), response, std::move(abandoned)});
  }
  changed_.notify_all();
  if (given_up) given_up->response->set(given_up->task.refusal());
  return response;
}

bool SideThreads::busy() const {
  const std::lock_guard lock(mutex_);
  return !clients_.empty();
}

size_t SideThreads::count_waiting() const {
  size_t count = 0;
  for (const Client& client : clients_) count += client.waiting.size();
  return count;
}

void SideThreads::drop_abandoned() {
  for (Client& client : clients_) {
    std::erase_if(client.waiting, [](const Waiting& each) { return each.abandoned->load(); });
  }
  std::erase_if(clients_,
                [](const Client& client) { return client.waiting.empty() && client.in_work == 0; });
}

SideThreads::Clients::iterator SideThreads::find(std::string_view name) {
  return std::ranges::find(clients_, name, &Client::name);
}

SideThreads::Clients::iterator SideThreads::with_more_than(size_t count) {
  const auto most =
      std::ranges::max_element(clients_, {}, [](const Client& c) { return c.waiting.size(); });
  return most == clients_.end() || most->waiting.size() <= count ? clients_.end() : most;
}

SideThreads::Clients::iterator SideThreads::next() {
  auto best = clients_.end();
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    if (client->waiting.empty() || client->in_work >= options_.most_each) continue;
    if (best == clients_.end() || client->in_work < best->in_work) best = client;
  }
  return best;
}

// The client goes after those that came during its turn.
void SideThreads::end_turn(Clients::iterator client) {
  --client->in_work;
  clients_.splice(clients_.end(), clients_, client);
  if (client->waiting.empty() && client->in_work == 0) clients_.erase(client);
}

void SideThreads::run() {
  // With few processors, running answers come before the preparation of others.
  lower_priority();
  while (true) {
    Waiting piece;
    Clients::iterator client;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || (client = next()) != clients_.end(); });
      if (stopping_) return;
      piece = std::move(client->waiting.front());
      client->waiting.pop_front();
      ++client->in_work;
    }
    if (!piece.abandoned->load()) {
      const CancelScope scope(*piece.abandoned);
      piece.response->set(piece.task.work());
    }
    const std::lock_guard lock(mutex_);
    end_turn(client);
  }
}

}  // namespace rbee::server
