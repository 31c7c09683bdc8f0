// Drawing a token, and the inputs of the step after it.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

using enum DrawStage;
using Chain = std::vector<std::pair<DrawStage, float>>;

// Each row uses the next chain.
struct DrawCase {
  const char* name;
  int64_t rows, n, k;
  std::vector<Chain> chains;
  float spread = 8;     // between the largest value and the least
  int64_t missing = 0;  // values at the end that are -infinity
  double number = -1;   // for all rows; below 0: any
  int bans = 0;         // of each row
  bool gaps = false;    // between the rows of x
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
      {{top_p, 0.97f}},
      {{temperature, 0.5f}, {top_k, 7}, {min_p, 0.2f}, {top_p, 0.6f}},
      {{min_p, 1}},
      {{top_p, 0}},
      {{top_k, 3}, {temperature, 1e-6f}},
  };
  const std::vector<Chain> whole = {{}, {{temperature, 1.3f}}, {{temperature, 0.6f}}};
  std::vector<DrawCase> out;
  for (const int64_t n : {1, 2, 5, 40, 247, 248, 249, 255, 256}) {
    out.push_back({"each chain", 3 * std::ssize(all), n, n, all});
    out.push_back({.name = "bans", .rows = 24, .n = n, .k = n, .chains = all, .bans = 3});
  }
  for (const int64_t n : {257, 3000, 49152, 50257}) {
    out.push_back({"each chain", 2 * std::ssize(all), n, 256, all, 20});
    out.push_back({"whole rows", 6, n, 256, whole, 4});
    out.push_back({.name = "whole rows, bans",
                   .rows = 6,
                   .n = n,
                   .k = 256,
                   .chains = whole,
                   .spread = 4,
                   .bans = 8,
                   .gaps = true});
  }
  out.push_back({"usual", 1, 128256, 256, {usual}, 25});
  out.push_back({"flat", 6, 2000, 256, whole, 1e-3f});
  out.push_back({"ties", 24, 600, 256, all, 0});
  out.push_back({"more top logits", 24, 3000, 1024, all, 12});
  out.push_back({"missing", 24, 700, 256, all, 5, 600});
  out.push_back({"one that is there", 24, 300, 256, all, 5, 299});
  out.push_back({"the first number", 24, 700, 256, all, 8, 0, 0});
  out.push_back({"the last number", 24, 700, 256, all, 8, 0, 1 - 0x1p-24});
  out.push_back({.name = "all banned", .rows = 24, .n = 4, .k = 4, .chains = all, .bans = 8});
  out.push_back({"many rows", 512, 1000, 256, all, 8});
  out.push_back({"no rows", 0, 4, 4, all});
  return out;
}

// Irregular numbers in [0, 1).
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) * 0x1p-24;
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() * static_cast<double>(n)); }

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

constexpr float kNone = -std::numeric_limits<float>::infinity();
constexpr int64_t kColumns = 5;

// The inputs of the operation for one row.
struct DrawRow {
  std::vector<float> x;
  std::vector<int32_t> order;  // indices of x, the largest value first
  float sum;
  std::array<int32_t, kDrawBans> banned;
};

DrawRow make_row(const DrawCase& c, const Chain& chain, Numbers& any) {
  DrawRow out;
  out.x.resize(static_cast<size_t>(c.n));
  for (float& value : out.x) value = 3 - c.spread * static_cast<float>(any.next());
  for (int64_t i = 0; i < c.missing; ++i) {
    const auto at = static_cast<size_t>((i * 7 + 2) % c.n);
    out.x[at] = i % 2 == 0 ? kNone : std::nanf("");
  }
  out.order.resize(out.x.size());
  std::iota(out.order.begin(), out.order.end(), 0);
  const auto value = [&](int32_t id) {
    const float x = out.x[static_cast<size_t>(id)];
    return std::isnan(x) ? kNone : x;
  };
  std::ranges::stable_sort(out.order, std::greater(), value);
  const double top = value(out.order[0]);
  double sum = 0;
  for (const float x : out.x) {
    if (x > kNone) sum += std::exp(double{scale_at_first_cut(chain)} * (double{x} - top));
  }
  out.sum = static_cast<float>(sum);
  out.banned.fill(-1);
  for (int i = 0; i < c.bans; ++i) {
    // Likely tokens and others; some are outside the vocabulary.
    const auto place = static_cast<size_t>(any.below(i % 2 == 0 ? std::min<int64_t>(c.n, 9) : c.n));
    const int32_t id = i == 5 ? static_cast<int32_t>(c.n) + 7 : out.order[place];
    const bool known = std::ranges::find(out.banned, id) != out.banned.end();
    if (!known) *std::ranges::find(out.banned, -1) = id;
  }
  return out;
}

DrawArgs build_draw(const DrawCase& c, Scene& scene) {
  Numbers any(7 + static_cast<uint64_t>(c.n + c.bans));
  const int64_t wide = c.gaps ? c.n + 5 : c.n;
  std::vector<float> x, values, sums, amounts, numbers;
  std::vector<int32_t> ids, stages, banned;
  for (int64_t row = 0; row < c.rows; ++row) {
    const Chain& chain = c.chains[static_cast<size_t>(row) % c.chains.size()];
    const DrawRow mine = make_row(c, chain, any);
    x.insert(x.end(), mine.x.begin(), mine.x.end());
    x.resize(static_cast<size_t>((row + 1) * wide), 99);
    for (int64_t i = 0; i < c.k; ++i) {
      const int32_t id = mine.order[static_cast<size_t>(i)];
      const float value = mine.x[static_cast<size_t>(id)];
      values.push_back(std::isnan(value) ? kNone : value);
      ids.push_back(id);
    }
    sums.push_back(mine.sum);
    banned.insert(banned.end(), mine.banned.begin(), mine.banned.end());
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
  View rows = scene.input_of<float>({c.rows, wide}, x);
  rows.sizes[1] = c.n;
  return {.x = rows,
          .values = scene.input_of<float>({c.rows, c.k}, values),
          .ids = scene.input_of<int32_t>({c.rows, c.k}, ids),
          .sum = scene.input_of<float>({c.rows}, sums),
          .stages = scene.input_of<int32_t>({c.rows, kDrawStages}, stages),
          .amounts = scene.input_of<float>({c.rows, kDrawStages}, amounts),
          .banned = scene.input_of<int32_t>({c.rows, kDrawBans}, banned),
          .numbers = scene.input_of<float>({c.rows, kColumns}, numbers),
          .turn = scene.input_of<int32_t>({1}, turn),
          .drawn = scene.output({{c.rows}}, DType::i32)};
}

// Tokens with their logits, in the order of the operation's definition; each cut shortens the
// list.
using Tokens = std::vector<std::pair<double, int64_t>>;

Tokens tokens_in_order(const DrawCase& c, const std::vector<HostArray>& in, int64_t row) {
  const auto banned = [&](int64_t id) {
    const auto first = in[6].values.begin() + row * kDrawBans;
    return std::count(first, first + kDrawBans, static_cast<double>(id)) > 0;
  };
  Tokens out;
  for (int64_t i = 0; i < c.n; ++i) {
    const double x = in[0][row * in[0].size(1) + i];
    if (x > -std::numeric_limits<double>::infinity() && !banned(i)) out.emplace_back(x, i);
  }
  std::ranges::stable_sort(out, std::greater(), &Tokens::value_type::first);
  return out;
}

// top logits: those of the tokens that stages read.
int64_t drawn_token(Tokens tokens, size_t top_logits, const Chain& chain, double number) {
  double scale = 1;
  bool whole = true;
  const auto weight = [&](size_t i) {
    return std::exp(scale * (tokens[i].first - tokens[0].first));
  };
  const auto mass = [&] {
    double out = 0;
    for (size_t i = 0; i < tokens.size(); ++i) out += weight(i);
    return out;
  };
  for (const auto& [stage, amount] : chain) {
    if (stage == temperature) {
      scale /= double{amount};
      continue;
    }
    const double all = mass();
    size_t keep = 0;
    for (double front = 0; keep < std::min(top_logits, tokens.size()); ++keep) {
      if (stage == top_k && static_cast<double>(keep) >= double{amount}) break;
      if (stage == top_p && keep > 0 && front >= double{amount} * all) break;
      if (stage == min_p && std::log(weight(keep)) < std::log(double{amount})) break;
      front += weight(keep);
    }
    tokens.resize(std::max<size_t>(keep, 1));
    whole = false;
  }
  if (whole && tokens.size() > size_t{kDrawFront}) {
    std::ranges::sort(tokens.begin() + kDrawFront, tokens.end(), {}, &Tokens::value_type::second);
  }
  const double all = mass();
  double front = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    front += weight(i);
    if (front > number * all) return tokens[i].second;
  }
  return tokens.back().second;
}

HostArray draw_formula(const DrawCase& c, const std::vector<HostArray>& in) {
  HostArray out = host_zeros({c.rows});
  for (int64_t row = 0; row < c.rows; ++row) {
    const Chain& chain = c.chains[static_cast<size_t>(row) % c.chains.size()];
    const double number = in[7][row * kColumns + 3];
    const Tokens tokens = tokens_in_order(c, in, row);
    const auto first = in[2].values.begin() + row * c.k;
    const auto top_logits = std::ranges::count_if(tokens, [&](const auto& token) {
      return std::count(first, first + c.k, static_cast<double>(token.second)) > 0;
    });
    // If none can be drawn, the first top logit stays.
    out[row] = tokens.empty() ? in[2][row * c.k]
                              : static_cast<double>(drawn_token(
                                    tokens, static_cast<size_t>(top_logits), chain, number));
  }
  return out;
}

OpTable draw_table() {
  OpTable out("draw");
  for (const DrawCase& c : draw_cases()) {
    out.add<DrawArgs>(&KernelTable::draw,
                      {.name = cat(c.name, " (", c.rows, ", ", c.n, ") of ", c.k),
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
      // Also past the table's end.
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
