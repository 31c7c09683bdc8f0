// Draws and cuts by probability mass, compared with ordering the whole list.
#include "rbee/engine/text/sampling/candidates.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "rbee/ops/decode.h"

namespace rbee::engine {
namespace {

using ::testing::ElementsAreArray;

// Flat, peaked, with repeated values, and with most too small to have a probability.
std::vector<std::vector<float>> rows() {
  std::vector<std::vector<float>> out;
  std::mt19937 bits(5);
  std::normal_distribution<float> normal;
  for (const size_t count : {1, 2, 255, 256, 257, 700, 5000}) {
    for (const float deviation : {0.0f, 0.02f, 1.0f, 8.0f, 90.0f}) {
      std::vector<float>& row = out.emplace_back();
      for (size_t i = 0; i < count; ++i) row.push_back(deviation * normal(bits));
      if (count == 700) {
        for (float& value : row) value = std::round(value);
      }
    }
  }
  std::vector<float>& few = out.emplace_back(3000, -500.0f);
  few[2999] = few[7] = 1;
  few[1500] = 2;
  return out;
}

std::vector<Candidate> ordered(const std::vector<float>& row) {
  std::vector<Candidate> out;
  for (size_t i = 0; i < row.size(); ++i) out.push_back({row[i], static_cast<int32_t>(i), 0});
  std::sort(out.begin(), out.end(), likelier);
  const float top = out.front().logit;
  for (Candidate& c : out) c.probability = std::exp(c.logit - top);
  return out;
}

double sum_of(const std::vector<Candidate>& list) {
  double sum = 0;
  for (const Candidate& c : list) sum += c.probability;
  return sum;
}

constexpr double kAlmostAll = 1 - 1e-9;  // closer to 1, the rounding of sums would matter

TEST(Candidates, DrawsWhatIsAtTheNumber) {
  for (const std::vector<float>& row : rows()) {
    std::vector<Candidate> list = ordered(row);
    if (list.size() > size_t{kDrawFront}) {
      std::sort(list.begin() + kDrawFront, list.end(),
                [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
    }
    const double sum = sum_of(list);
    Candidates candidates;
    candidates.take_all(row);
    for (const double number : {0.0, 0.03, 0.41, 0.77, 0.9313, 0.99991, kAlmostAll}) {
      size_t at = 0;
      double mass = 0;
      for (size_t i = 0; i < list.size(); ++i) {
        if (list[i].probability <= 0) continue;
        at = i;
        mass += list[i].probability;
        if (number * sum < mass) break;
      }
      const Candidate drawn = candidates.draw(number);
      EXPECT_EQ(drawn.id, list[at].id) << row.size() << " " << number;
      EXPECT_NEAR(drawn.probability, list[at].probability / sum, 1e-6);
    }
    // Rounding may give a number beyond the whole mass.
    const Candidate last = candidates.draw(1 + 1e-9);
    EXPECT_GT(std::exp(last.logit - list.front().logit), 0.0f) << row.size();
    EXPECT_EQ(candidates.size(), row.size());
  }
}

TEST(Candidates, TopPKeepsTheLikeliestInOrderUpToTheMass) {
  for (const std::vector<float>& row : rows()) {
    const std::vector<Candidate> list = ordered(row);
    const double sum = sum_of(list);
    for (const float p : {0.001f, 0.3f, 0.8f, 0.95f, 0.9999f}) {
      std::vector<int32_t> wanted;
      double mass = 0;
      for (const Candidate& c : list) {
        wanted.push_back(c.id);
        mass += static_cast<float>(c.probability / sum);
        if (mass >= p) break;
      }
      Candidates candidates;
      candidates.take_all(row);
      candidates.cut_top_p(p);
      std::vector<int32_t> kept;
      for (const Candidate& c : candidates.list()) kept.push_back(c.id);
      EXPECT_THAT(kept, ElementsAreArray(wanted)) << row.size() << " " << p;
    }
  }
}

}  // namespace
}  // namespace rbee::engine
