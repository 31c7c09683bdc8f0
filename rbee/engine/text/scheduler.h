#pragma once
// Which requests share the next step, and with how many tokens each (Yu et al. 2022, "Orca",
// section 3.2; prompts in chunks beside generation: Agrawal et al. 2024, "Sarathi-Serve"). Knows
// sequences and blocks, no model. Used by one thread.
//
// No client holds the others up. One that runs nothing joins at once: where places or blocks are
// missing, a client that has more than its share of them loses what joined last. Where a step's
// time is bounded, a step of n clients takes about as long as n steps of one token, whatever one of
// them has running, and beside a client that has had little so far the others have half of the
// steps.
//
// A ticket waits, then runs: it generates when all but its last token are cached, and is in its
// prompt before. Running tickets keep an order: priority, then who joined first. A prompt stops in
// front of a picture that has not been looked at.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rbee/engine/text/step/step_times.h"
#include "rbee/engine/text/waiting_queue.h"

namespace rbee::engine {

struct SchedulerOptions {
  int32_t max_running = 1;      // tickets that share a step
  int64_t step_tokens = 512;    // tokens of a step at most, unless a picture has more
  int64_t beside_tokens = 128;  // prompt tokens of a step in which tickets generate, at most
  // Tokens of a step, unless a picture has more, of prompts whose logits are wanted: what bounds
  // the logits' memory.
  int64_t scored_tokens = 512;
  // Rows that products take at a time: generation beside prompts is filled up to a multiple.
  int64_t row_tile = 1;
  // Seconds that a step takes where one client runs and others may come, about and at most, but for
  // its least tokens; 0: no step's time is bounded.
  double step_seconds = 0;
};

struct SchedulerCounts {
  uint64_t preemptions = 0;
  uint64_t prefix_queries = 0;  // tokens of tickets that joined
  uint64_t prefix_hits = 0;     // of these, tokens that were in the cache
};

class Scheduler {
 public:
  // The pool outlives the scheduler and holds more tokens than any sequence will have. Throws
  // invalid_argument for an option below 1, or fewer step_tokens than max_running.
  Scheduler(KvBlockPool& pool, const SchedulerOptions& options);

  struct Part {
    TicketPtr ticket;
    int64_t count;  // tokens to evaluate, from sequence.cached on
  };

  // The ticket waits.
  void add(TicketPtr ticket) { waiting_.add(std::move(ticket)); }
  // Who is to join next: null when nobody waits, all places are taken, or the prompts that run are
  // work enough for the next step. Clients that run nothing go first, and have to wait for neither.
  TicketPtr next() const;
  // next() joins: it takes the blocks that hold the beginning of its tokens already, and blocks
  // for the others. False when there are too few blocks.
  bool join();
  // The parts of the next step: one token of each ticket that generates, then prompts. Each has
  // its blocks. Where there are too few, the client with the most loses those of its ticket that
  // comes last in the order, which waits, to be evaluated anew. Where a step's time is bounded and
  // several clients run, each has a token, but for those that rest beside new ones, and the others
  // of those that generate take turns. Empty where all that run stop in front of pictures or are
  // held.
  std::vector<Part> plan();
  // Tokens that a step of these parts has room for beside them.
  int64_t room_beside(std::span<const Part> parts) const;
  // A step with so many tokens of tickets that generate, and of prompts, took so many seconds.
  void note_time(int64_t generated, int64_t prompts, double seconds);
  // Whose picture, sequence.unseen(), is to be looked at beside the next step: of the tickets of
  // the lowest priority number one for which the fewest pictures were; null: nobody's.
  TicketPtr looks() const;
  // The work for it beside a step of these parts, as a number of prompt tokens, at least 1.
  int64_t look_tokens(std::span<const Part> parts) const;
  // After a step that advanced these parts: others may find what is cached now.
  static void publish(std::span<const Part> parts);
  // The ticket leaves, waiting or running; its blocks go back.
  void remove(const Ticket& ticket);

  bool runs(const Ticket& ticket) const;
  const std::vector<TicketPtr>& running() const { return running_; }
  size_t waiting() const { return waiting_.size(); }
  const SchedulerCounts& counts() const { return counts_; }

 private:
  // Tokens of the next step.
  struct Shares {
    int64_t generated;  // of tickets that generate, one of each client at least
    int64_t prompts;    // at most
  };
  // taking: those that have a part of it.
  Shares shares(std::span<const TicketPtr> taking) const;
  Shares shares_of_clients(std::span<const TicketPtr> taking) const;
  Shares shares_of_time(int64_t count) const;
  bool is_shared() const;  // by clients whose steps are bounded
  std::vector<TicketPtr> new_ones() const;
  std::vector<TicketPtr> who_takes_part();
  static std::vector<TicketPtr> whose_turn(std::span<const TicketPtr> taking, int64_t count);
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
  std::vector<TicketPtr> running_;  // in order
  StepTimes times_;
  double busy_ = 0;                     // seconds of all steps
  std::map<std::string, double> seen_;  // busy_ at the last step that a client was there
  int64_t step_ = 0;                    // the number of the last one that was planned
  int64_t rests_ = 0;  // beside new clients others have a part again so many steps later; 0: now
  SchedulerCounts counts_;
};

}  // namespace rbee::engine
