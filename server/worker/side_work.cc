#include "server/worker/side_work.h"

#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "rbee/core/cancel.h"
#include "rbee/core/cat.h"
#include "server/contract/error_map.h"
#include "server/worker/service.h"

namespace rbee::server {
namespace {

constexpr int kNiceness = 10;

Response answer_of(const SideWork::Task& task) {
  try {
    try {
      return task.work();
    } catch (const std::exception&) {
      return error_answer(std::current_exception(), task.error_body);
    }
  } catch (const std::exception& error) {
    const WireError wire = wire_error(Code::internal);
    return json_response(wire.status, error_json(wire.code, error.what()));
  }
}

Refused refusal(size_t waiting) {
  return Refused(Refused::Why::overloaded, cat(waiting, " such requests wait already"));
}

}  // namespace

SideWork::SideWork(Options options) : options_(std::move(options)) {
  for (size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { run(); });
}

SideWork::~SideWork() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<DelayedResponse> SideWork::submit(Task task) {
  auto abandoned = std::make_shared<std::atomic<bool>>(false);
  auto response = std::make_shared<DelayedResponse>([abandoned, on_leave = task.on_leave] {
    *abandoned = true;
    if (on_leave) on_leave();
  });
  std::optional<Waiting> given_up;
  try {
    const std::lock_guard lock(mutex_);
    drop_abandoned();
    auto client = find(task.client);
    if (count_waiting() >= options_.most_waiting) {
      given_up = take_newest_of_most(client == clients_.end() ? 0 : client->waiting.size());
    }
    if (client == clients_.end()) {
      client = clients_.insert(clients_.end(), {.name = task.client, .waiting = {}});
    }
    client->waiting.push_back({std::move(task), response, std::move(abandoned)});
  } catch (const Refused&) {
    if (options_.on_refused) options_.on_refused();
    throw;
  }
  changed_.notify_all();
  if (given_up) {
    if (options_.on_refused) options_.on_refused();
    const auto why = std::make_exception_ptr(refusal(options_.most_waiting));
    given_up->response->set(error_answer(why, given_up->task.error_body));
  }
  return response;
}

bool SideWork::busy() const {
  const std::lock_guard lock(mutex_);
  return !clients_.empty();
}

size_t SideWork::count_waiting() const {
  size_t count = 0;
  for (const Client& client : clients_) count += client.waiting.size();
  return count;
}

void SideWork::drop_abandoned() {
  for (Client& client : clients_) {
    std::erase_if(client.waiting, [](const Waiting& each) { return each.abandoned->load(); });
  }
  std::erase_if(clients_,
                [](const Client& client) { return client.waiting.empty() && client.in_work == 0; });
}

SideWork::Clients::iterator SideWork::find(std::string_view name) {
  return std::ranges::find(clients_, name, &Client::name);
}

SideWork::Waiting SideWork::take_newest_of_most(size_t fewer) {
  const auto most =
      std::ranges::max_element(clients_, {}, [](const Client& c) { return c.waiting.size(); });
  if (most == clients_.end() || fewer + 1 >= most->waiting.size()) {
    throw refusal(options_.most_waiting);
  }
  Waiting newest = std::move(most->waiting.back());
  most->waiting.pop_back();
  return newest;
}

SideWork::Clients::iterator SideWork::next() {
  auto best = clients_.end();
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    if (client->waiting.empty() || client->in_work >= options_.most_each) continue;
    if (best == clients_.end() || client->in_work < best->in_work) best = client;
  }
  return best;
}

// It goes behind those that came while it had its turn.
void SideWork::end_turn(Clients::iterator client) {
  --client->in_work;
  clients_.splice(clients_.end(), clients_, client);
  if (client->waiting.empty() && client->in_work == 0) clients_.erase(client);
}

void SideWork::run() {
  // Where processors are few, answers that run come before those that are made ready. On Linux it
  // is the thread that this is about.
  setpriority(PRIO_PROCESS, 0, kNiceness);
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
      piece.response->set(answer_of(piece.task));
    }
    const std::lock_guard lock(mutex_);
    end_turn(client);
  }
}

}  // namespace rbee::server
