#pragma once
// Decides which requests share the next step, and with how many tokens each (Yu et al. 2022,
// "Orca", section 3.2; prompts in chunks beside generation: Agrawal et al. 2024, "Sarathi-Serve").
// It knows sequences and blocks, but no model. Used by one thread.
//
// No client blocks the others. A client that runs nothing joins at once: if places or blocks are
// missing, a client above its share of them loses its last request to join. If step time is
// bounded, a step shared by n clients takes about as long as n steps of one token, however much any
// of them runs. Beside a client that has had little so far, the others get half of the time.
//
// A ticket first waits, then runs. It generates once all but its last token are cached; before that
// it is in its prompt. Running tickets are ordered by priority, then by when they joined. A prompt
// stops before a picture that the vision tower has not seen yet.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rbee/engine/text/step/step_times.h"
#include "rbee/engine/text/waiting_queue.h"

namespace rbee::engine {

struct SchedulerOptions {
  int32_t max_running = 1;      // most tickets that share a step
  int64_t step_tokens = 512;    // most tokens of a step, unless a picture has more
  int64_t beside_tokens = 128;  // most prompt tokens of a step in which tickets generate
  // Most tokens of a step, unless a picture has more, from prompts whose logits are wanted: they
  // bound the memory of the logits.
  int64_t scored_tokens = 512;
  // Rows of a matrix product's tile: prompts beside generation fill a step up to a multiple.
  int64_t row_tile = 1;
  // Target time of a step in seconds when one client runs and others may come; a step's least
  // number of tokens may take longer. 0: no bound.
  double step_seconds = 0;
};

struct SchedulerCounts {
  uint64_t preemptions = 0;
  uint64_t prefix_queries = 0;  // tokens of tickets that joined
  uint64_t prefix_hits = 0;     // of these, tokens that were in the cache
};

class Scheduler {
 public:
  // The pool must outlive the scheduler and hold more tokens than any sequence will have. Throws
  // invalid_argument for an option below 1, or for fewer step_tokens than max_running.
  Scheduler(KvBlockPool& pool, const SchedulerOptions& options);

  struct Part {
    TicketPtr ticket;
    int64_t count;  // tokens to evaluate, from sequence.cached on
  };

  // The ticket starts to wait.
  void add(TicketPtr ticket) { waiting_.add(std::move(ticket)); }
  // The next ticket to join. Null if none waits, if all places are taken, or if the running prompts
  // are enough work for the next step. Clients that run nothing go first; the last two limits do
  // not hold for them.
  TicketPtr next() const;
  // Lets next() join: it adopts the cached blocks of its first tokens and reserves blocks for the
  // rest, which are copied later (KvBlockPool::copy_some()). False if there are too few blocks.
  bool join();
  // The parts of the next step: one token of each generating ticket, then prompts. Each part has
  // its blocks. If blocks run out, the client with the most of them loses its last ticket in the
  // order; that ticket waits and is evaluated again. If step time is bounded and several clients
  // run, each client gets a token, unless it rests beside new clients; its other generating tickets
  // take turns. Empty if all running tickets are held, stop before pictures or wait for copies.
  std::vector<Part> plan();
  // How many more tokens a step of these parts has room for.
  int64_t room_beside(std::span<const Part> parts) const;
  // A step with this many generated and prompt tokens took `seconds`.
  void note_time(int64_t generated, int64_t prompts, double seconds);
  // The ticket whose picture, sequence.unseen(), the tower encodes beside the next step: among
  // those of the lowest priority number, the one with the fewest pictures seen. Null: none.
  TicketPtr next_picture() const;
  // How much of it to do beside a step of these parts, in prompt tokens, at least 1.
  int64_t picture_tokens(std::span<const Part> parts) const;
  // Call it after a step of these parts: other tickets may now adopt what is cached.
  static void publish(std::span<const Part> parts);
  // The ticket leaves, waiting or running, and gives back its blocks.
  void remove(const Ticket& ticket);

  bool runs(const Ticket& ticket) const;
  const std::vector<TicketPtr>& running() const { return running_; }
  size_t waiting() const { return waiting_.size(); }
  const SchedulerCounts& counts() const { return counts_; }

 private:
  // Tokens of the next step.
  struct Shares {
    int64_t generated;  // of generating tickets, at least one of each client
    int64_t prompts;    // at most
  };
  // taking: the tickets that take part.
  Shares shares(std::span<const TicketPtr> taking) const;
  Shares shares_of_clients(std::span<const TicketPtr> taking) const;
  Shares shares_of_time(int64_t count) const;
  bool is_shared() const;  // several clients run, and step time is bounded
  std::vector<TicketPtr> new_ones() const;
  std::vector<TicketPtr> participants();
  static std::vector<TicketPtr> next_to_generate(std::span<const TicketPtr> taking, int64_t count);
  bool full() const { return std::ssize(running_) >= options_.max_running; }
  bool runs_nothing(const Ticket& ticket) const;
  bool finds_room(const Ticket& newcomer) const;
  TicketPtr displaced_place(const Ticket& newcomer) const;
  TicketPtr displaced_blocks(const Ticket& newcomer) const;
  int64_t blocks_for(int64_t tokens) const;
  bool take_blocks(Ticket& ticket);
  void make_room();
  void preempt(const TicketPtr& ticket);
  void share_out(int64_t budget, std::vector<Part>& prompts) const;

  KvBlockPool& pool_;
  SchedulerOptions options_;
  WaitingQueue waiting_;
  std::vector<TicketPtr> running_;  // in their order
  StepTimes times_;
  double busy_ = 0;                     // seconds of all steps so far
  std::map<std::string, double> seen_;  // busy_ at the last step of each client
  int64_t step_ = 0;                    // number of the last planned step
  int64_t rests_ = 0;  // steps until older clients take part again beside new ones; 0: now
  SchedulerCounts counts_;
};

}  // namespace rbee::engine
