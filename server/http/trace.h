#pragma once
// Spans of a distributed trace: W3C Trace Context, level 1 (traceparent), and the parts of an
// OpenTelemetry span (Trace API, section "Span").

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rbee::server {

class Tracer;

// The content of a traceparent header. Both ids are lower-case hex, and never all zeros.
struct TraceParent {
  std::string trace_id;  // 32 digits
  std::string span_id;   // 16 digits
  bool sampled = false;
};
// Nothing for a header that does not follow section 3.2.
std::optional<TraceParent> parse_traceparent(std::string_view header);
std::string traceparent(const TraceParent& parent);

// Which spans are recorded (OpenTelemetry's Trace SDK, section "Sampler").
struct TraceSampler {
  bool follows_parent = true;  // use a parent's decision
  double share = 1;            // of all other traces, 0 to 1
};
// Decides by the id's last 8 bytes, as OpenTelemetry's libraries for Go and Python do, so that
// programs with the same share record the same traces.
bool samples(const TraceSampler& sampler, std::string_view trace_id,
             const std::optional<TraceParent>& parent);

// A span that has begun. All its times come from one reading of the calendar clock, so that changes
// of that clock do not put spans out of order.
struct ActiveSpan {
  std::shared_ptr<Tracer> tracer;                    // null: nothing is recorded
  TraceParent self;                                  // without ids if there are none to pass on
  std::string parent_id;                             // empty: the trace begins here
  std::chrono::system_clock::duration day_offset{};  // from the steady clock to the calendar clock
};
// A child of `parent`, else the first span of a new trace.
ActiveSpan begin_span(std::shared_ptr<Tracer> tracer, const std::optional<TraceParent>& parent);

using SpanValue = std::variant<std::string, int64_t, double, std::vector<std::string>>;
enum class SpanKind : uint8_t { internal = 1, server = 2 };  // OTLP's numbers

struct Span {
  std::string trace_id;
  std::string span_id;
  std::string parent_id;
  std::string name;
  SpanKind kind = SpanKind::internal;
  std::chrono::system_clock::time_point begin;
  std::chrono::system_clock::time_point end;
  std::vector<std::pair<std::string, SpanValue>> attributes;
  bool failed = false;
};
// `self` from `begin` to `end`; a child gets a fresh id.
Span make_span(const ActiveSpan& self, std::string name,
               std::chrono::steady_clock::time_point begin,
               std::chrono::steady_clock::time_point end);
Span make_child(const ActiveSpan& parent, std::string name,
                std::chrono::steady_clock::time_point begin,
                std::chrono::steady_clock::time_point end);

// The span of the request that this thread handles; without a tracer outside a TraceScope.
const ActiveSpan& current_span();

class TraceScope {
 public:
  explicit TraceScope(const ActiveSpan& span);  // must outlive the scope
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  const ActiveSpan* const before_;
};

}  // namespace rbee::server
