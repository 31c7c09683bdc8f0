#include "tests/models/language/group_model.h"

#include <algorithm>
#include <cstdlib>

#include "backends/api/registry.h"

namespace rbee::test {

namespace {

const BackendInfo& backend_of(DeviceKind kind) {
  const auto found = std::ranges::find(backends(), kind, &BackendInfo::kind);
  RB_ASSERT(found != backends().end());
  return *found;
}

// The batch's tensors on another device.
models::ForwardBatch on_device(const models::ForwardBatch& batch, Device& device) {
  models::ForwardBatch out = batch;
  for (Tensor* tensor :
       {&out.ids, &out.positions, &out.logit_rows, &out.paged.slots, &out.paged.seq_starts,
        &out.paged.kv_lens, &out.paged.block_table, &out.paged.key_ends, &out.paged.window_key_ends,
        &out.lora.slots, &out.lora.scales}) {
    if (tensor->defined()) *tensor = tensor->to(device);
  }
  return out;
}

}  // namespace

GroupModel::GroupModel(const io::Checkpoint& checkpoint, const models::LoadOptions& options,
                       int ranks, std::vector<double> parts)
    : threads_(ranks) {
  const DeviceId first = options.device->id();
  const bool cpu = first.kind == DeviceKind::cpu;
  for (int rank = 0; rank < ranks; ++rank) {
    devices_.push_back(cpu ? options.device : &get_device({first.kind, first.ordinal + rank}));
  }
  if (!cpu && ranks > 1) join(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    models::LoadOptions own = options;
    own.device = devices_[static_cast<size_t>(rank)];
    own.group = {.share = {.rank = rank, .ranks = ranks, .parts = parts}, .view = view(rank)};
    if (rank > 0) own.progress = {};
    models_.push_back(models::load_language_model(checkpoint, own));
    const std::span<const nn::LoraTarget> targets = models_.back()->lora_targets();
    lora_targets_.insert(lora_targets_.end(), targets.begin(), targets.end());
  }
}

GroupView GroupModel::view(int rank) const {
  return comms_.empty() ? threads_.view(rank) : comms_[static_cast<size_t>(rank)]->view();
}

void GroupModel::join(int ranks) {
  const BackendInfo& backend = backend_of(devices_.front()->id().kind);
  const std::string id = backend.make_group_id();
  std::vector<std::unique_ptr<GroupComm>> comms(static_cast<size_t>(ranks));
  threads_.run([&](int rank) {
    const auto i = static_cast<size_t>(rank);
    comms[i] = backend.join_group(*devices_[i], {.rank = rank, .ranks = ranks, .id = id});
  });
  comms_ = std::move(comms);
}

void GroupModel::run(const std::function<void(int rank)>& body) const {
  threads_.run([&](int rank) {
    try {
      body(rank);
      Device& device = *devices_[static_cast<size_t>(rank)];
      device.synchronize(device.default_stream());
    } catch (const std::exception& error) {
      for (const auto& comm : comms_) comm->end(error.what());
      throw;
    }
  });
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
  for (size_t rank = 0; rank < models_.size(); ++rank) {
    options.layers = models_[rank]->cache_shape().layers;
    caches.emplace_back(options, *devices_[rank]);
  }
  return caches;
}

std::vector<Tensor> GroupModel::on_all(Step step, const models::ForwardBatch& batch,
                                       const nn::KvCache& cache) const {
  std::vector<nn::KvCache>& caches = caches_for(cache);
  std::vector<Tensor> out(models_.size());
  // First, since a copy between devices waits for both, and a device that waits for other ranks
  // keeps it waiting.
  std::vector<models::ForwardBatch> batches;
  for (Device* device : devices_) batches.push_back(on_device(batch, *device));
  run([&](int rank) {
    const auto i = static_cast<size_t>(rank);
    models::ForwardBatch& own = batches[i];
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
  return from_host<float>(logits, {rows, vocab}, *devices_.front());
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

bool expert_parallel_under_test() {
  return std::getenv("RBEE_TEST_EXPERT_PARALLEL") != nullptr;
}

std::unique_ptr<models::LanguageModel> load_under_test(const io::Checkpoint& checkpoint,
                                                       const models::LoadOptions& options) {
  const int ranks = ranks_under_test();
  if (ranks == 1) return models::load_language_model(checkpoint, options);
  models::LoadOptions own = options;
  own.expert_parallel = expert_parallel_under_test();
  return std::make_unique<GroupModel>(checkpoint, own, ranks);
}

}  // namespace rbee::test
