#include "server/worker/job_trace.h"

#include <algorithm>

#include "rbee/core/cat.h"
#include "server/http/tracer.h"

namespace rbee::server {
namespace {

using std::chrono::steady_clock;

}  // namespace

JobTrace::JobTrace() : parent_(current_span()) {
  stage("queue");
}

void JobTrace::set(std::string_view key, SpanValue value) {
  if (on()) attributes_.emplace_back(key, std::move(value));
}

void JobTrace::stage(std::string_view name) {
  if (!on() || (!stages_.empty() && stages_.back().name == name)) return;
  stages_.push_back({std::string(name), steady_clock::now()});
}

void JobTrace::stage_after(std::string_view name, double milliseconds) {
  if (!on()) return;
  const auto length = std::chrono::duration_cast<steady_clock::duration>(
      std::chrono::duration<double, std::milli>(milliseconds));
  stages_.push_back(
      {std::string(name), std::min(stages_.back().begin + length, steady_clock::now())});
}

void JobTrace::finish(std::string_view operation, std::string_view error) {
  if (!on()) return;
  const Time now = steady_clock::now();
  Span work = make_child(parent_, std::string(operation), stages_.front().begin, now);
  ActiveSpan self = parent_;
  self.self.span_id = work.span_id;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Time end = i + 1 < stages_.size() ? stages_[i + 1].begin : now;
    parent_.tracer->record(make_child(self, stages_[i].name, stages_[i].begin, end));
  }
  work.attributes = std::move(attributes_);
  work.attributes.emplace_back("gen_ai.provider.name", "rbee");
  work.failed = !error.empty();
  if (work.failed) work.attributes.emplace_back("error.type", std::string(error));
  parent_.tracer->record(std::move(work));
  parent_ = {};
}

}  // namespace rbee::server
