#include "backends/cpu/experts.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/api/dispatch.h"
#include "backends/api/kernel_table.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/linear/linear.h"
#include "backends/cpu/linear/scratch.h"
#include "backends/cpu/run_first.h"
#include "backends/cpu/thread_pool.h"
#include "rbee/core/half.h"

namespace rbee::cpu {
namespace {

// Numbers of an expert's weights, and choices of a step, that are not worth all threads' meeting.
constexpr int64_t kSmallExpert = 64 * 1024;
constexpr int64_t kFewChoices = 64;

// A view of `rows` rows of two axes at `data`.
View rows_at(const View& like, void* data, int64_t rows) {
  View out = like;
  out.data = data;
  out.sizes[0] = rows;
  return out;
}

int64_t bytes_of_row(const View& x) {
  return x.size(1) * info(x.dtype).block_bytes;
}

std::byte* row_of(const View& x, int64_t row) {
  return x.as<std::byte>() + row * bytes_of_row(x);
}

View matrix_of(const View& weight, int64_t expert) {
  View out = weight;
  out.rank = 2;
  std::copy_n(weight.sizes + 1, 2, out.sizes);
  std::copy_n(weight.strides + 1, 2, out.strides);
  int64_t bytes = weight.size(1) * row_bytes(weight.dtype, weight.size(2));
  if (weight.packing != 0) {
    View plain = out;
    plain.packing = 0;
    bytes = plan_packing(plain).bytes;
  }
  out.data = weight.as<std::byte>() + expert * bytes;
  return out;
}

// The choices, numbered through all tokens, in the order of their experts.
struct Groups {
  std::vector<int64_t> starts;  // (experts + 1)
  std::vector<int64_t> choices;

  Groups(const View& ids, int64_t experts)
      : starts(static_cast<size_t>(experts) + 1), choices(static_cast<size_t>(ids.numel())) {
    const int32_t* id = ids.as<const int32_t>();
    for (size_t i = 0; i < choices.size(); ++i) ++starts[static_cast<size_t>(id[i]) + 1];
    for (size_t e = 1; e < starts.size(); ++e) starts[e] += starts[e - 1];
    std::vector<int64_t> next(starts.begin(), starts.end() - 1);
    for (size_t i = 0; i < choices.size(); ++i) {
      choices[static_cast<size_t>(next[static_cast<size_t>(id[i])]++)] = static_cast<int64_t>(i);
    }
  }
};

// The products of one expert.
class Expert {
 public:
  Expert(const ExpertLinearArgs& args, const int64_t* choices, int64_t count, int64_t expert)
      : args_(args), choices_(choices), count_(count), expert_(expert) {}

  void run(Stream& stream) const {
    const bool direct = count_ == 1;  // without copies
    Buffers at;
    if (!direct) at = reserve();
    std::vector<LinearPart> parts;
    for (size_t i = 0; i < args_.parts.size(); ++i) {
      const ExpertPart& part = args_.parts[i];
      std::byte* y = direct ? row_of(part.y, choices_[0]) : at.results[i];
      parts.push_back({.weight = matrix_of(part.weight, expert_),
                       .bias = bias_of(part),
                       .y = rows_at(part.y, y, count_)});
    }
    const View x = rows_at(args_.x, direct ? x_row(0) : gather(at.x), count_);
    run_first(cpu_kernels().linear, LinearArgs{.x = x, .parts = parts}, stream);
    if (direct) return;
    for (size_t i = 0; i < parts.size(); ++i) scatter(parts[i].y, args_.parts[i].y);
  }

 private:
  struct Buffers {
    std::byte* x = nullptr;
    std::vector<std::byte*> results;
  };

  Buffers reserve() const {
    static thread_local Scratch scratch;
    Carver counter(nullptr);
    carve(counter);
    Carver carver(scratch.reserve(counter.used()));
    return carve(carver);
  }

  Buffers carve(Carver& carver) const {
    Buffers out{.x = carver.take<std::byte>(count_ * bytes_of_row(args_.x)), .results = {}};
    for (const ExpertPart& part : args_.parts) {
      out.results.push_back(carver.take<std::byte>(count_ * bytes_of_row(part.y)));
    }
    return out;
  }

  View bias_of(const ExpertPart& part) const {
    if (!part.bias) return {};
    View bias = part.bias;
    bias.rank = 1;
    bias.sizes[0] = part.bias.size(1);
    bias.strides[0] = 1;
    bias.data = row_of(part.bias, expert_);
    return bias;
  }

  std::byte* x_row(int64_t i) const {
    const int64_t each = args_.ids.numel() / args_.x.size(0);
    return row_of(args_.x, choices_[i] / each);
  }

  std::byte* gather(std::byte* to) const {
    const int64_t bytes = bytes_of_row(args_.x);
    for (int64_t i = 0; i < count_; ++i) {
      std::memcpy(to + i * bytes, x_row(i), static_cast<size_t>(bytes));
    }
    return to;
  }

  void scatter(const View& from, const View& to) const {
    const auto bytes = static_cast<size_t>(bytes_of_row(to));
    for (int64_t i = 0; i < count_; ++i) {
      std::memcpy(row_of(to, choices_[i]), row_of(from, i), bytes);
    }
  }

  const ExpertLinearArgs& args_;
  const int64_t* choices_;
  int64_t count_;
  int64_t expert_;
};

// A thread takes such an expert for itself: shared out, its work would end before all have begun.
bool are_small(const ExpertLinearArgs& args) {
  int64_t numbers = 0;
  for (const ExpertPart& part : args.parts) numbers += part.weight.size(1) * part.weight.size(2);
  return args.ids.numel() <= kFewChoices && numbers <= kSmallExpert;
}

void run_linear(const ExpertLinearArgs& args, Stream& stream) {
  const int64_t experts = args.parts.front().weight.size(0);
  const Groups groups(args.ids, experts);
  std::vector<int64_t> chosen;
  for (int64_t e = 0; e < experts; ++e) {
    const auto at = static_cast<size_t>(e);
    if (groups.starts[at + 1] > groups.starts[at]) chosen.push_back(e);
  }
  const auto run = [&](int64_t e) {
    const int64_t first = groups.starts[static_cast<size_t>(e)];
    const int64_t count = groups.starts[static_cast<size_t>(e) + 1] - first;
    Expert(args, groups.choices.data() + first, count, e).run(stream);
  };
  if (!are_small(args)) {
    for (const int64_t e : chosen) run(e);
    return;
  }
  ThreadPool::shared().parallel_for(std::ssize(chosen), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      run(chosen[static_cast<size_t>(i)]);
    }
  });
}

float widened(float x) {
  return x;
}
template <typename T>
float widened(T x) {
  return to_float(x);
}

template <typename T>
T rounded(float x) {
  if constexpr (std::is_same_v<T, f16>) return to_f16(x);
  if constexpr (std::is_same_v<T, bf16>) return to_bf16(x);
  if constexpr (std::is_same_v<T, float>) return x;
}

template <typename T>
void sum_token(const ExpertSumArgs& args, int64_t token, std::vector<float>& sums) {
  const int64_t k = args.weights.size(1), dim = args.y.size(1);
  std::fill(sums.begin(), sums.end(), 0.0f);
  for (int64_t j = 0; j < k; ++j) {
    const float weight = args.weights.as<const float>()[token * k + j];
    const T* x = args.x.as<const T>() + (token * k + j) * dim;
    for (int64_t i = 0; i < dim; ++i) sums[static_cast<size_t>(i)] += weight * widened(x[i]);
  }
  T* y = args.y.as<T>() + token * dim;
  for (int64_t i = 0; i < dim; ++i) y[i] = rounded<T>(sums[static_cast<size_t>(i)]);
}

void run_sum(const ExpertSumArgs& args, Stream&) {
  dispatch<float, f16, bf16>("expert_sum", args.x.dtype, [&]<typename T>() {
    ThreadPool::shared().parallel_for(
        args.weights.size(0), 4, [&](int64_t begin, int64_t end, int) {
          std::vector<float> sums(static_cast<size_t>(args.y.size(1)));
          for (int64_t token = begin; token < end; ++token) sum_token<T>(args, token, sums);
        });
  });
}

}  // namespace

const Impl<ExpertLinearArgs> grouped_expert_linear{"grouped", never_refuse, run_linear};
const Impl<ExpertSumArgs> rows_expert_sum{"rows", never_refuse, run_sum};

}  // namespace rbee::cpu
