#include "rbee/engine/text/draft/drafter.h"

#include <algorithm>

#include "rbee/core/log.h"

namespace rbee::engine {
namespace {

LlmJob& job_of(const Scheduler::Part& part) {
  return static_cast<LlmJob&>(*part.ticket);
}

bool generates(const Scheduler::Part& part) {
  return part.ticket->sequence.cached + 1 == part.ticket->sequence.length();
}

}  // namespace

void Drafter::add_drafts(Parts& parts, const Scheduler& scheduler) {
  const int64_t running = std::ssize(scheduler.running());
  const int64_t room = scheduler.room_beside(parts);
  if (model_) {
    draft_by_model(parts, running, room);
  } else {
    draft_from_texts(parts, running, room);
  }
  for (Scheduler::Part& part : parts) part.count += job_of(part).drafted();
}

void Drafter::draft_from_texts(Parts& parts, int64_t running, int64_t room) {
  for (const Scheduler::Part& part : parts) {
    LlmJob& job = job_of(part);
    if (!job.drafts_ahead() || !generates(part)) continue;
    job.draft_from_text(job.draft_room(std::min<int64_t>(room, kMaxDrafts)));
    if (job.drafted() == 0) continue;
    if (!spares(running) || !job.sequence.kv.reserve(job.sequence.length())) {
      job.drop_drafts();
      continue;
    }
    room -= job.drafted();
  }
}

void Drafter::draft_by_model(Parts& parts, int64_t running, int64_t room) {
  std::vector<DraftModel::Place> places;
  for (const Scheduler::Part& part : parts) {
    LlmJob& job = job_of(part);
    Sequence& sequence = job.sequence;
    if (!job.drafts_ahead()) continue;
    if (!generates(part)) {
      // Prompts go along, so that the first draft token does not wait for a whole one.
      places.push_back({&job, sequence.cached + part.count, 0});
      continue;
    }
    const int64_t count = job.draft_room(std::min<int64_t>(room, kMaxDrafts));
    if (count == 0 || !spares(running) || !sequence.kv.reserve(sequence.length() + count)) continue;
    places.push_back({&job, sequence.length(), count});
    room -= count;
  }
  try {
    model_->draft(places);
  } catch (const Error& error) {
    if (error.code() == Code::device) throw;
    log(LogLevel::warn, "the draft model failed", {{"error", error.what()}});
    for (const DraftModel::Place& place : places) {
      place.job->drop_drafts();
      place.job->pause_drafts();
    }
  }
}

}  // namespace rbee::engine
