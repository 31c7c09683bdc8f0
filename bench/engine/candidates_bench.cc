// Milliseconds of what a sampler does with a whole row of 128,256 logits, of normal distributions
// with several deviations: candidates_bench. The flatter a row, the further down it has to look.

#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "rbee/engine/text/sampling/candidates.h"

namespace {

using rbee::engine::Candidates;

constexpr size_t kVocabulary = 128256;
constexpr int kRounds = 20;

template <typename Step>
double milliseconds(const Step& step) {
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < kRounds; ++round) step(round);
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - start;
  return all.count() / kRounds;
}

}  // namespace

int main() {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  for (const float deviation : {0.02f, 1.0f, 3.0f}) {
    std::vector<float> row(kVocabulary);
    for (float& logit : row) logit = deviation * normal(bits);
    Candidates all;
    all.take_all(row);
    const double draw = milliseconds([&](int round) { all.draw((round + 0.5) / kRounds); });
    const double nucleus = milliseconds([&](int) {
      Candidates candidates;
      candidates.take_all(row);
      candidates.cut_top_p(0.9f);
    });
    std::printf("deviation %4.2f: draw %6.2f ms, top_p 0.9 %6.2f ms\n", deviation, draw, nucleus);
  }
}
