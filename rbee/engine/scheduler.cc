#include "rbee/engine/scheduler.h"

#include <algorithm>

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

// Prompts that share a step's budget at least, before more are let in.
constexpr int64_t kPromptsTogether = 4;

int64_t tokens_left(const Ticket& ticket) {
  return ticket.sequence.length() - ticket.sequence.cached;
}

// The first `count` tokens as others' are compared with them; memory: for those with pictures.
std::span<const int32_t> compared(const Sequence& sequence, int64_t count,
                                  std::vector<int32_t>& memory) {
  if (sequence.pictures.empty()) {
    return std::span(sequence.tokens).first(static_cast<size_t>(count));
  }
  return memory = sequence.keys(count);
}

// The most of `count` tokens behind the cached ones that cut no picture.
int64_t uncut(const Sequence& sequence, int64_t count) {
  const PictureSpan* span = sequence.cut_at(sequence.cached + count);
  return span == nullptr ? count : std::max<int64_t>(span->first - sequence.cached, 0);
}

// Nearly `count` tokens of `left` of a prompt: one alone would be evaluated as a generated one is,
// and rounded otherwise than its prompt in one piece, so neither a chunk nor the rest is one token.
int64_t chunk_of(int64_t count, int64_t left) {
  if (count == 1 && left > 1) ++count;
  return left - count == 1 ? left : count;
}

bool generates(const TicketPtr& ticket) {
  return tokens_left(*ticket) == 1 && ticket->sequence.unseen() == nullptr;
}

}  // namespace

Scheduler::Scheduler(KvBlockPool& pool, const SchedulerOptions& options)
    : pool_(pool), options_(options) {
  check(options.max_running >= 1, "max_running", options.max_running, " is below 1");
  check(options.step_tokens >= options.max_running, "step_tokens", options.step_tokens,
        " is below the ", options.max_running, " requests that share a step");
  check(options.beside_tokens >= 1, "beside_tokens", options.beside_tokens, " is below 1");
  check(options.scored_tokens >= 1, "scored_tokens", options.scored_tokens, " is below 1");
  check(options.row_tile >= 1, "row_tile", options.row_tile, " is below 1");
}

int64_t Scheduler::prompt_budget() const {
  const int64_t generating = std::ranges::count_if(running_, generates);
  if (generating == 0) return options_.step_tokens;
  const int64_t room = std::min(options_.step_tokens - generating, options_.beside_tokens);
  const int64_t beyond = (room + generating) % options_.row_tile;
  // One at least, so that a prompt goes on whatever else runs.
  return std::max<int64_t>(room > beyond ? room - beyond : room, 1);
}

TicketPtr Scheduler::next() const {
  if (running_.size() >= static_cast<size_t>(options_.max_running)) return nullptr;
  const int64_t budget = prompt_budget();
  const int64_t share = std::max<int64_t>(budget / kPromptsTogether, 1);
  int64_t work = 0;
  for (const TicketPtr& ticket : running_) {
    if (!generates(ticket)) work += std::min(ticket->sequence.ready(), share);
  }
  return work < budget ? waiting_.front() : nullptr;
}

bool Scheduler::join() {
  TicketPtr ticket = waiting_.front();
  Sequence& sequence = ticket->sequence;
  std::vector<int32_t> memory;
  // What is in the cache has no logits. Two tokens are left at least, see chunk_of().
  const int64_t most =
      std::min(sequence.scores() ? sequence.scored + 1 : sequence.length(), sequence.length() - 1);
  const int64_t found = sequence.kv.adopt(compared(sequence, most, memory));
  // A block is left to each of the others, or the newcomer would soon be thrown out again.
  const auto spare = static_cast<int64_t>(running_.size());
  if (!sequence.kv.reserve(sequence.length()) || pool_.available() < spare) {
    sequence.kv.release();
    return false;
  }
  sequence.cached = found;
  sequence.draft_cached = std::min(sequence.kv.draft_tokens(), found);
  counts_.prefix_queries += static_cast<uint64_t>(sequence.length());
  counts_.prefix_hits += static_cast<uint64_t>(found);
  waiting_.pop_front();
  const auto at = std::ranges::upper_bound(
      running_, ticket->priority, {}, [](const TicketPtr& running) { return running->priority; });
  running_.insert(at, std::move(ticket));
  return true;
}

void Scheduler::preempt_last() {
  TicketPtr last = std::move(running_.back());
  running_.pop_back();
  last->sequence.kv.release();
  last->sequence.cached = 0;
  last->sequence.draft_cached = 0;
  ++counts_.preemptions;
  waiting_.put_back(std::move(last));
}

// Blocks for the next token of all that generate; prompts have theirs since they joined.
void Scheduler::make_room() {
  for (size_t i = 0; i < running_.size(); ++i) {
    while (i < running_.size() &&
           !running_[i]->sequence.kv.reserve(running_[i]->sequence.length())) {
      preempt_last();
    }
  }
}

// Half of the budget is for the first prompt, so that every prompt comes to its end; the other
// half for those with the fewest tokens left, so that none waits for the end of a long one.
void Scheduler::share_out(int64_t budget, std::vector<Part>& prompts) const {
  if (prompts.empty()) return;
  int64_t scored_budget = options_.scored_tokens;
  const auto take = [&](const Part& part, int64_t count) {
    budget = std::max<int64_t>(budget - count, 0);
    if (part.ticket->sequence.scores()) scored_budget = std::max<int64_t>(scored_budget - count, 0);
  };
  const auto give = [&](Part& part, int64_t most) {
    const Sequence& sequence = part.ticket->sequence;
    int64_t count = std::min({sequence.ready() - part.count, most, budget});
    if (sequence.scores()) count = std::min(count, scored_budget);
    const int64_t before = part.count;
    part.count += count;
    if (part.count > 0 && sequence.pictures.empty()) {
      part.count = chunk_of(part.count, tokens_left(*part.ticket));
    }
    part.count = uncut(sequence, part.count);
    take(part, part.count - before);
  };
  give(prompts.front(), (budget + 1) / 2);
  if (prompts.front().count == 0) {
    // A picture larger than its half, even than a step: it goes first, whatever it takes.
    const Sequence& sequence = prompts.front().ticket->sequence;
    prompts.front().count = sequence.cut_at(sequence.cached + 1)->end() - sequence.cached;
    take(prompts.front(), prompts.front().count);
  }
  std::vector<Part*> shortest;
  shortest.reserve(prompts.size());
  for (Part& part : prompts) shortest.push_back(&part);
  std::ranges::stable_sort(
      shortest, {}, [](const Part* part) { return tokens_left(*part->ticket) - part->count; });
  for (Part* part : shortest) give(*part, budget);
  std::erase_if(prompts, [](const Part& part) { return part.count == 0; });
}

std::vector<Scheduler::Part> Scheduler::plan() {
  make_room();
  std::vector<Part> parts, prompts;
  for (const TicketPtr& ticket : running_) {
    if (ticket->held) continue;
    if (generates(ticket)) {
      parts.push_back({ticket, 1});
    } else if (ticket->sequence.ready() > 0) {
      prompts.push_back({ticket, 0});
    }
  }
  share_out(prompt_budget(), prompts);
  std::ranges::move(prompts, std::back_inserter(parts));
  return parts;
}

TicketPtr Scheduler::looks() const {
  TicketPtr best;
  for (const TicketPtr& ticket : running_) {
    if (best && ticket->priority != best->priority) break;  // running_ is in order
    if (ticket->sequence.unseen() == nullptr) continue;
    if (!best || ticket->pictures_seen < best->pictures_seen) best = ticket;
  }
  return best;
}

int64_t Scheduler::look_tokens(std::span<const Part> parts) const {
  int64_t room = prompt_budget();
  for (const Part& part : parts) {
    if (!generates(part.ticket)) room -= part.count;
  }
  return std::max<int64_t>(room, 1);
}

void Scheduler::publish(std::span<const Part> parts) {
  for (const Part& part : parts) {
    Sequence& sequence = part.ticket->sequence;
    sequence.kv.note_draft(std::min(sequence.draft_cached, sequence.cached));
    std::vector<int32_t> memory;
    sequence.kv.publish(compared(sequence, sequence.cached, memory));
  }
}

bool Scheduler::runs(const Ticket& ticket) const {
  return std::ranges::find(running_, &ticket, &TicketPtr::get) != running_.end();
}

void Scheduler::remove(const Ticket& ticket) {
  const auto at = std::ranges::find(running_, &ticket, &TicketPtr::get);
  if (at == running_.end()) {
    waiting_.remove(ticket);
    return;
  }
  const TicketPtr held = std::move(*at);
  running_.erase(at);
  held->sequence.kv.release();
}

}  // namespace rbee::engine
