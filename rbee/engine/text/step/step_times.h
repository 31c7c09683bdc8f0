#pragma once
// What a step costs: seconds of its own, for it reads the weights, seconds for each token that is
// generated, and for each of a prompt.

#include <array>
#include <cstdint>

namespace rbee::engine {

class StepTimes {
 public:
  // A step with so many tokens of sequences that generate, and of prompts, took so long.
  void note(int64_t generated, int64_t prompts, double seconds);
  // Seconds of a step that generates one token; 0 before any was noted.
  double one() const;
  // Seconds of a step with so many of each, as far as is known.
  double of(int64_t generated, int64_t prompts) const;
  // Tokens of sequences that generate in a step of so many seconds, 0 at least; `unknown` where the
  // last steps do not tell.
  int64_t generated_in(double seconds, int64_t unknown) const;
  // The most generated tokens of a step that was noted, 1 at least.
  int64_t most_generated() const { return most_generated_; }
  // Tokens of prompts that take so long, beside others.
  int64_t prompts_in(double seconds, int64_t unknown) const;

 private:
  struct Mean {
    double tokens = 0, seconds = 0;  // of the last steps
    int64_t newest = -1;             // the number of the last one; negative: there was none
  };
  struct Line {
    double start, slope;  // seconds, and seconds a token; 0: it is not known
    double at(double tokens) const;
  };
  Line line() const;

  std::array<Mean, 12> means_;  // of steps that generate 1 token, 2 and 3, 4 to 7 and so on
  double prompt_ = 0;           // seconds of a prompt's token
  int64_t steps_ = 0;
  int64_t most_generated_ = 1;
};

}  // namespace rbee::engine
