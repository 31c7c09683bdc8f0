#include "workers/common/group_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "rbee/core/error.h"

namespace rbee::workers {

void add_group_flags(CLI::App& app, group::PlaceFlags& flags) {
  app.add_option("--tensor-parallel-size", flags.tensor_parallel_size,
                 "Processes that hold the model together, each a part of every layer; also -tp")
      ->check(CLI::Range(1, group::kMostRanks))
      ->capture_default_str();
  app.add_flag_callback(
      "--nvls",
      // Before other threads; the ranks inherit it. NOLINTNEXTLINE(concurrency-mt-unsafe)
      [] { setenv("NCCL_NVLS_ENABLE", "2", 1); },
      "Lets NVIDIA GPUs of a group use NVLink's multicast");
  app.add_option("--nnodes", flags.nnodes, "Machines of the group; only 1 is implemented");
  app.add_option("--node-rank", flags.node_rank, "This machine's number among them, from 0 on");
  app.add_option("--master-addr", flags.master_addr, "Address of machine 0");
  app.add_option("--master-port", flags.master_port, "Port there");
}

group::RankPlace group_place(const group::PlaceFlags& flags) {
  const group::RankPlace place =
      group::find_place(flags, [](std::string_view name) -> std::optional<std::string> {
        const char* const value = std::getenv(std::string(name).c_str());
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
      });
  if (place.nodes > 1) {
    fail(Code::unsupported, "group", "ranks on ", place.nodes,
         " machines are not implemented: all must be on one");
  }
  if (place.launcher != group::Launcher::none && place.launcher != group::Launcher::self) {
    fail(Code::unsupported, "group", "ranks that ", group::name(place.launcher),
         " starts are not implemented: start one process, which starts the ", place.ranks - 1,
         " others itself");
  }
  return place;
}

void check_group_flags(const group::PlaceFlags& flags) {
  try {
    (void)group_place(flags);
  } catch (const Error& error) {
    throw CLI::ValidationError("--tensor-parallel-size", error.what());
  }
}

}  // namespace rbee::workers
