#pragma once
// Runs a language model over a paged cache, as an engine does, for tests of families.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rbee/models/language_model.h"
#include "tests/checkpoints/checkpoint_files.h"

namespace rbee::test {

// The device in RBEE_TEST_DEVICE, e.g. "cuda:0"; the CPU if unset. If there is no such device, it
// throws the reason, and all tests are skipped.
Device& device_under_test();
// Largest difference of logits from an f32 reference, on any device.
inline constexpr float kLogitBound = 1e-3f;

// Rows that replace a piece's ids from `first` on; they attend to each other.
struct PiecePicture {
  int64_t first = 0;
  Tensor rows;
};

// New tokens of one sequence.
struct Piece {
  int64_t sequence = 0;
  std::vector<int32_t> ids;
  std::vector<PiecePicture> pictures = {};
  // the adapters it uses: slots and scales
  std::vector<std::pair<int32_t, float>> lora = {};
};

class ModelRunner {
 public:
  // Has blocks of four positions, scattered over the pool, for `sequences` of up to `context`
  // positions.
  ModelRunner(const models::LanguageModel& model, int64_t sequences, int64_t context,
              DType kv_dtype = DType::f32, Device& device = device_under_test());

  // Logits of every new token, pieces one after another: (tokens, vocab).
  std::vector<float> step(std::span<const Piece> pieces);
  // Logits of the given rows of the step only.
  std::vector<float> step(std::span<const Piece> pieces, std::span<const int32_t> rows);
  // Residual streams after each layer of the last step: (layers, rows, dim), filled while `record`.
  bool record = false;
  std::vector<std::vector<float>> hidden;

 private:
  // Of tensors on `device`.
  models::ForwardBatch make_batch(std::span<const Piece> pieces, std::span<const int32_t> rows,
                                  Device& device) const;
  int32_t block_of(int64_t sequence, int64_t index) const;

  const models::LanguageModel& model_;
  Device& device_;
  int64_t sequences_;
  int64_t blocks_each_;
  nn::KvCache cache_;
  std::vector<int64_t> lengths_;  // cached positions by sequence
};

float max_difference(std::span<const float> a, std::span<const float> b);

}  // namespace rbee::test
