#include "rbee/group/place.h"

#include <charconv>
#include <vector>

#include "rbee/core/error.h"

namespace rbee::group {
namespace {

constexpr std::string_view kOp = "group";
constexpr int kMostMachines = 4096;
constexpr int kMostPorts = 65535;

// A set variable and its value.
struct Variable {
  std::string name;
  std::string value;
};

std::optional<Variable> find(const Variables& variables, std::string_view name) {
  if (name.empty()) return std::nullopt;
  std::optional<std::string> value = variables(name);
  if (!value || value->empty()) return std::nullopt;
  return Variable{std::string(name), std::move(*value)};
}

int number(const Variable& variable, int least, int most) {
  const std::string& text = variable.value;
  int out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  check(error == std::errc{} && end == text.data() + text.size() && out >= least && out <= most,
        kOp, variable.name, " is \"", text, "\", not a number from ", least, " to ", most);
  return out;
}

// What one launcher says of a process. The names of the variables go into messages.
struct Told {
  RankPlace place;
  std::string rank, ranks;  // "NAME=value"
};

std::string shown(const Variable& variable) {
  return cat(variable.name, "=", variable.value);
}

// The names of a launcher's variables; of those that say how many ranks a machine has, one or none
// is there.
struct Names {
  Launcher launcher;
  std::string_view rank, ranks, local_rank, local_ranks, nodes;
};

// A launcher that starts each rank.
constexpr Names kByRank[] = {
    {Launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", ""},
    {Launcher::slurm, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", "SLURM_STEP_NUM_NODES"},
    {Launcher::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", ""},
    {Launcher::mpich, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ""},
};

// Both, or neither.
std::optional<std::pair<Variable, Variable>> find_pair(const Variables& variables,
                                                       const Names& names) {
  std::optional<Variable> rank = find(variables, names.rank), ranks = find(variables, names.ranks);
  if (!rank && !ranks) return std::nullopt;
  if (!rank || !ranks) {
    fail(Code::invalid_argument, kOp, name(names.launcher),
         "'s variables are not whole: ", shown(rank ? *rank : *ranks), " is there without ",
         rank ? names.ranks : names.rank);
  }
  return std::pair(std::move(*rank), std::move(*ranks));
}

// Where the leader is reached, of a group on several machines.
std::string leader_of(const Variables& variables, Launcher launcher) {
  if (const auto address = find(variables, "MASTER_ADDR")) return address->value;
  if (launcher == Launcher::slurm) {
    // Not SLURM_LAUNCH_NODE_IPADDR, which is srun's host.
    if (const auto hosts = find(variables, "SLURM_STEP_NODELIST")) return first_host(hosts->value);
  }
  fail(Code::invalid_argument, kOp, name(launcher),
       " started ranks on several machines and MASTER_ADDR does not name the leader's address");
}

// How many of `ranks` are on this machine.
int local_ranks(const Variables& variables, const Names& names, const Variable& ranks) {
  const int all = number(ranks, 1, kMostRanks);
  if (const auto count = find(variables, names.local_ranks)) return number(*count, 1, all);
  const auto nodes = find(variables, names.nodes);
  if (!nodes) return all;
  const int there = number(*nodes, 1, kMostMachines);
  check(all % there == 0, kOp, shown(ranks), " is not a multiple of ", shown(*nodes));
  return all / there;
}

std::optional<Told> told_by_rank(const Variables& variables, const Names& names) {
  const auto pair = find_pair(variables, names);
  if (!pair) return std::nullopt;
  Told out{.place = {.launcher = names.launcher},
           .rank = shown(pair->first),
           .ranks = shown(pair->second)};
  RankPlace& place = out.place;
  place.ranks = number(pair->second, 1, kMostRanks);
  place.rank = number(pair->first, 0, place.ranks - 1);
  if (place.ranks == 1) return std::nullopt;  // it starts one process
  place.local_ranks = local_ranks(variables, names, pair->second);
  check(place.ranks % place.local_ranks == 0, kOp, out.ranks, " is not a multiple of ",
        place.local_ranks, ", the ranks of this machine");
  place.nodes = place.ranks / place.local_ranks;
  place.node = place.rank / place.local_ranks;
  place.local_rank = place.rank % place.local_ranks;
  if (const auto local = find(variables, names.local_rank)) {
    check(number(*local, 0, place.ranks - 1) == place.local_rank, kOp, shown(*local), " is not ",
          place.local_rank, ", the place of ", out.rank, " among the ", place.local_ranks,
          " ranks of its machine");
  }
  if (place.nodes > 1) place.leader = leader_of(variables, names.launcher);
  return out;
}

// A launcher that starts a process on each machine.
std::optional<Told> told_by_lws(const Variables& variables, int ranks) {
  const Names names{Launcher::lws, "LWS_WORKER_INDEX", "LWS_GROUP_SIZE", "", "", ""};
  const auto pair = find_pair(variables, names);
  if (!pair) return std::nullopt;
  const int nodes = number(pair->second, 1, kMostMachines);
  if (nodes == 1) return std::nullopt;
  const auto leader = find(variables, "LWS_LEADER_ADDRESS");
  check(leader.has_value(), kOp, "LeaderWorkerSet's variables are not whole: ", shown(pair->second),
        " is there without LWS_LEADER_ADDRESS");
  check(ranks % nodes == 0, kOp, "--tensor-parallel-size ", ranks, " is not a multiple of ",
        shown(pair->second));
  Told out{.place = {.node = number(pair->first, 0, nodes - 1), .nodes = nodes},
           .rank = shown(pair->first),
           .ranks = shown(pair->second)};
  out.place.ranks = ranks;
  out.place.local_ranks = ranks / nodes;
  out.place.rank = out.place.node * out.place.local_ranks;
  out.place.leader = leader->value;
  out.place.launcher = Launcher::lws;
  return out;
}

void check_same(const Told& one, const Told& other) {
  if (one.place.rank == other.place.rank && one.place.ranks == other.place.ranks) return;
  fail(Code::invalid_argument, kOp, name(one.place.launcher), " and ", name(other.place.launcher),
       " disagree: ", one.rank, " and ", one.ranks, ", but ", other.rank, " and ", other.ranks);
}

// The first launcher that started this process; the others must agree.
std::optional<Told> told_by_launcher(const Variables& variables, int ranks) {
  std::vector<Told> all;
  const auto add = [&](std::optional<Told> told) {
    if (told) all.push_back(std::move(*told));
  };
  for (const Names& names : kByRank) {
    add(told_by_rank(variables, names));
    if (names.launcher == Launcher::torchrun) add(told_by_lws(variables, ranks));
  }
  if (all.empty()) return std::nullopt;
  for (const Told& other : all) check_same(all.front(), other);
  return std::move(all.front());
}

// "ADDRESS:PORT", where an address of IPv6 is in brackets.
PlaceFlags with_alias(PlaceFlags flags) {
  const std::string& both = flags.dist_init_addr;
  if (both.empty()) return flags;
  check(flags.master_addr.empty() && !flags.master_port, kOp, "--dist-init-addr ", both,
        " and --master-addr or --master-port are both given");
  const size_t colon = both.rfind(':');
  check(colon != std::string::npos && colon > 0, kOp, "--dist-init-addr ", both,
        " is not ADDRESS:PORT");
  flags.master_port = number({"--dist-init-addr", both.substr(colon + 1)}, 1, kMostPorts);
  flags.master_addr = both.substr(0, colon);
  if (flags.master_addr.front() == '[' && flags.master_addr.back() == ']') {
    flags.master_addr = flags.master_addr.substr(1, flags.master_addr.size() - 2);
  }
  return flags;
}

int port_of(const PlaceFlags& flags, const Variables& variables, Launcher launcher) {
  if (flags.master_port) {
    check(*flags.master_port >= 1 && *flags.master_port <= kMostPorts, kOp, "--master-port ",
          *flags.master_port, " is outside of 1 to ", kMostPorts);
    return *flags.master_port;
  }
  const auto port = find(variables, "MASTER_PORT");
  if (!port) return kDefaultPort;
  const int out = number(*port, 1, kMostPorts);
  const auto agent = find(variables, "TORCHELASTIC_USE_AGENT_STORE");
  const bool taken = launcher == Launcher::torchrun && agent && agent->value == "True";
  if (!taken) return out;
  return out < kMostPorts ? out + 1 : out - 1;
}

// A rank that the first one of its machine has started.
void be_neighbour(RankPlace& place, const Variables& variables) {
  const auto local = find(variables, kLocalVariable);
  if (!local || !place.starts_neighbours()) return;
  place.local_rank = number(*local, 1, place.local_ranks - 1);
  place.rank += place.local_rank;
}

// A rank that the leader has started: "RANK/RANKS/DESCRIPTOR".
RankPlace linked(const Variable& link) {
  const std::string& text = link.value;
  const size_t first = text.find('/'), second = text.find('/', first + 1);
  check(first != std::string::npos && second != std::string::npos, kOp, shown(link),
        " is not RANK/RANKS/DESCRIPTOR");
  const int ranks = number({link.name, text.substr(first + 1, second - first - 1)}, 2, kMostRanks);
  const int rank = number({link.name, text.substr(0, first)}, 1, ranks - 1);
  return {.rank = rank,
          .ranks = ranks,
          .local_rank = rank,
          .local_ranks = ranks,
          .launcher = Launcher::self,
          .link = number({link.name, text.substr(second + 1)}, 3, INT16_MAX)};
}

RankPlace of_flags(const PlaceFlags& flags, const Variables& variables) {
  const int ranks = flags.tensor_parallel_size, nodes = flags.nnodes.value_or(1);
  check(nodes >= 1 && nodes <= kMostMachines, kOp, "--nnodes ", nodes, " is outside of 1 to ",
        kMostMachines);
  if (nodes == 1) {
    check(flags.node_rank.value_or(0) == 0, kOp, "--node-rank ", *flags.node_rank,
          " is outside of 0 to 0 (--nnodes 1)");
    return {.ranks = ranks, .local_ranks = ranks, .launcher = Launcher::self};
  }
  check(ranks % nodes == 0, kOp, "--tensor-parallel-size ", ranks,
        " is not a multiple of --nnodes ", nodes);
  check(flags.node_rank.has_value(), kOp, "--nnodes ", nodes, " needs --node-rank");
  check(*flags.node_rank >= 0 && *flags.node_rank < nodes, kOp, "--node-rank ", *flags.node_rank,
        " is outside of 0 to ", nodes - 1);
  check(!flags.master_addr.empty(), kOp, "--nnodes ", nodes, " needs --master-addr");
  const int each = ranks / nodes;
  const auto call = find(variables, "LOCAL_RANK");
  return {.rank = *flags.node_rank * each,
          .ranks = ranks,
          .node = *flags.node_rank,
          .nodes = nodes,
          .local_ranks = each,
          .leader = flags.master_addr,
          .launcher = Launcher::self,
          .first_local = call ? number(*call, 0, nodes - 1) * each : 0};
}

}  // namespace

std::string_view name(Launcher launcher) {
  switch (launcher) {
    case Launcher::none:
      return "no launcher";
    case Launcher::self:
      return "the leader";
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::lws:
      return "LeaderWorkerSet";
    case Launcher::slurm:
      return "Slurm";
    case Launcher::open_mpi:
      return "Open MPI";
    case Launcher::mpich:
      return "MPICH";
  }
  return "";
}

RankPlace find_place(const PlaceFlags& given, const Variables& variables) {
  if (const auto link = find(variables, kLinkVariable)) return linked(*link);
  const PlaceFlags flags = with_alias(given);
  const int ranks = flags.tensor_parallel_size;
  check(ranks >= 1 && ranks <= kMostRanks, kOp, "--tensor-parallel-size ", ranks,
        " is outside of 1 to ", kMostRanks);
  if (ranks == 1 && flags.nnodes.value_or(1) == 1) return {};
  RankPlace out;
  if (flags.nnodes || flags.node_rank || !flags.master_addr.empty()) {
    out = of_flags(flags, variables);
  } else {
    const std::optional<Told> told = told_by_launcher(variables, ranks);
    out = told ? told->place : of_flags(flags, variables);
    check(out.ranks == ranks, kOp, "--tensor-parallel-size ", ranks, " is not ",
          told ? told->ranks : "", " of ", name(out.launcher));
  }
  out.port = port_of(flags, variables, out.launcher);
  be_neighbour(out, variables);
  return out;
}

std::string first_host(std::string_view list) {
  const size_t open = list.find_first_of("[,");
  if (open == std::string_view::npos || list[open] == ',') {
    const std::string_view host = list.substr(0, open);
    check(!host.empty() && host.find(']') == std::string_view::npos, kOp, "the list of hosts \"",
          list, "\" begins with no host");
    return std::string(host);
  }
  const size_t close = list.find(']', open);
  check(close != std::string_view::npos, kOp, "the list of hosts \"", list, "\" has no ]");
  const std::string_view inside = list.substr(open + 1, close - open - 1);
  const std::string_view first = inside.substr(0, inside.find_first_of("-,"));
  check(!first.empty() && first.find_first_not_of("0123456789") == std::string_view::npos, kOp,
        "the list of hosts \"", list, "\" has no number after [");
  const std::string_view rest = list.substr(close + 1);
  const std::string_view suffix = rest.substr(0, rest.find(','));
  check(suffix.find('[') == std::string_view::npos, kOp, "the list of hosts \"", list,
        "\" has two brackets in a name");
  return cat(list.substr(0, open), first, suffix);
}

}  // namespace rbee::group
