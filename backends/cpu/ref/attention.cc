#include "backends/cpu/ref/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

// One query: indices of its batch entry, head and place among the queries.
struct Query {
  int64_t batch, head, index;
};

// The keys [first, last) that a query sees.
struct Keys {
  int64_t first, last;
};

// The query's place among the keys: the last query is at the last key.
int64_t place_of(const AttentionArgs& args, const Query& query) {
  return query.index + args.k.sizes[2] - args.q.sizes[2];
}

Keys keys_of(const AttentionArgs& args, const Query& query) {
  const int64_t place = place_of(args, query);
  Keys keys = {0, args.k.sizes[2]};
  if (args.causal) keys.last = std::clamp<int64_t>(place + 1, 0, keys.last);
  if (args.window > 0) keys.first = std::clamp<int64_t>(place + 1 - args.window, 0, keys.last);
  return keys;
}

int64_t kv_head_of(const AttentionArgs& args, const Query& query) {
  return query.head / (args.q.sizes[1] / args.k.sizes[1]);
}

template <typename T>
double dot(const AttentionArgs& args, const Query& query, int64_t key) {
  const T* q = args.q.as<T>() + offset_of(args.q, query.batch, query.head, query.index);
  const T* k = args.k.as<T>() + offset_of(args.k, query.batch, kv_head_of(args, query), key);
  double sum = 0;
  for (int64_t i = 0; i < args.q.sizes[3]; ++i) {
    sum += static_cast<double>(load(q[i * args.q.strides[3]])) * load(k[i * args.k.strides[3]]);
  }
  return sum;
}

template <typename T>
double score(const AttentionArgs& args, const Query& query, int64_t key) {
  double s = dot<T>(args, query, key) * args.scale;
  if (args.softcap > 0) s = args.softcap * std::tanh(s / args.softcap);
  if (args.alibi_slopes) {
    const double slope = args.alibi_slopes.as<float>()[offset_of(args.alibi_slopes, query.head)];
    s -= slope * static_cast<double>(std::abs(place_of(args, query) - key));
  }
  if (args.mask) {
    s += args.mask.as<float>()[offset_of(args.mask, query.batch, query.head, query.index, key)];
  }
  return s;
}

// Turns scores into weights that sum to 1; all zero when no key has a score above -inf.
void softmax(std::vector<double>& scores) {
  double top = -INFINITY;
  for (double s : scores) top = std::max(top, s);
  double sum = 0;
  for (double& s : scores) sum += s = s == -INFINITY ? 0 : std::exp(s - top);
  if (sum == 0) return;
  for (double& s : scores) s /= sum;
}

template <typename T>
void attend(const AttentionArgs& args, const Query& query) {
  const Keys keys = keys_of(args, query);
  std::vector<double> weights;
  for (int64_t key = keys.first; key < keys.last; ++key) {
    weights.push_back(score<T>(args, query, key));
  }
  softmax(weights);
  const T* v = args.v.as<T>() + offset_of(args.v, query.batch, kv_head_of(args, query), keys.first);
  T* y = args.y.as<T>() + offset_of(args.y, query.batch, query.head, query.index);
  for (int64_t i = 0; i < args.y.sizes[3]; ++i) {
    double sum = 0;
    int64_t key = 0;
    for (double weight : weights) sum += weight * load(v[offset_of(args.v, 0, 0, key++, i)]);
    y[i * args.y.strides[3]] = store<T>(sum);
  }
}

void attention(const AttentionArgs& args, Stream&) {
  dispatch_floats("attention", args.q.dtype, [&]<typename T>() {
    for (int64_t batch = 0; batch < args.q.sizes[0]; ++batch) {
      for (int64_t head = 0; head < args.q.sizes[1]; ++head) {
        for (int64_t i = 0; i < args.q.sizes[2]; ++i) attend<T>(args, {batch, head, i});
      }
    }
  });
}

}  // namespace

const Impl<AttentionArgs> ref_attention = {"ref", never_refuse, attention};

}  // namespace rbee::cpu
