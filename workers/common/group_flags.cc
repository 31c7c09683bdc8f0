#include "workers/common/group_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/group/share.h"

namespace rbee::workers {
namespace {

std::optional<std::string> variable(std::string_view name) {
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Without the end of its last line, which editors add.
std::string secret_in(const std::string& path) {
  std::string out = read_file(path);
  while (!out.empty() && (out.back() == '\n' || out.back() == '\r')) out.pop_back();
  check(!out.empty(), "--group-secret-file", path, " is empty");
  return out;
}

}  // namespace

void add_group_flags(CLI::App& app, GroupFlags& flags) {
  constexpr int kMostSeconds = 86'400;
  group::PlaceFlags& place = flags.place;
  app.add_option("--tensor-parallel-size", place.tensor_parallel_size,
                 "Processes that hold the model together, each a part of every layer; also -tp")
      ->check(CLI::Range(1, group::kMostRanks))
      ->capture_default_str();
  app.add_option("--tensor-split", flags.tensor_split,
                 "Sizes of the processes' parts beside each other, as 3,1; equal by default")
      ->delimiter(',');
  app.add_flag("--enable-expert-parallel", flags.expert_parallel,
               "Each process holds a range of the experts whole, not a part of each");
  app.add_flag_callback(
      "--nvls",
      // Before other threads; the ranks inherit it. NOLINTNEXTLINE(concurrency-mt-unsafe)
      [] { setenv("NCCL_NVLS_ENABLE", "2", 1); },
      "Let the NVIDIA GPUs of a group use NVLink's multicast");
  app.add_option(
      "--nnodes", place.nnodes,
      "How many machines, or calls of this program, start the processes; each starts its own");
  app.add_option("--node-rank", place.node_rank, "This machine's number among them, from 0 on");
  app.add_option("--master-addr", place.master_addr,
                 "Address of machine 0, by which the others reach it");
  app.add_option("--master-port", place.master_port, "Port there; 29500 by default");
  app.add_option("--dist-init-addr", place.dist_init_addr,
                 "--master-addr and --master-port, as ADDRESS:PORT");
  app.add_option("--group-secret-file", flags.secret_file,
                 "File with a secret that all processes know; else RBEE_GROUP_SECRET has it")
      ->check(CLI::ExistingFile);
  app.add_flag("--group-insecure", flags.insecure, "Need no secret, even off loopback");
  app.add_option("--group-seconds", flags.seconds, "Time for the processes to connect")
      ->check(CLI::Range(1, kMostSeconds))
      ->capture_default_str();
}

group::RankPlace group_place(const GroupFlags& flags) {
  return group::find_place(flags.place, variable);
}

void check_group_flags(const GroupFlags& flags) {
  try {
    const group::RankPlace place = group_place(flags);
    const group::Share share{.ranks = place.ranks, .parts = flags.tensor_split};
    try {
      group::check_share(share);
    } catch (const Error& error) {
      throw CLI::ValidationError("--tensor-split", error.what());
    }
  } catch (const Error& error) {
    throw CLI::ValidationError("--tensor-parallel-size", error.what());
  }
}

group::MeetingPlace meeting_place(const GroupFlags& flags, const group::RankPlace& place) {
  return {.address = place.leader.empty() ? "127.0.0.1" : place.leader,
          .port = place.port,
          .secret = flags.secret_file.empty() ? variable("RBEE_GROUP_SECRET").value_or("")
                                              : secret_in(flags.secret_file),
          .insecure = flags.insecure};
}

group::GroupTimes group_times(const GroupFlags& flags) {
  return {.start = std::chrono::seconds(flags.seconds)};
}

}  // namespace rbee::workers
