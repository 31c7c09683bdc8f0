#pragma once
// Requests that wait for a place, in the order in which they get one: those of a lower priority
// number first; among equals those that had a place and lost it, then clients in turn, each with
// its users in turn, and they with their oldest request.

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "rbee/engine/text/step/sequence.h"

namespace rbee::engine {

// A request as the scheduler sees it.
struct Ticket {
  Ticket(KvBlockPool& pool, std::string the_client, std::string the_user, int32_t the_priority)
      : sequence(pool),
        client(std::move(the_client)),
        user(std::move(the_user)),
        priority(the_priority) {}
  virtual ~Ticket() = default;
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  Sequence sequence;
  int64_t pictures_seen = 0;  // by the tower, for this ticket
  bool held = false;          // its next token cannot be drawn yet, so it has no part of a step
  int64_t steps = 0;          // that it had a part of since it joined
  int64_t last_step = 0;      // the number of the last one
  int64_t evaluated = 0;      // tokens, of all its steps
  bool preempted = false;     // it lost its place and waits
  int64_t passed = 0;         // how many joined meanwhile that stood behind it
  bool patient = false;       // so many did before it joined that it keeps its place for some steps
  const std::string client;
  const std::string user;  // of the client's
  const int32_t priority;  // lower goes first
};
using TicketPtr = std::shared_ptr<Ticket>;

class WaitingQueue {
 public:
  void add(TicketPtr ticket);
  // Of one that lost its place. Such tickets come back in the order opposite to their calls.
  void put_back(TicketPtr ticket);
  // Null when nobody waits.
  TicketPtr front() const;
  // The first one of the lowest priority number that is wanted, of each user the oldest being asked
  // for; null: none.
  TicketPtr front(const std::function<bool(const Ticket&)>& wanted) const;
  // It goes, and its client's turn is over, as its user's. The ticket is one that front() gave.
  void pop(const Ticket& ticket);
  // False when it does not wait.
  bool remove(const Ticket& ticket);
  size_t size() const { return size_; }
  // How many of a client's wait.
  int64_t size_of(const std::string& client) const;

 private:
  struct User {
    std::string name;
    std::deque<TicketPtr> tickets;  // not empty
  };
  struct Client {
    std::string name;
    std::list<User> users;  // not empty; the one whose turn it is first
  };
  struct Level {
    std::deque<TicketPtr> returned;
    std::list<Client> clients;  // the one whose turn it is first
  };
  using Levels = std::map<int32_t, Level>;

  void count(const Ticket& ticket);
  void discount(const Ticket& ticket);
  void drop_if_empty(Levels::iterator level);

  Levels levels_;  // none is empty
  size_t size_ = 0;
  std::map<std::string, int64_t> sizes_;  // of clients, none is 0
};

}  // namespace rbee::engine
