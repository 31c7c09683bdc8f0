#include "rbee/engine/text/scheduler.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

// At least this many prompts share a step's budget before the scheduler lets no more in.
constexpr int64_t kPromptsTogether = 4;
// The least prompt tokens of a step whose time is bounded, however long they take: fewer would
// cost more time than they save. Beside other clients that generate, and if none does.
constexpr int64_t kLeastBeside = 4;
constexpr int64_t kLeastAlone = 16;
// The longest step: step_seconds, or the time of this many steps of one token if that is longer.
constexpr double kMostOnes = 4;
// A client may send again, and still counts, for this many seconds of step time.
constexpr double kSeconds = 10;
// A client is new while it has at most this many requests, waiting ones included, and at most this
// many of its tokens were evaluated. Other clients then skip steps, at most kMostRests in a row,
// unless a step with them takes at most kLittleLonger times as long.
constexpr int64_t kNewRequests = 4;
constexpr int64_t kNewTokens = 256;
constexpr double kLittleLonger = 1.25;
constexpr int64_t kMostRests = 8;
// While the times of wider steps are unknown, a step may generate this many times as many tokens as
// the widest one before.
constexpr int64_t kWider = 2;
// A ticket that newcomers displaced and passed this often goes first when it finds room. It then
// runs for this many steps before it may be displaced again.
constexpr int64_t kMostPassed = 64;
constexpr int64_t kLeastSteps = 32;

int64_t tokens_left(const Ticket& ticket) {
  return ticket.sequence.length() - ticket.sequence.cached;
}

// The first `count` tokens, in the form for comparing sequences; memory: for those with pictures.
std::span<const int32_t> compared(const Sequence& sequence, int64_t count,
                                  std::vector<int32_t>& memory) {
  if (sequence.pictures.empty()) {
    return std::span(sequence.tokens).first(static_cast<size_t>(count));
  }
  return memory = sequence.keys(count);
}

// The most of the `count` tokens after the cached ones that cut no picture.
int64_t uncut(const Sequence& sequence, int64_t count) {
  const PictureSpan* span = sequence.cut_at(sequence.cached + count);
  return span == nullptr ? count : std::max<int64_t>(span->first - sequence.cached, 0);
}

// Nearly `count` of a prompt's `left` tokens. One token alone would be evaluated like a generated
// one and rounded otherwise than in a whole prompt, so neither the chunk nor the rest is one token.
int64_t chunk_of(int64_t count, int64_t left) {
  if (count == 1 && left > 1) ++count;
  return left - count == 1 ? left : count;
}

bool generates(const TicketPtr& ticket) {
  return tokens_left(*ticket) == 1 && ticket->sequence.unseen() == nullptr;
}

// In rounds: from each client the prompt with the fewest tokens left, then its next one, ...
std::vector<Scheduler::Part*> shortest_first(std::vector<Scheduler::Part>& prompts) {
  std::vector<Scheduler::Part*> out;
  out.reserve(prompts.size());
  for (Scheduler::Part& part : prompts) out.push_back(&part);
  std::ranges::stable_sort(out, {}, [](const Scheduler::Part* part) {
    return tokens_left(*part->ticket) - part->count;
  });
  std::map<std::string_view, int> of_client;
  std::map<const Scheduler::Part*, int> rank;
  for (const Scheduler::Part* part : out) rank[part] = of_client[part->ticket->client]++;
  std::ranges::stable_sort(out, {}, [&](const Scheduler::Part* part) { return rank[part]; });
  return out;
}

// Whether the next step goes without it: its token cannot be drawn yet, or its blocks come later.
bool skips(const TicketPtr& ticket) {
  return ticket->held || !ticket->sequence.kv.ready();
}

bool generates_now(const TicketPtr& ticket) {
  return !skips(ticket) && generates(ticket);
}

int64_t generating(std::span<const TicketPtr> tickets) {
  return std::ranges::count_if(tickets, generates_now);
}

bool generates_something(std::span<const TicketPtr> tickets, std::string_view client) {
  return std::ranges::any_of(tickets, [&](const TicketPtr& ticket) {
    return ticket->client == client && generates_now(ticket);
  });
}

int64_t clients_of(std::span<const TicketPtr> tickets) {
  std::set<std::string_view> clients;
  for (const TicketPtr& ticket : tickets) clients.insert(ticket->client);
  return std::ssize(clients);
}

// Of the client with the largest total of `count`, the last ticket that `may` accepts; null if
// there is none. Leaves lower priority numbers than `priority` alone.
template <typename Count, typename May>
TicketPtr last_of_largest(std::span<const TicketPtr> tickets, int32_t priority, Count count,
                          May may) {
  std::map<std::string_view, int64_t> totals;
  for (const TicketPtr& ticket : tickets) totals[ticket->client] += count(*ticket);
  TicketPtr found;
  for (const TicketPtr& ticket : tickets) {
    const int64_t total = totals[ticket->client];
    if (ticket->priority < priority || !may(*ticket, total)) continue;
    if (!found || total >= totals[found->client]) found = ticket;
  }
  return found;
}

int64_t blocks_of(const Ticket& ticket) {
  return std::ssize(ticket.sequence.kv.blocks());
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

// Each client has a token. Further generated tokens and prompt tokens may take as long as the other
// clients' tokens would by themselves.
Scheduler::Shares Scheduler::shares_of_clients(std::span<const TicketPtr> taking) const {
  std::vector<TicketPtr> generating;
  std::ranges::copy_if(taking, std::back_inserter(generating), generates_now);
  const int64_t count = std::ssize(generating), first = clients_of(generating);
  const bool prompts = !std::ranges::all_of(taking, generates);
  const double one = times_.one();
  const double others = one * static_cast<double>(clients_of(taking) - 1);
  const double beside = prompts ? others / 2 : others;
  return {std::clamp(times_.generated_in(one + beside, 0), first, count),
          std::clamp(times_.prompts_in(beside, 0), kLeastBeside, options_.beside_tokens)};
}

// Bounds how long a newcomer waits for the step's end: half as long if several clients' prompts
// are read.
Scheduler::Shares Scheduler::shares_of_time(int64_t count) const {
  const double most = std::max(options_.step_seconds, kMostOnes * times_.one());
  const double reading = is_shared() ? options_.step_seconds / 2 : options_.step_seconds;
  const int64_t least = is_shared() ? kLeastAlone / 2 : kLeastAlone;
  const int64_t fit = std::max(times_.prompts_in(reading, 0), least);
  if (count == 0) return {0, std::min(fit, options_.step_tokens)};
  const int64_t unknown = kWider * times_.most_generated();
  return {std::clamp<int64_t>(times_.generated_in(most, unknown), 1, count),
          std::min(fit, options_.beside_tokens)};
}

Scheduler::Shares Scheduler::shares(std::span<const TicketPtr> taking) const {
  const int64_t count = generating(taking);
  if (is_shared() && count > 0) return shares_of_clients(taking);
  if (is_shared() || (options_.step_seconds > 0 && seen_.size() > 1)) return shares_of_time(count);
  if (count == 0) return {0, options_.step_tokens};
  const int64_t room = std::min(options_.step_tokens - count, options_.beside_tokens);
  const int64_t beyond = (room + count) % options_.row_tile;
  // At least 1, so that a prompt goes on whatever else runs.
  return {count, std::max<int64_t>(room > beyond ? room - beyond : room, 1)};
}

// The tickets of new clients.
std::vector<TicketPtr> Scheduler::new_ones() const {
  struct Had {
    int64_t requests = 0, tokens = 0;
  };
  std::map<std::string_view, Had> clients;
  for (const TicketPtr& ticket : running_) {
    Had& had = clients[ticket->client];
    if (had.requests == 0) had.requests = waiting_.size_of(ticket->client);
    ++had.requests;
    had.tokens += ticket->evaluated;
  }
  std::vector<TicketPtr> out;
  std::ranges::copy_if(running_, std::back_inserter(out), [&](const TicketPtr& ticket) {
    const Had& had = clients[ticket->client];
    return had.requests <= kNewRequests && had.tokens <= kNewTokens;
  });
  return out;
}

// The tickets of the next step: all, or those of new clients. After a step with all, the new ones
// get about as much time by themselves as the others took of it.
std::vector<TicketPtr> Scheduler::participants() {
  const int64_t rests = std::exchange(rests_, 0);
  if (!is_shared() || rests == 1) return running_;
  const std::vector<TicketPtr> taking = new_ones();
  const auto has_part = [](const TicketPtr& ticket) {
    return !skips(ticket) && (generates(ticket) || ticket->sequence.ready() > 0);
  };
  if (std::ssize(taking) == std::ssize(running_) || std::ranges::none_of(taking, has_part)) {
    return running_;
  }
  if (rests > 1) {
    rests_ = rests - 1;
    return taking;
  }
  const auto seconds = [&](std::span<const TicketPtr> tickets) {
    const bool prompts = !std::ranges::all_of(tickets, generates);
    return times_.of(shares(tickets).generated, prompts ? kLeastBeside : 0);
  };
  const double alone = seconds(taking), together = seconds(running_);
  if (together <= kLittleLonger * alone) return running_;
  rests_ =
      std::clamp<int64_t>(std::llround(std::min((together - alone) / alone, 1e6)), 1, kMostRests);
  return taking;
}

bool Scheduler::is_shared() const {
  return options_.step_seconds > 0 && clients_of(running_) > 1;
}

void Scheduler::note_time(int64_t generated, int64_t prompts, double seconds) {
  times_.note(generated, prompts, seconds);
  busy_ += seconds;
  for (const TicketPtr& ticket : running_) seen_[ticket->client] = busy_;
  std::erase_if(seen_, [&](const auto& seen) { return seen.second < busy_ - kSeconds; });
}

bool Scheduler::runs_nothing(const Ticket& ticket) const {
  return std::ranges::find(running_, ticket.client, [](const TicketPtr& t) { return t->client; }) ==
         running_.end();
}

int64_t Scheduler::blocks_for(int64_t tokens) const {
  return (tokens + pool_.block_size() - 1) / pool_.block_size();
}

// If all places are taken: the ticket that gives its place to the newcomer.
TicketPtr Scheduler::displaced_place(const Ticket& newcomer) const {
  return last_of_largest(
      running_, newcomer.priority, [](const Ticket&) { return 1; },
      [](const Ticket&, int64_t total) { return total > 1; });
}

// If too few blocks are left: the ticket that gives up its blocks. The newcomer must not want more
// than its share, or two clients would displace each other forever.
TicketPtr Scheduler::displaced_blocks(const Ticket& newcomer) const {
  const int64_t share = pool_.total() / (clients_of(running_) + 1);
  if (blocks_for(newcomer.sequence.length()) > share) return nullptr;
  return last_of_largest(running_, newcomer.priority, blocks_of,
                         [&](const Ticket& ticket, int64_t total) {
                           return total > share && !(ticket.patient && ticket.steps < kLeastSteps);
                         });
}

bool Scheduler::finds_room(const Ticket& newcomer) const {
  if (full() && !displaced_place(newcomer)) return false;
  const int64_t wanted = blocks_for(newcomer.sequence.length()) + std::ssize(running_);
  return wanted <= pool_.available() || displaced_blocks(newcomer);
}

TicketPtr Scheduler::next() const {
  const TicketPtr first = waiting_.front();
  if (!first) return nullptr;
  if (first->passed < kMostPassed || !runs_nothing(*first)) {
    const TicketPtr newcomer = waiting_.front(
        [&](const Ticket& ticket) { return runs_nothing(ticket) && finds_room(ticket); });
    if (newcomer) return newcomer;
  }
  if (full()) return nullptr;
  const int64_t budget = shares(running_).prompts;
  const int64_t share = std::max<int64_t>(budget / kPromptsTogether, 1);
  int64_t work = 0;
  for (const TicketPtr& ticket : running_) {
    if (!generates(ticket)) work += std::min(ticket->sequence.ready(), share);
  }
  return work < budget ? first : nullptr;
}

// Returns false and changes nothing if there are too few blocks.
bool Scheduler::take_blocks(Ticket& ticket) {
  Sequence& sequence = ticket.sequence;
  std::vector<int32_t> memory;
  // Cached tokens give no logits. At least two tokens are left, see chunk_of().
  const int64_t most =
      std::min(sequence.scores() ? sequence.scored + 1 : sequence.length(), sequence.length() - 1);
  const int64_t found = sequence.kv.adopt(compared(sequence, most, memory));
  // Leave a block to each running ticket, or the newcomer would soon be displaced again.
  if (!sequence.kv.reserve(sequence.length(), CopyTime::later) ||
      pool_.available() < std::ssize(running_)) {
    sequence.kv.release();
    return false;
  }
  sequence.cached = found;
  sequence.draft_cached = std::min(sequence.kv.draft_tokens(), found);
  counts_.prefix_queries += static_cast<uint64_t>(sequence.length());
  counts_.prefix_hits += static_cast<uint64_t>(found);
  return true;
}

bool Scheduler::join() {
  const TicketPtr ticket = next();
  const bool newcomer = runs_nothing(*ticket);
  if (full()) preempt(displaced_place(*ticket));
  while (!take_blocks(*ticket)) {
    const TicketPtr displaced = newcomer ? displaced_blocks(*ticket) : nullptr;
    if (!displaced) return false;
    preempt(displaced);
  }
  if (const TicketPtr first = waiting_.front(); first != ticket && first->preempted) {
    ++first->passed;
  }
  waiting_.pop(*ticket);
  seen_[ticket->client] = busy_;
  ticket->preempted = false;
  ticket->patient = ticket->passed >= kMostPassed;
  ticket->passed = ticket->steps = 0;
  const auto at = std::ranges::upper_bound(
      running_, ticket->priority, {}, [](const TicketPtr& running) { return running->priority; });
  running_.insert(at, ticket);
  return true;
}

void Scheduler::preempt(const TicketPtr& ticket) {
  const TicketPtr held = ticket;
  std::erase(running_, held);
  held->sequence.kv.release();
  held->sequence.cached = 0;
  held->sequence.draft_cached = 0;
  held->preempted = true;
  ++counts_.preemptions;
  waiting_.put_back(held);
}

// Reserves blocks for the next token of all that generate; prompts have had theirs since joining.
// The first ticket in the order keeps its blocks, so that at least one request finishes.
void Scheduler::make_room() {
  const std::vector<TicketPtr> all = running_;
  for (const TicketPtr& ticket : all) {
    while (runs(*ticket) && !ticket->sequence.kv.reserve(ticket->sequence.length())) {
      const auto others = std::span(running_).subspan(std::min<size_t>(running_.size() - 1, 1));
      preempt(last_of_largest(others, running_.back()->priority, blocks_of,
                              [](const Ticket&, int64_t) { return true; }));
    }
  }
}

// If a step's time is bounded and several clients run, they take turns; clients that generate
// nothing come first. Else half of the budget is for the first prompt, so that every prompt gets
// done. The other half is for the prompts with the fewest tokens left, so that none waits for the
// end of a long one.
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
  if (is_shared()) {
    std::ranges::stable_sort(prompts, {}, [&](const Part& part) {
      return std::pair(generates_something(running_, part.ticket->client), part.ticket->last_step);
    });
  }
  give(prompts.front(), is_shared() ? budget : (budget + 1) / 2);
  if (prompts.front().count == 0) {
    // A picture larger than its half, or even than a step, goes first, however long it takes.
    const Sequence& sequence = prompts.front().ticket->sequence;
    prompts.front().count = sequence.cut_at(sequence.cached + 1)->end() - sequence.cached;
    take(prompts.front(), prompts.front().count);
  }
  for (Part* part : shortest_first(prompts)) give(*part, budget);
  std::erase_if(prompts, [](const Part& part) { return part.count == 0; });
}

// In order: each client's ticket whose last step is the longest ago, then, of all others, the
// tickets whose last step is the longest ago.
std::vector<TicketPtr> Scheduler::next_to_generate(std::span<const TicketPtr> taking,
                                                   int64_t count) {
  std::vector<TicketPtr> in_order;
  std::ranges::copy_if(taking, std::back_inserter(in_order), generates_now);
  if (std::ssize(in_order) == count) return in_order;
  std::vector<TicketPtr> by_age = in_order, chosen, others;
  std::ranges::stable_sort(by_age, {}, [](const TicketPtr& ticket) { return ticket->last_step; });
  std::set<std::string_view> clients;
  for (const TicketPtr& ticket : by_age) {
    (clients.insert(ticket->client).second ? chosen : others).push_back(ticket);
  }
  others.resize(static_cast<size_t>(count) - chosen.size());
  std::ranges::copy(others, std::back_inserter(chosen));
  std::erase_if(in_order, [&](const TicketPtr& ticket) {
    return std::ranges::find(chosen, ticket) == chosen.end();
  });
  return in_order;
}

std::vector<Scheduler::Part> Scheduler::plan() {
  make_room();
  ++step_;
  const std::vector<TicketPtr> taking = participants();
  const Shares shares = this->shares(taking);
  std::vector<Part> parts, prompts;
  for (const TicketPtr& ticket : next_to_generate(taking, shares.generated))
    parts.push_back({ticket, 1});
  for (const TicketPtr& ticket : taking) {
    if (skips(ticket) || generates(ticket) || ticket->sequence.ready() <= 0) continue;
    prompts.push_back({ticket, 0});
  }
  share_out(shares.prompts, prompts);
  std::ranges::move(prompts, std::back_inserter(parts));
  for (const Part& part : parts) {
    ++part.ticket->steps;
    part.ticket->evaluated += part.count;
    part.ticket->last_step = step_;
  }
  return parts;
}

int64_t Scheduler::room_beside(std::span<const Part> parts) const {
  const Shares shares = this->shares(running_);
  int64_t room = is_shared() ? shares.generated + shares.prompts : options_.step_tokens;
  for (const Part& part : parts) room -= part.count;
  return std::max<int64_t>(room, 0);  // a picture may have taken more than a step has
}

TicketPtr Scheduler::next_picture() const {
  TicketPtr best;
  for (const TicketPtr& ticket : running_) {
    if (best && ticket->priority != best->priority) break;  // running_ is in order
    if (ticket->sequence.unseen() == nullptr) continue;
    if (!best || ticket->pictures_seen < best->pictures_seen) best = ticket;
  }
  return best;
}

int64_t Scheduler::picture_tokens(std::span<const Part> parts) const {
  int64_t room = shares(running_).prompts;
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
