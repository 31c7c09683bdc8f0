#pragma once
// The spans of one job: one for the model's work (OpenTelemetry's semantic conventions 1.37, "GenAI
// spans"), and below it one for each stage. Not thread-safe.

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/trace.h"

namespace rbee::server {

class JobTrace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A child of current_span(). A job begins in the stage "queue".
  JobTrace();

  bool on() const { return parent_.tracer != nullptr; }
  void set(std::string_view key, SpanValue value);
  // Ends the current stage and begins this one; does nothing if this is the current one.
  void stage(std::string_view name);
  // Begins a stage this long after the previous stage began, but not later than now.
  void stage_after(std::string_view name, double milliseconds);
  // Records all spans, once. operation: "chat" or the like. error: a code; empty: success.
  void finish(std::string_view operation, std::string_view error);

 private:
  struct Stage {
    std::string name;
    Time begin;
  };

  ActiveSpan parent_;
  std::vector<Stage> stages_;
  std::vector<std::pair<std::string, SpanValue>> attributes_;
};

}  // namespace rbee::server
