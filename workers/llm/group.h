#pragma once
// A language model that several processes hold: starts or meets them as its leader, or is one of
// them.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "rbee/engine/text/group/text_group.h"
#include "rbee/engine/text/text_model.h"
#include "rbee/group/place.h"
#include "workers/common/group_flags.h"

namespace rbee::workers {

// A process that lost its group ends with this status, within this time at most.
inline constexpr int kGroupLost = 3;
inline constexpr std::chrono::seconds kGroupEndTime{5};

// What must be the same on all ranks, besides the model.
struct GroupTerms {
  std::string program;  // its name and version
  std::string flags;    // those that change what a rank computes
};

// What a command line asks of a group.
struct GroupWishes {
  bool embeddings = false;
  bool pictures = false;
  bool cpu_moe = false;  // experts in host memory
  // Experts by range on such devices; absent: they are split by columns.
  std::optional<DeviceKind> expert_parallel = {};
};
// Throws unsupported, naming it, for what ranks cannot share.
void check_group(const group::RankPlace& place, const GroupWishes& wishes);

// For cpu::set_thread_count(); threads: as given, 0 for the default. The ranks of a machine share
// its processors.
int threads_of_rank(const group::RankPlace& place, int threads);

// Starts the other ranks with this process's own command line, or meets those that others start;
// they load `path`, and so will whoever loads with `options`, which get the group. Ranks on GPUs
// meet by their backend's library. on_lost: as in GroupLeaderOptions. Throws as GroupLeader,
// meeting_place(), Checkpoint::open() and BackendInfo::join_group().
void start_group(const GroupFlags& flags, const std::filesystem::path& path,
                 const GroupTerms& terms, std::function<void(const std::string&)> on_lost,
                 engine::TextModelOptions& options);

// The life of any rank but 0. options: with a device, without a part. kv_dtype: of the cache, see
// StepperOptions. Returns the exit status: 0 when the group has ended, 1 if this rank cannot go on.
// If the leader is lost, the process ends with kGroupLost.
int run_rank(const GroupFlags& flags, const GroupTerms& terms, engine::TextModelOptions options,
             std::optional<DType> kv_dtype);

}  // namespace rbee::workers
