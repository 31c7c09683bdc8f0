#include "rbee/engine/waiting_queue.h"

#include <algorithm>

namespace rbee::engine {
namespace {

bool erase_ticket(std::deque<TicketPtr>& tickets, const Ticket& ticket) {
  return std::erase_if(tickets, [&](const TicketPtr& t) { return t.get() == &ticket; }) > 0;
}

}  // namespace

void WaitingQueue::add(TicketPtr ticket) {
  std::list<Client>& clients = levels_[ticket->priority].clients;
  auto client = std::ranges::find(clients, ticket->client, &Client::name);
  if (client == clients.end()) {
    client = clients.insert(clients.end(), {.name = ticket->client, .tickets = {}});
  }
  client->tickets.push_back(std::move(ticket));
  ++size_;
}

void WaitingQueue::put_back(TicketPtr ticket) {
  levels_[ticket->priority].returned.push_front(std::move(ticket));
  ++size_;
}

TicketPtr WaitingQueue::front() const {
  if (levels_.empty()) return nullptr;
  const Level& level = levels_.begin()->second;
  return level.returned.empty() ? level.clients.front().tickets.front() : level.returned.front();
}

void WaitingQueue::pop_front() {
  const auto at = levels_.begin();
  Level& level = at->second;
  if (!level.returned.empty()) {
    level.returned.pop_front();
  } else {
    std::deque<TicketPtr>& tickets = level.clients.front().tickets;
    tickets.pop_front();
    if (tickets.empty()) {
      level.clients.pop_front();
    } else {
      level.clients.splice(level.clients.end(), level.clients, level.clients.begin());
    }
  }
  --size_;
  drop_if_empty(at);
}

bool WaitingQueue::remove(const Ticket& ticket) {
  const auto at = levels_.find(ticket.priority);
  if (at == levels_.end()) return false;
  Level& level = at->second;
  bool found = erase_ticket(level.returned, ticket);
  const auto client = std::ranges::find(level.clients, ticket.client, &Client::name);
  if (!found && client != level.clients.end()) {
    found = erase_ticket(client->tickets, ticket);
    if (client->tickets.empty()) level.clients.erase(client);
  }
  if (found) --size_;
  drop_if_empty(at);
  return found;
}

void WaitingQueue::drop_if_empty(Levels::iterator level) {
  if (level->second.returned.empty() && level->second.clients.empty()) levels_.erase(level);
}

}  // namespace rbee::engine
