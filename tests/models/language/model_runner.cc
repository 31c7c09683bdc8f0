#include "tests/models/language/model_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "rbee/core/error.h"
#include "tests/support/device_called.h"

namespace rbee::test {
namespace {

constexpr int64_t kBlockSize = 4;

Tensor indices(const std::vector<int32_t>& values, const Shape& shape, Device& device) {
  return from_host(std::span<const int32_t>(values), shape, device);
}

// Without the device no test runs.
class DeviceIsThere : public ::testing::Environment {
 public:
  void SetUp() override {
    try {
      device_under_test();
    } catch (const Error& error) {
      GTEST_SKIP() << "skipped: no " << std::getenv("RBEE_TEST_DEVICE") << ": " << error.what();
    }
  }
};
const auto* const device_is_there = ::testing::AddGlobalTestEnvironment(new DeviceIsThere);

Tensor indices(const std::vector<int32_t>& values, Device& device) {
  return indices(values, {static_cast<int64_t>(values.size())}, device);
}

nn::LoraRows adapters(std::span<const Piece> pieces, Device& device) {
  size_t each = 0;
  for (const Piece& piece : pieces) each = std::max(each, piece.lora.size());
  if (each == 0) return {};
  std::vector<int32_t> slots;
  std::vector<float> scales;
  for (const Piece& piece : pieces) {
    for (size_t token = 0; token < piece.ids.size(); ++token) {
      for (size_t i = 0; i < each; ++i) {
        slots.push_back(i < piece.lora.size() ? piece.lora[i].first : 0);
        scales.push_back(i < piece.lora.size() ? piece.lora[i].second : 0);
      }
    }
  }
  const Shape shape{static_cast<int64_t>(slots.size() / each), static_cast<int64_t>(each)};
  return {.slots = indices(slots, shape, device),
          .scales = from_host<float>(scales, shape, device)};
}

}  // namespace

ModelRunner::ModelRunner(const models::LanguageModel& model, int64_t sequences, int64_t context,
                         DType kv_dtype, Device& device)
    : model_(model),
      device_(device),
      sequences_(sequences),
      blocks_each_((context + kBlockSize - 1) / kBlockSize),
      cache_({.layers = model.cache_shape().layers,
              .blocks = sequences * blocks_each_,
              .block_size = kBlockSize,
              .dtype = kv_dtype,
              .one_tensor = model.config().one_cache,
              .host = model.host_layers().host,
              .host_layers = model.host_layers().count,
              .state_slots = sequences},
             device),
      lengths_(static_cast<size_t>(sequences), 0) {}

// Neighbouring blocks of a sequence are far apart in memory, in reverse order.
int32_t ModelRunner::block_of(int64_t sequence, int64_t index) const {
  return static_cast<int32_t>((blocks_each_ - 1 - index) * sequences_ + sequence);
}

models::ForwardBatch ModelRunner::make_batch(std::span<const Piece> pieces,
                                             std::span<const int32_t> rows, Device& device) const {
  std::vector<int32_t> ids, positions, slots, starts{0}, lengths, table, ends, states;
  models::ForwardBatch batch;
  for (const Piece& piece : pieces) {
    int64_t length = lengths_[static_cast<size_t>(piece.sequence)];
    ends.resize(ids.size() + piece.ids.size(), 0);
    for (const PiecePicture& picture : piece.pictures) {
      const auto first = std::ssize(ids) + picture.first;
      std::fill_n(ends.begin() + first, picture.rows.dim(0),
                  static_cast<int32_t>(length + picture.first + picture.rows.dim(0)));
      batch.pictures.push_back({first, picture.rows});
    }
    for (const int32_t id : piece.ids) {
      ids.push_back(id);
      positions.push_back(static_cast<int32_t>(length));
      const int64_t block = block_of(piece.sequence, length / kBlockSize);
      slots.push_back(static_cast<int32_t>(block * kBlockSize + length % kBlockSize));
      ++length;
    }
    starts.push_back(static_cast<int32_t>(ids.size()));
    states.push_back(static_cast<int32_t>(sequences_ - 1 - piece.sequence));
    lengths.push_back(static_cast<int32_t>(length));
    for (int64_t i = 0; i < blocks_each_; ++i) table.push_back(block_of(piece.sequence, i));
  }
  batch.ids = indices(ids, device);
  batch.positions = indices(positions, device);
  batch.paged = {
      .seq_starts = indices(starts, device),
      .kv_lens = indices(lengths, device),
      .block_table = indices(table, {static_cast<int64_t>(pieces.size()), blocks_each_}, device),
      .slots = indices(slots, device)};
  if (!batch.pictures.empty()) batch.paged.key_ends = indices(ends, device);
  batch.logit_rows = indices({rows.begin(), rows.end()}, device);
  batch.state_slots = indices(states, device);
  batch.lora = adapters(pieces, device);
  return batch;
}

std::vector<float> ModelRunner::step(std::span<const Piece> pieces, std::span<const int32_t> rows) {
  hidden.clear();
  const auto recorded = [&](models::ForwardBatch batch) {
    if (record) {
      batch.on_layer = [this](int64_t, const Tensor& x) { hidden.push_back(x.to_host<float>()); };
    }
    return batch;
  };
  models::ForwardBatch batch = recorded(make_batch(pieces, rows, device_));
  if (const models::HostLayers layers = model_.host_layers(); layers.any()) {
    const models::ForwardBatch on_host = recorded(make_batch(pieces, rows, *layers.host));
    batch.hidden = model_.run_host_layers(on_host, cache_).to(device_);
  }
  for (const Piece& piece : pieces) {
    lengths_[static_cast<size_t>(piece.sequence)] += std::ssize(piece.ids);
  }
  return model_.forward(batch, cache_).to_host<float>();
}

std::vector<float> ModelRunner::step(std::span<const Piece> pieces) {
  size_t tokens = 0;
  for (const Piece& piece : pieces) tokens += piece.ids.size();
  std::vector<int32_t> rows(tokens);
  std::iota(rows.begin(), rows.end(), 0);
  return step(pieces, rows);
}

Device& device_under_test() {
  const char* wanted = std::getenv("RBEE_TEST_DEVICE");
  return wanted == nullptr ? cpu_device() : harness::device_called(wanted);
}

float max_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return std::numeric_limits<float>::infinity();
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float difference = std::fabs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;  // also true for NaN
  }
  return largest;
}

}  // namespace rbee::test
