#pragma once
// The spans of one job: one for the model's work (OpenTelemetry's semantic conventions 1.37, "GenAI
// spans"), and below it one for each of its stages. Not thread-safe.

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/trace.h"

namespace rbee::server {

class JobTrace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Below current_span(). A job begins in the stage "queue".
  JobTrace();

  bool on() const { return parent_.tracer != nullptr; }
  void set(std::string_view key, SpanValue value);
  // The stage that runs ends, and this one begins; nothing when it runs already.
  void stage(std::string_view name);
  // Begins a stage so long after the one before began, and not later than now.
  void stage_after(std::string_view name, double milliseconds);
  // Records all, once. name: "chat" and the like. error: a code; empty: it went well.
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
