#include "server/http/tracer.h"

#include <algorithm>
#include <array>

#include "rbee/core/cat.h"
#include "rbee/core/log.h"

namespace rbee::server {
namespace {

using std::chrono::milliseconds;

constexpr int kErrorStatus = 2;  // STATUS_CODE_ERROR

std::string value_json(const SpanValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return cat("{\"stringValue\":", json_quote(*text), "}");
  }
  // 64-bit numbers are strings in protobuf's JSON.
  if (const auto* number = std::get_if<int64_t>(&value)) {
    return cat("{\"intValue\":\"", *number, "\"}");
  }
  if (const auto* number = std::get_if<double>(&value))
    return cat("{\"doubleValue\":", *number, "}");
  std::string out = "{\"arrayValue\":{\"values\":[";
  for (const std::string& text : std::get<std::vector<std::string>>(value)) {
    out += cat(out.ends_with('[') ? "" : ",", "{\"stringValue\":", json_quote(text), "}");
  }
  return out + "]}}";
}

std::string attribute_json(std::string_view key, const SpanValue& value) {
  return cat("{\"key\":", json_quote(key), ",\"value\":", value_json(value), "}");
}

int64_t nanoseconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::string span_json(const Span& span) {
  std::string out = cat("{\"traceId\":\"", span.trace_id, "\",\"spanId\":\"", span.span_id, "\"");
  if (!span.parent_id.empty()) out += cat(",\"parentSpanId\":\"", span.parent_id, "\"");
  out += cat(",\"name\":", json_quote(span.name), ",\"kind\":", static_cast<int>(span.kind),
             ",\"startTimeUnixNano\":\"", nanoseconds_of(span.begin), "\",\"endTimeUnixNano\":\"",
             nanoseconds_of(span.end), "\",\"attributes\":[");
  for (const auto& [key, value] : span.attributes) {
    out += cat(out.ends_with('[') ? "" : ",", attribute_json(key, value));
  }
  out += "]";
  if (span.failed) out += cat(",\"status\":{\"code\":", kErrorStatus, "}");
  return out + "}";
}

// The specification's statuses; all other refusals are final.
bool may_send_again(int status) {
  constexpr std::array<int, 4> kAgain = {429, 502, 503, 504};
  return std::find(kAgain.begin(), kAgain.end(), status) != kAgain.end();
}

}  // namespace

Tracer::Tracer(TracerOptions options)
    : options_(std::move(options)), client_({.headers = options_.headers, .tls = options_.tls}) {
  thread_ = std::thread([this] { loop(); });
}

Tracer::~Tracer() {
  stop(milliseconds(0));
}

bool Tracer::samples(std::string_view trace_id, const std::optional<TraceParent>& parent) const {
  return server::samples(options_.sampler, trace_id, parent);
}

void Tracer::record(Span span) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (queue_.size() < options_.max_queued && !stopping_) {
      queue_.push_back(std::move(span));
      if (queue_.size() == 1 || queue_.size() == options_.max_batch) changed_.notify_all();
      return;
    }
  } catch (const std::bad_alloc&) {  // as if the queue were full
  }
  ++counts_.dropped;
}

void Tracer::stop(milliseconds patience) {
  if (!thread_.joinable()) return;
  {
    Lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, patience, [&] { return over_; });
  }
  client_.cancel();
  thread_.join();
  const std::lock_guard lock(mutex_);
  counts_.dropped += queue_.size();
  queue_.clear();
}

TracerCounts Tracer::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void Tracer::loop() {
  Lock lock(mutex_);
  const auto stopping = [&] { return stopping_; };
  const auto full = [&] { return stopping_ || queue_.size() >= options_.max_batch; };
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) break;
    if (pause_ > milliseconds(0)) {
      changed_.wait_for(lock, pause_, stopping);
    } else {
      changed_.wait_for(lock, options_.delay, full);
    }
    send_batch(lock);
    if (stopping_ && pause_ > milliseconds(0)) break;  // the collector does not answer
  }
  over_ = true;
  changed_.notify_all();
}

void Tracer::send_batch(Lock& lock) {
  const auto count = static_cast<int64_t>(std::min(queue_.size(), options_.max_batch));
  const std::vector<Span> batch(queue_.begin(), queue_.begin() + count);
  lock.unlock();
  int status = 0;
  std::string problem;
  try {
    status = client_.post(options_.endpoint, "", message(batch), options_.timeout);
    if (status < 200 || status > 299) problem = cat("HTTP status ", status);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  lock.lock();
  note(problem);
  if (!problem.empty() && (status == 0 || may_send_again(status))) {
    pause_ = std::clamp(2 * pause_, options_.retry, options_.most_retry);
    return;
  }
  pause_ = milliseconds(0);
  (problem.empty() ? counts_.sent : counts_.refused) += static_cast<uint64_t>(count);
  queue_.erase(queue_.begin(), queue_.begin() + count);
}

void Tracer::note(const std::string& problem) {
  if (problem.empty() == reached_) return;
  reached_ = problem.empty();
  if (reached_) {
    log(LogLevel::info, "the collector takes spans again");
  } else {
    log(LogLevel::warn, "the collector takes no spans", {{"error", problem}});
  }
}

std::string Tracer::message(const std::vector<Span>& spans) const {
  std::string out = "{\"resourceSpans\":[{\"resource\":{\"attributes\":[";
  for (const auto& [key, value] : options_.resource) {
    out += cat(out.ends_with('[') ? "" : ",", attribute_json(key, value));
  }
  out += cat("]},\"scopeSpans\":[{\"scope\":{\"name\":\"rbee\",\"version\":",
             json_quote(options_.version), "},\"spans\":[");
  for (const Span& span : spans) out += cat(out.ends_with('[') ? "" : ",", span_json(span));
  return out + "]}]}]}";
}

std::string trace_metrics(const std::shared_ptr<Tracer>& tracer) {
  if (!tracer) return {};
  const TracerCounts counts = tracer->counts();
  std::string out =
      "# HELP rbee_trace_spans_total Spans of traces, by what became of them.\n"
      "# TYPE rbee_trace_spans_total counter\n";
  for (const auto& [outcome, count] :
       {std::pair{"sent", counts.sent}, std::pair{"refused", counts.refused},
        std::pair{"dropped", counts.dropped}}) {
    out += cat("rbee_trace_spans_total{outcome=\"", outcome, "\"} ", count, "\n");
  }
  return out;
}

}  // namespace rbee::server
