// rbee group-health: whether the ranks of this machine work, for probes that run a command.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "rbee/group/rank_state.h"

namespace rbee::tools {
namespace {

int tell_health(bool ready) {
  const std::vector<group::RankReport> ranks = group::ranks_here();
  if (ranks.empty()) std::printf("no rank of a group but a leader runs here\n");
  bool well = !ranks.empty();
  for (const group::RankReport& each : ranks) {
    const std::string_view phase = each.stopped ? "is stopped" : group::name(each.phase);
    std::printf("rank %d of %d, process %d: %.*s\n", each.rank, each.ranks, each.process,
                static_cast<int>(phase.size()), phase.data());
    if (each.stopped || (ready && each.phase != group::RankPhase::follows)) well = false;
  }
  return well ? 0 : 1;
}

}  // namespace

Command add_group_health(CLI::App& parent) {
  const auto ready = std::make_shared<bool>(false);
  CLI::App* app = parent.add_subcommand(
      "group-health", "list the ranks of this machine that have no port; exit status 0: they work");
  app->add_flag("--ready", *ready, "they must also have loaded the model");
  return {app, [ready] { return tell_health(*ready); }};
}

}  // namespace rbee::tools
