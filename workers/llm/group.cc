#include "workers/llm/group.h"

#include <openssl/evp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>

#include "backends/cpu/group_memory.h"
#include "backends/cpu/thread_pool.h"
#include "rbee/core/hex.h"
#include "rbee/core/input_file.h"
#include "rbee/core/log.h"
#include "rbee/engine/text/group/follower.h"
#include "rbee/engine/text/step/stepper.h"
#include "rbee/group/member.h"
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

group::Identity identity_of(const std::filesystem::path& path, const GroupTerms& terms,
                            const Device& device) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  return {.build = terms.program,
          .model = digest_of(checkpoint),
          .flags = terms.flags,
          .device = std::string(name(device.id().kind))};
}

// The arguments that this process was started with.
std::vector<std::string> own_command_line() {
  const std::string all = read_file("/proc/self/cmdline");
  std::vector<std::string> out;
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\0', at), all.size());
    out.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// The leader ends this process. Signals of a terminal or a service go to all of its processes, and
// the leader still has answers to finish.
void leave_signals_to_leader() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
}

}  // namespace

void check_group(const group::RankPlace& place, const Device& device, const GroupWishes& wishes) {
  if (place.ranks == 1) return;
  const auto refuse = [&](const auto&... what) {
    fail(Code::unsupported, "--tensor-parallel-size", what...,
         " is not implemented for several ranks");
  };
  if (device.id().kind != DeviceKind::cpu)
    refuse("a device other than the CPU, ", device.id(), ",");
  if (wishes.embeddings) refuse("a model for embeddings");
  if (wishes.pictures) refuse("--mmproj");
  if (wishes.cpu_moe) refuse("--cpu-moe or --n-cpu-moe");
}

int threads_of_rank(const group::RankPlace& place, int threads) {
  if (place.local_ranks == 1 || threads > 0) return threads;
  return std::max(cpu::default_thread_count() / place.local_ranks, 1);
}

void start_group(const group::RankPlace& place, const std::filesystem::path& path,
                 const GroupTerms& terms, std::function<void(const std::string&)> on_lost,
                 engine::TextModelOptions& options) {
  const group::Descriptor shared(cpu::GroupMemory::create(place.ranks));
  const std::shared_ptr<cpu::GroupMemory> memory = cpu::GroupMemory::attach(shared.get(), 0);
  const auto end = [memory, told = std::move(on_lost)](const std::string& why) {
    memory->end(why);
    told(why);
  };
  auto leader = std::make_unique<group::GroupLeader>(
      group::GroupLeaderOptions{.ranks = place.ranks,
                                .arguments = own_command_line(),
                                .model = std::filesystem::absolute(path).string(),
                                .identity = identity_of(path, terms, *options.device),
                                .shared = {shared.get()},
                                .on_lost = end});
  log(LogLevel::info, "the group is there", {{"ranks", cat(place.ranks)}});
  options.membership = {.share = {.rank = 0, .ranks = place.ranks}, .view = memory->view()};
  options.group = std::make_shared<engine::TextGroup>(std::move(leader), memory);
}

namespace {

// As run_rank(), once the leader agrees.
void follow_to_the_end(const group::RankPlace& place, engine::TextModelOptions options,
                       std::optional<DType> kv_dtype, group::GroupMember& member,
                       const std::filesystem::path& path) {
  const std::unique_ptr<cpu::GroupMemory> memory =
      cpu::GroupMemory::attach(member.shared(0), place.rank);
  options.membership = {.share = {.rank = place.rank, .ranks = place.ranks},
                        .view = memory->view()};
  const auto model = engine::load_rank_model(path, options);
  member.loaded({.weight_bytes = model->weight_bytes(),
                 .cache_token_bytes = engine::cache_token_bytes(*model, kv_dtype).all()});
  engine::follow(*model, *options.device, member);
}

}  // namespace

int run_rank(const group::RankPlace& place, const GroupTerms& terms,
             const engine::TextModelOptions& options, std::optional<DType> kv_dtype) {
  leave_signals_to_leader();
  const auto end = [](const std::string& why) {
    log(LogLevel::error, "this rank ends", {{"error", why}});
    _exit(kGroupLost);
  };
  group::GroupMember member({.place = place, .on_lost = end});
  const auto cannot_go_on = [&](Code code, const char* why) {
    member.failed(code, why);
    if (code == Code::device) end(why);
    log(LogLevel::error, "this rank cannot go on", {{"error", why}});
    return 1;
  };
  try {
    const std::filesystem::path path = member.model();
    member.join(identity_of(path, terms, *options.device));
    follow_to_the_end(place, options, kv_dtype, member, path);
    return 0;
  } catch (const Error& error) {
    return cannot_go_on(error.code(), error.what());
  } catch (const std::exception& error) {
    return cannot_go_on(Code::internal, error.what());
  }
}

}  // namespace rbee::workers
