#pragma once
// Which requests share the next step, and with how many tokens each (Yu et al. 2022, "Orca",
// section 3.2; prompts in chunks beside generation: Agrawal et al. 2024, "Sarathi-Serve"). Knows
// sequences and blocks, no model. Used by one thread.
//
// A ticket waits, then runs: it generates when all but its last token are cached, and is in its
// prompt before. Running tickets keep an order: priority, then who joined first. A prompt stops in
// front of a picture that has not been looked at.

#include <cstdint>
#include <span>
#include <vector>

#include "rbee/engine/waiting_queue.h"

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
  // work enough for the next step.
  TicketPtr next() const;
  // next() joins: it takes the blocks that hold the beginning of its tokens already, and blocks
  // for the others. False, and nothing changed, when there are too few blocks.
  bool join();
  // The parts of the next step: one token of each ticket that generates, then prompts. Each has
  // its blocks. Where there are too few, tickets that come last in the order lose theirs and wait,
  // to be evaluated anew. Empty where all that run stop in front of pictures or are held.
  std::vector<Part> plan();
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
  int64_t prompt_budget() const;
  void make_room();
  void preempt_last();
  void share_out(int64_t budget, std::vector<Part>& prompts) const;

  KvBlockPool& pool_;
  SchedulerOptions options_;
  WaitingQueue waiting_;
  std::vector<TicketPtr> running_;  // in order
  SchedulerCounts counts_;
};

}  // namespace rbee::engine
