#include "tests/models/language/group_model.h"

#include <cstdlib>

namespace rbee::test {

GroupModel::GroupModel(const io::Checkpoint& checkpoint, const models::LoadOptions& options,
                       int ranks, std::vector<double> parts)
    : threads_(ranks), device_(options.device) {
  for (int rank = 0; rank < ranks; ++rank) {
    models::LoadOptions own = options;
    own.group = {.share = {.rank = rank, .ranks = ranks, .parts = parts},
                 .view = threads_.view(rank)};
    if (rank > 0) own.progress = {};
    models_.push_back(models::load_language_model(checkpoint, own));
    const std::span<const nn::LoraTarget> targets = models_.back()->lora_targets();
    lora_targets_.insert(lora_targets_.end(), targets.begin(), targets.end());
  }
}

std::vector<nn::KvCache>& GroupModel::caches_for(const nn::KvCache& cache) const {
  std::vector<nn::KvCache>& caches = caches_[&cache];
  nn::KvCacheOptions options = cache.options();
  const auto fits = [&](const nn::KvCacheOptions& has) {
    return has.blocks == options.blocks && has.block_size == options.block_size &&
           has.dtype == options.dtype;
  };
  // A later cache may have the address of an earlier one.
  if (!caches.empty() && fits(caches.front().options())) return caches;
  caches.clear();
  for (const auto& model : models_) {
    options.kv_heads = model->cache_shape().kv_heads;
    caches.emplace_back(options, *device_);
  }
  return caches;
}

std::vector<Tensor> GroupModel::on_all(Step step, const models::ForwardBatch& batch,
                                       const nn::KvCache& cache) const {
  std::vector<nn::KvCache>& caches = caches_for(cache);
  std::vector<Tensor> out(models_.size());
  threads_.run([&](int rank) {
    const auto i = static_cast<size_t>(rank);
    models::ForwardBatch own = batch;
    // The stream's value is a sum over the ranks: all must ask for it.
    if (batch.on_layer && rank > 0) own.on_layer = [](int64_t, const Tensor&) {};
    out[i] = (*models_[i].*step)(own, caches[i]);
  });
  return out;
}

Tensor GroupModel::forward(const models::ForwardBatch& batch, nn::KvCache& cache) const {
  const std::vector<Tensor> parts = on_all(&models::LanguageModel::forward, batch, cache);
  const int64_t rows = batch.logit_rows.dim(0), vocab = config().vocab_size;
  std::vector<float> logits(static_cast<size_t>(rows * vocab));
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const group::Range own = models_[rank]->vocabulary().own();
    RB_ASSERT(parts[rank].shape() == (Shape{rows, own.count}));
    const std::vector<float> values = parts[rank].to_host<float>();
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(values.begin() + row * own.count, own.count,
                  logits.begin() + row * vocab + own.first);
    }
  }
  return from_host<float>(logits, {rows, vocab}, *device_);
}

Tensor GroupModel::states(const models::ForwardBatch& batch, nn::KvCache& cache) const {
  const std::vector<Tensor> all = on_all(&models::LanguageModel::states, batch, cache);
  const std::vector<float> wanted = all.front().to_host<float>();
  for (const Tensor& other : all) {
    if (other.to_host<float>() != wanted) fail(Code::internal, "group", "ranks' states differ");
  }
  return all.front();
}

int64_t GroupModel::weight_bytes() const {
  int64_t bytes = 0;
  for (const auto& model : models_) bytes += model->weight_bytes();
  return bytes;
}

int ranks_under_test() {
  const char* wanted = std::getenv("RBEE_TEST_RANKS");
  return wanted == nullptr ? 1 : std::atoi(wanted);
}

std::unique_ptr<models::LanguageModel> load_under_test(const io::Checkpoint& checkpoint,
                                                       const models::LoadOptions& options) {
  const int ranks = ranks_under_test();
  if (ranks == 1) return models::load_language_model(checkpoint, options);
  return std::make_unique<GroupModel>(checkpoint, options, ranks);
}

}  // namespace rbee::test
