#include "server/http/trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "rbee/core/cat.h"
#include "server/http/ids.h"

namespace rbee::server {
namespace {

using std::chrono::steady_clock;
using std::chrono::system_clock;

constexpr size_t kTraceIdBytes = 16;
constexpr size_t kSpanIdBytes = 8;
constexpr size_t kHeaderSize = 55;  // of version 00
constexpr unsigned kSampled = 1;

thread_local const ActiveSpan* current = nullptr;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

unsigned digit(char c) {
  return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
}

system_clock::time_point day_time(const ActiveSpan& span, steady_clock::time_point time) {
  return system_clock::time_point(
      std::chrono::duration_cast<system_clock::duration>(time.time_since_epoch()) +
      span.day_offset);
}

}  // namespace

// Later versions may have more after the flags.
std::optional<TraceParent> parse_traceparent(std::string_view header) {
  const bool first = header.starts_with("00-");
  if (header.size() < kHeaderSize || (first && header.size() != kHeaderSize)) return std::nullopt;
  if (header.size() > kHeaderSize && header[kHeaderSize] != '-') return std::nullopt;
  const std::string_view version = header.substr(0, 2);
  const std::string_view trace_id = header.substr(3, 32);
  const std::string_view span_id = header.substr(36, 16);
  const std::string_view flags = header.substr(53, 2);
  const bool dashes = header[2] == '-' && header[35] == '-' && header[52] == '-';
  if (!dashes || !is_hex(version) || version == "ff" || !is_id(trace_id) || !is_id(span_id) ||
      !is_hex(flags)) {
    return std::nullopt;
  }
  return TraceParent{.trace_id = std::string(trace_id),
                     .span_id = std::string(span_id),
                     .sampled = (digit(flags[1]) & kSampled) != 0};
}

std::string traceparent(const TraceParent& parent) {
  return cat("00-", parent.trace_id, "-", parent.span_id, parent.sampled ? "-01" : "-00");
}

bool samples(const TraceSampler& sampler, std::string_view trace_id,
             const std::optional<TraceParent>& parent) {
  if (sampler.follows_parent && parent) return parent->sampled;
  if (sampler.share >= 1) return true;
  uint64_t low = 0;
  std::from_chars(trace_id.data() + kTraceIdBytes, trace_id.data() + trace_id.size(), low, 16);
  return low < static_cast<uint64_t>(std::ldexp(sampler.share, 64));
}

ActiveSpan begin_span(std::shared_ptr<Tracer> tracer, const std::optional<TraceParent>& parent) {
  ActiveSpan span;
  span.tracer = std::move(tracer);
  span.self = {.trace_id = parent ? parent->trace_id : random_hex(kTraceIdBytes),
               .span_id = random_hex(kSpanIdBytes),
               .sampled = true};
  if (parent) span.parent_id = parent->span_id;
  span.day_offset =
      system_clock::now().time_since_epoch() -
      std::chrono::duration_cast<system_clock::duration>(steady_clock::now().time_since_epoch());
  return span;
}

Span make_span(const ActiveSpan& self, std::string name, steady_clock::time_point begin,
               steady_clock::time_point end) {
  Span span;
  span.trace_id = self.self.trace_id;
  span.span_id = self.self.span_id;
  span.parent_id = self.parent_id;
  span.name = std::move(name);
  span.begin = day_time(self, begin);
  span.end = day_time(self, end);
  return span;
}

Span make_child(const ActiveSpan& parent, std::string name, steady_clock::time_point begin,
                steady_clock::time_point end) {
  Span span = make_span(parent, std::move(name), begin, end);
  span.parent_id = std::exchange(span.span_id, random_hex(kSpanIdBytes));
  return span;
}

const ActiveSpan& current_span() {
  static const ActiveSpan none;
  return current != nullptr ? *current : none;
}

TraceScope::TraceScope(const ActiveSpan& span) : before_(std::exchange(current, &span)) {}

TraceScope::~TraceScope() {
  current = before_;
}

}  // namespace rbee::server
