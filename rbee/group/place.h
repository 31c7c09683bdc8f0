#pragma once
// Which rank of a group this process is: read from flags and from what launchers leave in the
// environment (torchrun, LeaderWorkerSet, Slurm, Open MPI, MPICH, Intel MPI).

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rbee::group {

inline constexpr int kMostRanks = 64;
inline constexpr int kDefaultPort = 29500;

// Flags by vLLM's names. Absent: not given.
struct PlaceFlags {
  int tensor_parallel_size = 1;  // ranks
  std::optional<int> nnodes;     // machines
  std::optional<int> node_rank;  // this machine
  std::string master_addr;       // the leader's address; empty: not given
  std::optional<int> master_port;
  std::string dist_init_addr;  // SGLang's name for both, "ADDRESS:PORT"; empty: not given
};

// Who starts the processes of a group.
enum class Launcher : uint8_t {
  none,  // no group: one rank
  self,  // the leader starts the other ranks of its machine
  torchrun,
  lws,  // LeaderWorkerSet
  slurm,
  open_mpi,
  mpich,  // and Intel MPI
};
std::string_view name(Launcher launcher);  // "torchrun", "LeaderWorkerSet", ...

struct RankPlace {
  int rank = 0;
  int ranks = 1;
  int node = 0;  // machine
  int nodes = 1;
  int local_rank = 0;       // on this machine
  int local_ranks = 1;      // ranks of this machine
  std::string leader = {};  // address of rank 0's machine; empty: this machine
  int port = kDefaultPort;  // that the leader listens on
  Launcher launcher = Launcher::none;
  int link = -1;  // of a rank that the leader has started: the descriptor of its socket to it
  // Of several calls with --nnodes on one machine: ranks of the calls before, whose devices are
  // taken. LOCAL_RANK counts the calls, as torchrun sets it.
  int first_local = 0;

  // The ranks were started apart from the leader, and meet it at its address and port.
  bool meets() const { return ranks > 1 && link < 0 && (nodes > 1 || launcher > Launcher::self); }
  // This process starts the other ranks of its machine, which then meet the leader too.
  bool starts_neighbours() const {
    return meets() && local_ranks > 1 && local_rank == 0 &&
           (launcher == Launcher::self || launcher == Launcher::lws);
  }
};

// Tells a rank that the leader starts what it is: "RANK/RANKS/DESCRIPTOR".
inline constexpr const char* kLinkVariable = "RBEE_GROUP_LINK";
// Tells a rank that the first one of its machine starts which of the machine's ranks it is.
inline constexpr const char* kLocalVariable = "RBEE_GROUP_LOCAL";

// The value of a variable; absent or empty: not set.
using Variables = std::function<std::optional<std::string>(std::string_view name)>;

// kLinkVariable decides alone. Else the flags come first, beside which LOCAL_RANK alone counts,
// then the launchers in the order of the enum. Where torchrun's own agent listens on MASTER_PORT
// (TORCHELASTIC_USE_AGENT_STORE=True), the port is the next one. Without a parallel size above 1
// the variables are ignored: several workers, each for itself, may be started by one launcher.
// Throws invalid_argument, naming flags or variables and their values: for values out of range, a
// launcher's variables that are not whole, launchers that disagree, and a number of ranks that is
// not the parallel size.
RankPlace find_place(const PlaceFlags& flags, const Variables& variables);

// The first host of a list like Slurm's: "a[1-3,7],b" -> "a1". Throws invalid_argument.
std::string first_host(std::string_view list);

}  // namespace rbee::group
