#include "rbee/models/embedding_model.h"
#include "rbee/nn/embedding.h"
#include "rbee/nn/text_attention.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/reduce.h"

namespace rbee::models {

std::string_view name(Pooling pooling) {
  switch (pooling) {
    case Pooling::mean:
      return "mean";
    case Pooling::cls:
      return "cls";
    case Pooling::last:
      break;
  }
  return "last";
}

Pooling parse_pooling(std::string_view text) {
  for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::last}) {
    if (text == name(pooling)) return pooling;
  }
  fail(Code::invalid_argument, "pooling", "\"", text, "\" is none of mean, cls and last");
}

std::vector<int32_t> pooled_rows(std::span<const int64_t> lengths, Pooling pooling) {
  std::vector<int32_t> rows;
  rows.reserve(lengths.size());
  int64_t end = 0;
  for (const int64_t length : lengths) {
    const int64_t first = end;
    end += length;
    rows.push_back(static_cast<int32_t>(pooling == Pooling::cls ? first : end - 1));
  }
  return rows;
}

Tensor pool(const Tensor& states, std::span<const int64_t> lengths, Pooling pooling) {
  const auto texts = static_cast<int64_t>(lengths.size());
  if (pooling != Pooling::mean) {
    const std::vector<int32_t> rows = pooled_rows(lengths, pooling);
    const Tensor at = from_host<int32_t>(rows, {texts}, states.device());
    return cast(nn::take_rows(states, at), DType::f32);
  }
  const int64_t dim = states.dim(1);
  Tensor out = empty({texts, dim}, DType::f32, states.device());
  for (const nn::TextRun& run : nn::text_runs(lengths)) {
    const Tensor part =
        cast(states.slice(Axis{0}, run.first_token, run.texts * run.length), DType::f32);
    const Tensor sums = reduce(ReduceOp::sum, part.reshape({run.texts, run.length, dim}), Axis{1});
    Tensor to = out.slice(Axis{0}, run.first_text, run.texts);
    copy_(to, affine(sums.reshape({run.texts, dim}), 1.0 / static_cast<double>(run.length), 0));
  }
  return out;
}

}  // namespace rbee::models
