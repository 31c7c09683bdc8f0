// The draw of a token and the integers of the step behind it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

using enum DrawStage;
using Chain = std::vector<std::pair<DrawStage, float>>;

// Each row takes the next of the chains.
struct DrawCase {
  const char* name;
  int64_t rows, k;
  std::vector<Chain> chains;
  float spread = 8;     // between the largest value and the least
  float rest = 0.1f;    // mass beyond the values, as a share of theirs
  int64_t missing = 0;  // values at the end that are -infinity
  double number = -1;   // of all rows; below 0: any
};

std::vector<DrawCase> draw_cases() {
  const Chain usual = {{top_k, 40}, {top_p, 0.95f}, {min_p, 0.05f}, {temperature, 0.8f}};
  const Chain warm = {{temperature, 0.7f}, {top_p, 0.9f}};
  const Chain greedy = {{top_k, 1}};
  const std::vector<Chain> all = {
      usual,
      warm,
      greedy,
      {},
      {{temperature, 1.3f}},
      {{min_p, 0.1f}, {temperature, 1.5f}},
      {{top_p, 0.5f}},
      {{top_p, 1}},
      {{temperature, 0.5f}, {top_k, 7}, {min_p, 0.2f}, {top_p, 0.6f}},
      {{min_p, 1}},
      {{top_p, 0}},
      {{top_k, 3}, {temperature, 1e-6f}},
  };
  std::vector<DrawCase> out;
  for (const int64_t k : {1, 2, 5, 40, 64, 255, 256, 1000, 1024}) {
    out.push_back({"each chain", 3 * std::ssize(all), k, all});
    out.push_back({"usual", 1, k, {usual}});
  }
  out.push_back({"flat", 40, 256, all, 1e-3f, 0});
  out.push_back({"ties", 40, 256, all, 0, 0});
  out.push_back({"much beyond", 40, 64, all, 2, 20});
  out.push_back({"nothing beyond", 40, 64, all, 2, 0});
  out.push_back({"missing", 40, 256, all, 5, 0, 200});
  out.push_back({"one that is there", 40, 64, all, 0, 0, 63});
  out.push_back({"the first number", 40, 256, all, 8, 0, 0, 0});
  out.push_back({"the last number", 40, 256, all, 8, 0, 0, 1 - 0x1p-24});
  out.push_back({"many rows", 512, 256, all});
  out.push_back({"no rows", 0, 4, all});
  return out;
}

// Numbers that follow each other without a rule, in [0, 1).
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) * 0x1p-24;
  }

 private:
  uint64_t state_;
};

float scale_at_first_cut(const Chain& chain) {
  float scale = 1;
  for (const auto& [stage, amount] : chain) {
    if (stage != temperature) break;
    scale /= amount;
  }
  return scale;
}

DrawArgs build_draw(const DrawCase& c, Scene& scene) {
  constexpr int64_t kColumns = 5;
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  Numbers any(7 + static_cast<uint64_t>(c.k));
  std::vector<float> values, sums, amounts, numbers;
  std::vector<int32_t> ids, stages;
  for (int64_t row = 0; row < c.rows; ++row) {
    const Chain& chain = c.chains[static_cast<size_t>(row) % c.chains.size()];
    std::vector<float> mine(static_cast<size_t>(c.k));
    for (float& value : mine) value = 3 - c.spread * static_cast<float>(any.next());
    std::fill(mine.end() - static_cast<ptrdiff_t>(std::min(c.missing, c.k)), mine.end(), kLowest);
    std::ranges::sort(mine, std::greater());
    double sum = 0;
    for (const float value : mine) {
      sum += std::exp(double{scale_at_first_cut(chain)} * (double{value} - double{mine[0]}));
    }
    sums.push_back(static_cast<float>(sum * (1 + double{c.rest})));
    values.insert(values.end(), mine.begin(), mine.end());
    for (int64_t i = 0; i < c.k; ++i) ids.push_back(static_cast<int32_t>(any.next() * 1e5));
    for (size_t i = 0; i < kDrawStages; ++i) {
      const bool there = i < chain.size();
      stages.push_back(static_cast<int32_t>(there ? chain[i].first : none));
      amounts.push_back(there ? chain[i].second : 0);
    }
    for (int64_t i = 0; i < kColumns; ++i) {
      const double number = any.next();
      numbers.push_back(static_cast<float>(c.number < 0 ? number : c.number));
    }
  }
  const int32_t turn[] = {3};
  return {.values = scene.input_of<float>({c.rows, c.k}, values),
          .ids = scene.input_of<int32_t>({c.rows, c.k}, ids),
          .sum = scene.input_of<float>({c.rows}, sums),
          .stages = scene.input_of<int32_t>({c.rows, kDrawStages}, stages),
          .amounts = scene.input_of<float>({c.rows, kDrawStages}, amounts),
          .numbers = scene.input_of<float>({c.rows, kColumns}, numbers),
          .turn = scene.input_of<int32_t>({1}, turn),
          .drawn = scene.output({{c.rows}}, DType::i32)};
}

// What is left of the candidates is a list of weights; a cut makes a shorter one.
int64_t drawn_place(const std::vector<double>& values, double sum, const Chain& chain,
                    double number) {
  size_t left = values.size();
  double scale = 1, mass = sum;
  const auto weights = [&] {
    std::vector<double> out(left);
    for (size_t i = 0; i < left; ++i) out[i] = std::exp(scale * (values[i] - values[0]));
    return out;
  };
  const auto total = [&] {
    double out = 0;
    for (const double weight : weights()) out += weight;
    return out;
  };
  bool whole = true;
  for (const auto& [stage, amount] : chain) {
    if (stage == temperature) {
      scale /= double{amount};
      if (!whole) mass = total();
      continue;
    }
    const std::vector<double> all = weights();
    size_t keep = 0;
    double front = 0;
    for (; keep < left; ++keep) {
      if (stage == top_k && static_cast<double>(keep) >= double{amount}) break;
      if (stage == top_p && keep > 0 && front >= double{amount} * mass) break;
      if (stage == min_p && scale * (values[keep] - values[0]) < std::log(double{amount})) break;
      front += all[keep];
    }
    left = std::max<size_t>(keep, 1);
    whole = false;
    mass = total();
  }
  double front = 0;
  const std::vector<double> all = weights();
  for (size_t i = 0; i < left; ++i) {
    front += all[i];
    if (front > number * mass) return static_cast<int64_t>(i);
  }
  return static_cast<int64_t>(left) - 1;
}

HostArray draw_formula(const DrawCase& c, const std::vector<HostArray>& in) {
  HostArray out = host_zeros({c.rows});
  for (int64_t row = 0; row < c.rows; ++row) {
    const auto first = in[0].values.begin() + row * c.k;
    const std::vector<double> values(first, first + c.k);
    const Chain& chain = c.chains[static_cast<size_t>(row) % c.chains.size()];
    const int64_t at = drawn_place(values, in[2][row], chain, in[5][row * in[5].size(1) + 3]);
    out[row] = in[1][row * c.k + at];
  }
  return out;
}

OpTable draw_table() {
  OpTable out("draw");
  for (const DrawCase& c : draw_cases()) {
    out.add<DrawArgs>(&KernelTable::draw,
                      {.name = cat(c.name, " (", c.rows, ", ", c.k, ")"),
                       .family = Family::exact,
                       .build = [c](Scene& scene) { return build_draw(c, scene); },
                       .formula =
                           [c](const std::vector<HostArray>& in) {
                             return std::vector<HostArray>{draw_formula(c, in)};
                           }});
  }
  return out;
}

struct StepCase {
  int64_t rows, width, block_size, found;
};

std::vector<HostArray> next_step_formula(const StepCase& c, const std::vector<HostArray>& in) {
  HostArray positions = in[0], slots = in[1], lengths = in[2], turn = in[4];
  HostArray shown = in[6];
  for (int64_t row = 0; row < c.rows; ++row) {
    if (slots[row] < 0) continue;
    positions[row] += 1;
    lengths[row] += 1;
    const auto position = static_cast<int64_t>(positions[row]);
    const int64_t block = position / c.block_size, rest = position % c.block_size;
    slots[row] = block < c.width
                     ? in[3][row * c.width + block] * static_cast<double>(c.block_size) +
                           static_cast<double>(rest)
                     : -1;
  }
  const auto first = static_cast<int64_t>(turn[0]) % 2 * c.found;
  for (int64_t i = 0; i < c.found; ++i) shown[first + i] = in[5][i];
  turn[0] += 1;
  return {positions, slots, lengths, turn, shown};
}

OpTable next_step_table() {
  OpTable out("next_step");
  for (const StepCase& c : {StepCase{1, 4, 32, 2},
                            {1, 1, 1, 1},
                            {5, 3, 4, 10},
                            {8, 256, 32, 2600},
                            {300, 16, 16, 4097},
                            {512, 128, 32, 262656},
                            {0, 4, 32, 0}}) {
    const auto build = [c](Scene& scene) {
      // Past the table's end, too.
      const auto most = static_cast<double>(c.width * c.block_size + 2);
      NextStepArgs args;
      args.positions = scene.in_out({{c.rows}}, DType::i32, {0, most});
      args.slots = scene.in_out({{c.rows}}, DType::i32, {-2, 9});
      args.lengths = scene.in_out({{c.rows}}, DType::i32, {0, most});
      args.block_table = scene.input({{c.rows, c.width}}, DType::i32, {0, 5000});
      args.block_size = c.block_size;
      args.turn = scene.in_out({{1}}, DType::i32, {0, 1000});
      args.found = scene.input({{c.found}}, DType::i32, {-1e6, 1e6});
      args.shown = scene.in_out({{2, c.found}}, DType::i32, {0, 9});
      return args;
    };
    out.add<NextStepArgs>(
        &KernelTable::next_step,
        {.name = cat("(", c.rows, ", ", c.width, ") of ", c.block_size, ", found ", c.found),
         .family = Family::exact,
         .build = build,
         .formula = [c](const std::vector<HostArray>& in) { return next_step_formula(c, in); }});
  }
  return out;
}

const RegisterOp kDraw(draw_table);
const RegisterOp kNextStep(next_step_table);

}  // namespace
}  // namespace rbee::harness
