#pragma once
// A language model that ranks of a group compute together, each on a thread of the test; on GPUs
// each has a device of its own, from the one that is under test on.

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backends/api/group_comm.h"
#include "rbee/models/language_model.h"
#include "tests/support/rank_threads.h"

namespace rbee::test {

// Behaves as the whole model: the ranks' logits are put beside each other, and every rank has a
// cache of its own in the place of the one that it is called with.
class GroupModel final : public models::LanguageModel {
 public:
  // Throws what loading one of the ranks throws. parts: see group::Share.
  GroupModel(const io::Checkpoint& checkpoint, const models::LoadOptions& options, int ranks,
             std::vector<double> parts = {});

  const models::ModelConfig& config() const override { return first().config(); }
  Tensor forward(const models::ForwardBatch& batch, nn::KvCache& cache) const override;
  // The first rank's; all have the same, bit for bit, or it throws internal.
  Tensor states(const models::ForwardBatch& batch, nn::KvCache& cache) const override;
  const models::PictureEncoder* pictures() const override { return first().pictures(); }
  // Of all ranks, so that an adapter changes all.
  std::span<const nn::LoraTarget> lora_targets() const override { return lora_targets_; }
  DType activations() const override { return first().activations(); }
  int64_t weight_bytes() const override;
  int64_t parameters() const override { return first().parameters(); }
  std::string quantization() const override { return first().quantization(); }

  const models::LanguageModel& rank(int index) const {
    return *models_[static_cast<size_t>(index)];
  }

 private:
  using Step = Tensor (models::LanguageModel::*)(const models::ForwardBatch&, nn::KvCache&) const;
  const models::LanguageModel& first() const { return *models_.front(); }
  std::vector<nn::KvCache>& caches_for(const nn::KvCache& cache) const;
  std::vector<Tensor> on_all(Step step, const models::ForwardBatch& batch,
                             const nn::KvCache& cache) const;

  GroupView view(int rank) const;
  // Of GPUs: gives every rank its way to the others.
  void join(int ranks);
  // As threads_.run(); an exception ends the devices' operations too.
  void run(const std::function<void(int rank)>& body) const;

  harness::RankThreads threads_;
  std::vector<Device*> devices_;                   // by rank
  std::vector<std::unique_ptr<GroupComm>> comms_;  // by rank; none of CPUs
  std::vector<std::unique_ptr<models::LanguageModel>> models_;
  std::vector<nn::LoraTarget> lora_targets_;
  mutable std::map<const nn::KvCache*, std::vector<nn::KvCache>> caches_;
};

// Ranks in the environment's RBEE_TEST_RANKS; 1 if unset.
int ranks_under_test();
// Whether they hold ranges of the experts: the environment's RBEE_TEST_EXPERT_PARALLEL is set.
bool expert_parallel_under_test();
// The model, or as many ranks of it as are under test.
std::unique_ptr<models::LanguageModel> load_under_test(const io::Checkpoint& checkpoint,
                                                       const models::LoadOptions& options);

}  // namespace rbee::test
