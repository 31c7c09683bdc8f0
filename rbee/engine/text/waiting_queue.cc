#include "rbee/engine/text/waiting_queue.h"

#include <algorithm>

namespace rbee::engine {
namespace {

bool erase_ticket(std::deque<TicketPtr>& tickets, const Ticket& ticket) {
  return std::erase_if(tickets, [&](const TicketPtr& t) { return t.get() == &ticket; }) > 0;
}

// The client of that name; a new one comes after all others.
template <typename Named>
Named& find_or_add(std::list<Named>& list, const std::string& name) {
  const auto found = std::ranges::find(list, name, &Named::name);
  return found == list.end() ? list.emplace_back(name) : *found;
}

// That one's turn is over.
template <typename Named>
void turn(std::list<Named>& list, typename std::list<Named>::iterator at, bool has_more) {
  has_more ? list.splice(list.end(), list, at) : static_cast<void>(list.erase(at));
}

}  // namespace

void WaitingQueue::count(const Ticket& ticket) {
  ++size_;
  ++sizes_[ticket.client];
}

void WaitingQueue::discount(const Ticket& ticket) {
  --size_;
  const auto at = sizes_.find(ticket.client);
  if (--at->second == 0) sizes_.erase(at);
}

int64_t WaitingQueue::size_of(const std::string& client) const {
  const auto at = sizes_.find(client);
  return at == sizes_.end() ? 0 : at->second;
}

void WaitingQueue::add(TicketPtr ticket) {
  count(*ticket);
  Client& client = find_or_add(levels_[ticket->priority].clients, ticket->client);
  find_or_add(client.users, ticket->user).tickets.push_back(std::move(ticket));
}

void WaitingQueue::put_back(TicketPtr ticket) {
  count(*ticket);
  levels_[ticket->priority].returned.push_front(std::move(ticket));
}

TicketPtr WaitingQueue::front() const {
  if (levels_.empty()) return nullptr;
  const Level& level = levels_.begin()->second;
  if (!level.returned.empty()) return level.returned.front();
  return level.clients.front().users.front().tickets.front();
}

TicketPtr WaitingQueue::front(const std::function<bool(const Ticket&)>& wanted) const {
  if (levels_.empty()) return nullptr;
  const Level& level = levels_.begin()->second;
  for (const TicketPtr& ticket : level.returned) {
    if (wanted(*ticket)) return ticket;
  }
  for (const Client& client : level.clients) {
    for (const User& user : client.users) {
      if (wanted(*user.tickets.front())) return user.tickets.front();
    }
  }
  return nullptr;
}

void WaitingQueue::pop(const Ticket& ticket) {
  const auto at = levels_.find(ticket.priority);
  Level& level = at->second;
  if (!erase_ticket(level.returned, ticket)) {
    const auto client = std::ranges::find(level.clients, ticket.client, &Client::name);
    const auto user = std::ranges::find(client->users, ticket.user, &User::name);
    erase_ticket(user->tickets, ticket);
    turn(client->users, user, !user->tickets.empty());
    turn(level.clients, client, !client->users.empty());
  }
  discount(ticket);
  drop_if_empty(at);
}

bool WaitingQueue::remove(const Ticket& ticket) {
  const auto at = levels_.find(ticket.priority);
  if (at == levels_.end()) return false;
  Level& level = at->second;
  bool found = erase_ticket(level.returned, ticket);
  const auto client = std::ranges::find(level.clients, ticket.client, &Client::name);
  if (!found && client != level.clients.end()) {
    const auto user = std::ranges::find(client->users, ticket.user, &User::name);
    if (user != client->users.end()) {
      found = erase_ticket(user->tickets, ticket);
      if (user->tickets.empty()) client->users.erase(user);
    }
    if (client->users.empty()) level.clients.erase(client);
  }
  if (found) discount(ticket);
  drop_if_empty(at);
  return found;
}

void WaitingQueue::drop_if_empty(Levels::iterator level) {
  if (level->second.returned.empty() && level->second.clients.empty()) levels_.erase(level);
}

}  // namespace rbee::engine
