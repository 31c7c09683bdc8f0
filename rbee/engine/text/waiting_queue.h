#pragma once
// Waiting requests in the order in which they get places: lower priority numbers first. Among
// equals, requests that lost their place go first; then clients take turns, each client's users
// take turns, and each user's oldest request goes first.

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
  int64_t pictures_seen = 0;  // pictures that the tower has looked at for this ticket
  bool held = false;          // its next token cannot be drawn yet, so it skips steps
  int64_t steps = 0;          // steps it took part in since it joined
  int64_t last_step = 0;      // number of the last one
  int64_t evaluated = 0;      // tokens, over all its steps
  bool preempted = false;     // it lost its place and waits
  int64_t passed = 0;         // how many later tickets joined before it meanwhile
  bool patient = false;       // so many passed it that it keeps its place for some steps
  const std::string client;
  const std::string user;  // a user of the client
  const int32_t priority;  // lower goes first
};
using TicketPtr = std::shared_ptr<Ticket>;

class WaitingQueue {
 public:
  void add(TicketPtr ticket);
  // For a ticket that lost its place. Such tickets come back in reverse order of these calls.
  void put_back(TicketPtr ticket);
  // Null if none waits.
  TicketPtr front() const;
  // The first wanted ticket of the lowest priority number; of each user only the oldest is
  // considered. Null: none.
  TicketPtr front(const std::function<bool(const Ticket&)>& wanted) const;
  // Removes a ticket that front() gave; its client's and its user's turn is over.
  void pop(const Ticket& ticket);
  // False if it does not wait.
  bool remove(const Ticket& ticket);
  size_t size() const { return size_; }
  // How many tickets of this client wait.
  int64_t size_of(const std::string& client) const;

 private:
  struct User {
    std::string name;
    std::deque<TicketPtr> tickets;  // not empty
  };
  struct Client {
    std::string name;
    std::list<User> users;  // not empty; the next turn is first
  };
  struct Level {
    std::deque<TicketPtr> returned;
    std::list<Client> clients;  // the next turn is first
  };
  using Levels = std::map<int32_t, Level>;

  void count(const Ticket& ticket);
  void discount(const Ticket& ticket);
  void drop_if_empty(Levels::iterator level);

  Levels levels_;  // none is empty
  size_t size_ = 0;
  std::map<std::string, int64_t> sizes_;  // of each client, none is 0
};

}  // namespace rbee::engine
