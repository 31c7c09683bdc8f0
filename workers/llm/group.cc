#include "workers/llm/group.h"

#include <openssl/evp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "backends/api/registry.h"
#include "backends/cpu/group_memory.h"
#include "backends/cpu/thread_pool.h"
#include "rbee/core/hex.h"
#include "rbee/core/log.h"
#include "rbee/core/system/process.h"
#include "rbee/engine/text/group/follower.h"
#include "rbee/engine/text/step/stepper.h"
#include "rbee/group/member.h"
#include "rbee/group/rank_process.h"
#include "rbee/group/rank_state.h"
#include "rbee/io/checkpoint.h"

namespace rbee::workers {
namespace {

// What the files' headers and settings say, not the weights' values.
std::string digest_of(const io::Checkpoint& checkpoint) {
  std::string text = cat(checkpoint.architecture(), '\n', checkpoint.config_json(), '\n');
  for (const io::TensorEntry& entry : checkpoint.tensors()) {
    text += cat(entry.name, ' ', name(entry.dtype), ' ', entry.data.size(), '\n');
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned size = 0;
  check(EVP_Digest(text.data(), text.size(), sum.data(), &size, EVP_sha256(), nullptr) == 1,
        "group", "SHA-256 failed");
  return cat(checkpoint.tensors().size(), " tensors, ", checkpoint.file_bytes(), " bytes, ",
             hex(std::span(sum).first(size)));
}

// What is the same on all ranks: of GPUs all but the name, of CPUs nothing but the kind.
std::string device_of_rank(const Device& device) {
  std::string out(name(device.id().kind));
  const std::string all = device.description();
  if (device.id().kind != DeviceKind::cpu) out += all.substr(std::min(all.find(','), all.size()));
  return out;
}

std::string flags_of(const GroupTerms& terms, const GroupFlags& flags, const Device& device) {
  std::string out = cat(terms.flags, ", captured steps ", device.supports_capture() ? "on" : "off");
  const std::vector<double>& split = flags.tensor_split;
  for (size_t rank = 0; rank < split.size(); ++rank) {
    out += cat(rank == 0 ? ", tensor split " : ":", split[rank]);
  }
  if (flags.expert_parallel) out += ", experts by range";
  return out;
}

group::Identity identity_of(const std::filesystem::path& path, const GroupTerms& terms,
                            const GroupFlags& flags, const Device& device) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  return {.build = terms.program,
          .model = digest_of(checkpoint),
          .flags = flags_of(terms, flags, device),
          .device = device_of_rank(device)};
}

const BackendInfo& backend_of(const Device& device) {
  const auto found = std::ranges::find(backends(), device.id().kind, &BackendInfo::kind);
  check(found != backends().end(), "group", "no backend has ", device.id());
  return *found;
}

// How this rank reaches the others: CPUs by shared memory, devices by their backend's library.
class Reach {
 public:
  // memory: null for a device whose rank is on another machine than the leader's.
  explicit Reach(std::shared_ptr<cpu::GroupMemory> memory) : memory_(std::move(memory)) {}

  // Waits until all ranks have come, if the device's backend has a way of its own.
  void join(Device& device, const group::RankPlace& place, const std::string& comm_id) {
    if (comm_id.empty()) return;
    log(LogLevel::info, "devices meet",
        {{"device", cat(device.id())}, {"library", backend_of(device).group_library()}});
    std::shared_ptr<GroupComm> comm = backend_of(device).join_group(
        device, {.rank = place.rank, .ranks = place.ranks, .id = comm_id});
    const std::scoped_lock lock(mutex_);
    comm_ = std::move(comm);
    if (ended_) comm_->end(why_);
  }
  // The group has ended. Any thread.
  void end(const std::string& why) {
    if (memory_) memory_->end(why);
    const std::scoped_lock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    why_ = why;
    if (comm_) comm_->end(why);
  }
  const std::shared_ptr<GroupComm>& comm() const { return comm_; }
  GroupView view() const { return comm_ ? comm_->view() : memory_->view(); }

 private:
  const std::shared_ptr<cpu::GroupMemory> memory_;
  std::shared_ptr<GroupComm> comm_;  // null: CPUs, or not there yet
  std::mutex mutex_;                 // guards comm_ while ranks start, and the next ones
  bool ended_ = false;
  std::string why_;
};

// The leader ends this process. Signals of a terminal or a service go to all of its processes, and
// the leader still has answers to finish.
void leave_signals_to_leader() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
}

}  // namespace

void check_group(const group::RankPlace& place, const GroupWishes& wishes) {
  if (place.ranks == 1) return;
  const auto refuse = [&](const auto&... what) {
    fail(Code::unsupported, "--tensor-parallel-size", what...,
         " is not implemented for several ranks");
  };
  if (wishes.embeddings) refuse("a model for embeddings");
  if (wishes.pictures) refuse("--mmproj");
  if (wishes.cpu_moe) refuse("--cpu-moe or --n-cpu-moe");
  if (wishes.expert_parallel.value_or(DeviceKind::cpu) != DeviceKind::cpu) {
    refuse("--enable-expert-parallel on GPUs");
  }
}

int threads_of_rank(const group::RankPlace& place, int threads) {
  if (place.local_ranks == 1 || threads > 0) return threads;
  return std::max(cpu::default_thread_count() / place.local_ranks, 1);
}

namespace {

// What lives as long as the leader's group. The other ranks end before the reach.
struct LeadersOwn {
  std::shared_ptr<Reach> reach;
  std::unique_ptr<group::Neighbours> neighbours;
};

}  // namespace

void start_group(const GroupFlags& flags, const std::filesystem::path& path,
                 const GroupTerms& terms, std::function<void(const std::string&)> on_lost,
                 engine::TextModelOptions& options) {
  const group::RankPlace place = group_place(flags);
  // Before any process is started: the library may be missing.
  const bool cpu = options.device->id().kind == DeviceKind::cpu;
  const std::string comm_id = cpu ? "" : backend_of(*options.device).make_group_id();
  const group::Descriptor shared(cpu::GroupMemory::create(place.ranks));
  const auto own = std::make_shared<LeadersOwn>();
  own->reach = std::make_shared<Reach>(cpu::GroupMemory::attach(shared.get(), 0));
  const auto end = [own, told = std::move(on_lost)](const std::string& why) {
    own->reach->end(why);
    told(why);
  };
  own->neighbours = std::make_unique<group::Neighbours>(place, process_arguments());
  group::GroupLeaderOptions leading{.ranks = place.ranks,
                                    .arguments = process_arguments(),
                                    .model = std::filesystem::absolute(path).string(),
                                    .identity = identity_of(path, terms, flags, *options.device),
                                    .shared = {shared.get()},
                                    .one_machine = cpu,
                                    .comm_id = comm_id,
                                    .on_lost = end,
                                    .times = group_times(flags)};
  if (place.meets()) leading.meeting = meeting_place(flags, place);
  auto leader = std::make_unique<group::GroupLeader>(std::move(leading));
  own->reach->join(*options.device, place, comm_id);
  log(LogLevel::info, "the group is there",
      {{"ranks", cat(place.ranks)}, {"started_by", std::string(group::name(place.launcher))}});
  options.membership = {.share = {.rank = 0, .ranks = place.ranks, .parts = flags.tensor_split},
                        .view = own->reach->view()};
  options.expert_parallel = flags.expert_parallel;
  options.group = std::make_shared<engine::TextGroup>(std::move(leader), own, own->reach->comm());
}

namespace {

// Ends a rank whose device's collective operations have failed: they may wait for ever.
class FaultWatch {
 public:
  FaultWatch(std::shared_ptr<GroupComm> comm, std::function<void(const std::string&)> on_fault) {
    if (!comm) return;
    watch_ = std::jthread([this, comm, on_fault](const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      while (!stop.stop_requested()) {
        if (const std::string why = comm->fault(); !why.empty()) return on_fault(why);
        looks_.wait_for(lock, stop, std::chrono::milliseconds(250), [] { return false; });
      }
    });
  }

 private:
  std::mutex mutex_;  // of looks_
  std::condition_variable_any looks_;
  std::jthread watch_;
};

// As run_rank(), once the leader agrees.
// options: with the rank's share.
void follow_to_the_end(const group::RankPlace& place, engine::TextModelOptions options,
                       std::optional<DType> kv_dtype, group::GroupMember& member,
                       const std::filesystem::path& path, group::RankState& state) {
  state.set(group::RankPhase::loading);
  Reach reach(member.shares() ? cpu::GroupMemory::attach(member.shared(0), place.rank) : nullptr);
  reach.join(*options.device, place, member.comm_id());
  const FaultWatch watch(reach.comm(), [&member](const std::string& why) {
    member.failed(Code::device, why);
    log(LogLevel::error, "this rank ends", {{"error", why}});
    _exit(kGroupLost);
  });
  options.membership.view = reach.view();
  const auto model = engine::load_rank_model(path, options);
  const bool cpu = options.device->id().kind == DeviceKind::cpu;
  member.loaded({.weight_bytes = model->weight_bytes(),
                 .cache_token_bytes = engine::cache_token_bytes(*model, kv_dtype).all(),
                 .free_bytes = cpu ? 0 : options.device->memory().free});
  state.set(group::RankPhase::follows);
  engine::follow(*model, *options.device, member);
}

group::GroupMemberOptions joining(const GroupFlags& flags, const group::RankPlace& place,
                                  std::function<void(const std::string&)> end) {
  group::GroupMemberOptions out{
      .place = place, .on_lost = std::move(end), .times = group_times(flags)};
  if (place.meets()) out.met = group::meet_leader(meeting_place(flags, place), out.times);
  return out;
}

}  // namespace

int run_rank(const GroupFlags& flags, const GroupTerms& terms, engine::TextModelOptions options,
             std::optional<DType> kv_dtype) {
  const group::RankPlace place = group_place(flags);
  leave_signals_to_leader();
  const auto end = [](const std::string& why) {
    log(LogLevel::error, "this rank ends", {{"error", why}});
    _exit(kGroupLost);
  };
  group::RankState state(place.rank, place.ranks);
  const group::Neighbours neighbours(place, process_arguments());
  std::unique_ptr<group::GroupMember> member;
  const auto cannot_go_on = [&](Code code, const char* why) {
    if (member) member->failed(code, why);
    if (code == Code::device) end(why);
    log(LogLevel::error, "this rank cannot go on", {{"error", why}});
    return 1;
  };
  try {
    member = std::make_unique<group::GroupMember>(joining(flags, place, end));
    const std::filesystem::path path = member->model();
    member->join(identity_of(path, terms, flags, *options.device));
    options.membership.share = {
        .rank = place.rank, .ranks = place.ranks, .parts = flags.tensor_split};
    options.expert_parallel = flags.expert_parallel;
    follow_to_the_end(place, std::move(options), kv_dtype, *member, path, state);
    return 0;
  } catch (const Error& error) {
    return cannot_go_on(error.code(), error.what());
  } catch (const std::exception& error) {
    return cannot_go_on(Code::internal, error.what());
  }
}

}  // namespace rbee::workers
