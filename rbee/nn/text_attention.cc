#include "rbee/nn/text_attention.h"

#include "rbee/ops/attention.h"
#include "rbee/ops/elementwise.h"

namespace rbee::nn {

std::vector<TextRun> text_runs(std::span<const int64_t> lengths) {
  std::vector<TextRun> runs;
  int64_t token = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (runs.empty() || runs.back().length != lengths[i]) {
      runs.push_back({.first_text = static_cast<int64_t>(i),
                      .texts = 0,
                      .first_token = token,
                      .length = lengths[i]});
    }
    ++runs.back().texts;
    token += lengths[i];
  }
  return runs;
}

Tensor text_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                      std::span<const TextRun> runs) {
  const auto [tokens, heads, head_dim] = q.dims<3>();
  const int64_t width = heads * head_dim;
  const auto attended = [&](const TextRun& run) {
    const int64_t rows = run.texts * run.length;
    const auto part = [&](const Tensor& x) {
      return x.slice(Axis{0}, run.first_token, rows)
          .reshape({run.texts, run.length, x.dim(1), x.dim(2)})
          .permute({0, 2, 1, 3});
    };
    const Tensor y = attention(part(q), part(k), part(v), {});
    return contiguous(y.permute({0, 2, 1, 3})).reshape({rows, width});
  };
  if (runs.size() == 1) return attended(runs.front());
  Tensor out = empty({tokens, width}, q.dtype(), q.device());
  for (const TextRun& run : runs) {
    Tensor to = out.slice(Axis{0}, run.first_token, run.texts * run.length);
    copy_(to, attended(run));
  }
  return out;
}

}  // namespace rbee::nn
