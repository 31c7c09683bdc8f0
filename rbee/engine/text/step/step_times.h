#pragma once
// The cost of a step: a fixed time, because it reads the weights, and a time for each generated
// token and for each prompt token.

#include <array>
#include <cstdint>

namespace rbee::engine {

class StepTimes {
 public:
  // A step with this many generated and prompt tokens took `seconds`.
  void note(int64_t generated, int64_t prompts, double seconds);
  // Seconds of a step that generates one token; 0 before any was noted.
  double one() const;
  // Estimated seconds of a step with these tokens.
  double of(int64_t generated, int64_t prompts) const;
  // How many tokens a step can generate in `seconds`, at least 0; `unknown` if the last steps do
  // not tell.
  int64_t generated_in(double seconds, int64_t unknown) const;
  // The most generated tokens of a noted step, at least 1.
  int64_t most_generated() const { return most_generated_; }
  // How many prompt tokens fit into `seconds` beside other work.
  int64_t prompts_in(double seconds, int64_t unknown) const;

 private:
  struct Mean {
    double tokens = 0, seconds = 0;  // of the last steps
    int64_t newest = -1;             // number of the last such step; negative: there was none
  };
  struct Line {
    double start, slope;  // seconds, and seconds a token; 0: unknown
    double at(double tokens) const;
  };
  Line line() const;

  std::array<Mean, 12> means_;  // of steps that generate 1 token, 2 and 3, 4 to 7 and so on
  double prompt_ = 0;           // seconds of a prompt token
  int64_t steps_ = 0;
  int64_t most_generated_ = 1;
};

}  // namespace rbee::engine
