// Which rank a process is, in the environments of all launchers and in broken ones.
#include "rbee/group/place.h"

#include <gtest/gtest.h>

#include <map>

#include "rbee/core/error.h"

namespace rbee::group {
namespace {

using Environment = std::map<std::string, std::string, std::less<>>;

struct Case {
  std::string name;
  PlaceFlags flags;
  Environment environment;
  std::string expected;  // shown() of the place, or the error's text
};

std::string shown(const RankPlace& place) {
  return cat("rank ", place.rank, "/", place.ranks, " node ", place.node, "/", place.nodes,
             " local ", place.local_rank, "/", place.local_ranks, " leader ",
             place.leader.empty() ? "-" : place.leader, ":", place.port, " by ",
             name(place.launcher), place.link >= 0 ? cat(" link ", place.link) : "",
             place.first_local > 0 ? cat(" after ", place.first_local) : "");
}

std::string found(const Case& of) {
  try {
    return shown(find_place(of.flags, [&](std::string_view name) -> std::optional<std::string> {
      const auto at = of.environment.find(name);
      return at == of.environment.end() ? std::nullopt : std::optional(at->second);
    }));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument) << of.name;
    return error.what();
  }
}

constexpr const char* kAlone = "rank 0/1 node 0/1 local 0/1 leader -:29500 by no launcher";
constexpr const char* kSelf = "rank 0/2 node 0/1 local 0/2 leader -:29500 by the leader";

Environment torchrun(std::string rank, std::string ranks, Environment more = {}) {
  more["RANK"] = std::move(rank);
  more["WORLD_SIZE"] = std::move(ranks);
  return more;
}
Environment open_mpi(std::string rank, std::string ranks, Environment more = {}) {
  more["OMPI_COMM_WORLD_RANK"] = std::move(rank);
  more["OMPI_COMM_WORLD_SIZE"] = std::move(ranks);
  return more;
}
Environment slurm(std::string rank, std::string ranks, Environment more = {}) {
  more["SLURM_PROCID"] = std::move(rank);
  more["SLURM_NTASKS"] = std::move(ranks);
  return more;
}

void expect_all(const std::vector<Case>& cases) {
  for (const Case& each : cases) EXPECT_EQ(found(each), each.expected) << each.name;
}

TEST(Place, OfFlags) {
  expect_all({
      {"nothing", {}, {}, kAlone},
      {"tp 1", {.tensor_parallel_size = 1}, {}, kAlone},
      {"tp 2", {.tensor_parallel_size = 2}, {}, kSelf},
      {"tp 2 and a port",
       {.tensor_parallel_size = 2},
       {{"MASTER_PORT", "1234"}},
       "rank 0/2 node 0/1 local 0/2 leader -:1234 by the leader"},
      {"one machine", {.tensor_parallel_size = 2, .nnodes = 1, .node_rank = 0}, {}, kSelf},
      {"two machines",
       {.tensor_parallel_size = 4, .nnodes = 2, .node_rank = 1, .master_addr = "10.0.0.1"},
       {},
       "rank 2/4 node 1/2 local 0/2 leader 10.0.0.1:29500 by the leader"},
      {"a port",
       {.tensor_parallel_size = 4,
        .nnodes = 2,
        .node_rank = 0,
        .master_addr = "a",
        .master_port = 7},
       {{"MASTER_PORT", "9"}},
       "rank 0/4 node 0/2 local 0/2 leader a:7 by the leader"},
      {"two calls on one machine",
       {.tensor_parallel_size = 4, .nnodes = 2, .node_rank = 1, .master_addr = "localhost"},
       {{"LOCAL_RANK", "1"}},
       "rank 2/4 node 1/2 local 0/2 leader localhost:29500 by the leader after 2"},
      {"the first of them",
       {.tensor_parallel_size = 4, .nnodes = 2, .node_rank = 0, .master_addr = "localhost"},
       {{"LOCAL_RANK", "0"}},
       "rank 0/4 node 0/2 local 0/2 leader localhost:29500 by the leader"},
      {"more calls than machines",
       {.tensor_parallel_size = 4, .nnodes = 2, .node_rank = 1, .master_addr = "localhost"},
       {{"LOCAL_RANK", "2"}},
       "group: LOCAL_RANK is \"2\", not a number from 0 to 1"},
      {"one call has no calls before",
       {.tensor_parallel_size = 2, .nnodes = 1},
       {{"LOCAL_RANK", "1"}},
       kSelf},
      {"flags before a launcher",
       {.tensor_parallel_size = 2, .nnodes = 1},
       torchrun("1", "2"),
       kSelf},
      {"tp 0",
       {.tensor_parallel_size = 0},
       {},
       "group: --tensor-parallel-size 0 is outside of 1 to 64"},
      {"tp 65",
       {.tensor_parallel_size = 65},
       {},
       "group: --tensor-parallel-size 65 is outside of 1 to 64"},
      {"no node rank",
       {.tensor_parallel_size = 2, .nnodes = 2, .master_addr = "a"},
       {},
       "group: --nnodes 2 needs --node-rank"},
      {"no address",
       {.tensor_parallel_size = 2, .nnodes = 2, .node_rank = 0},
       {},
       "group: --nnodes 2 needs --master-addr"},
      {"uneven",
       {.tensor_parallel_size = 3, .nnodes = 2, .node_rank = 0, .master_addr = "a"},
       {},
       "group: --tensor-parallel-size 3 is not a multiple of --nnodes 2"},
      {"a node outside",
       {.tensor_parallel_size = 2, .nnodes = 2, .node_rank = 2, .master_addr = "a"},
       {},
       "group: --node-rank 2 is outside of 0 to 1"},
      {"a node of one",
       {.tensor_parallel_size = 2, .node_rank = 1},
       {},
       "group: --node-rank 1 is outside of 0 to 0 (--nnodes 1)"},
      {"a port outside",
       {.tensor_parallel_size = 2, .nnodes = 1, .master_port = 70000},
       {},
       "group: --master-port 70000 is outside of 1 to 65535"},
      {"no machines",
       {.tensor_parallel_size = 2, .nnodes = 0},
       {},
       "group: --nnodes 0 is outside of 1 to 4096"},
  });
}

TEST(Place, OfTorchrunAndMpi) {
  const PlaceFlags two{.tensor_parallel_size = 2}, four{.tensor_parallel_size = 4};
  expect_all({
      {"without a parallel size", {}, torchrun("1", "2"), kAlone},
      {"one machine", two, torchrun("1", "2", {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}),
       "rank 1/2 node 0/1 local 1/2 leader -:29500 by torchrun"},
      {"two machines", four,
       torchrun("3", "4",
                {{"LOCAL_RANK", "1"},
                 {"LOCAL_WORLD_SIZE", "2"},
                 {"MASTER_ADDR", "h"},
                 {"MASTER_PORT", "5"}}),
       "rank 3/4 node 1/2 local 1/2 leader h:5 by torchrun"},
      {"one process", two, torchrun("0", "1"), kSelf},
      {"WORLD_SIZE alone",
       two,
       {{"WORLD_SIZE", "2"}},
       "group: torchrun's variables are not whole: WORLD_SIZE=2 is there without RANK"},
      {"RANK alone",
       two,
       {{"RANK", "1"}},
       "group: torchrun's variables are not whole: RANK=1 is there without WORLD_SIZE"},
      {"a rank outside", two, torchrun("2", "2"), "group: RANK is \"2\", not a number from 0 to 1"},
      {"no number", two, torchrun("1", "two"),
       "group: WORLD_SIZE is \"two\", not a number from 1 to 64"},
      {"empty variables", two, torchrun("", ""), kSelf},
      {"another size", four, torchrun("1", "2"),
       "group: --tensor-parallel-size 4 is not WORLD_SIZE=2 of torchrun"},
      {"another local rank", two,
       torchrun("1", "2", {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}),
       "group: LOCAL_RANK=0 is not 1, the place of RANK=1 among the 2 ranks of its machine"},
      {"no address", four, torchrun("0", "4", {{"LOCAL_WORLD_SIZE", "2"}}),
       "group: torchrun started ranks on several machines and MASTER_ADDR does not name the "
       "leader's address"},
      {"a bad port", two, torchrun("0", "2", {{"MASTER_PORT", "0"}}),
       "group: MASTER_PORT is \"0\", not a number from 1 to 65535"},
      {"Open MPI", two,
       open_mpi("1", "2",
                {{"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
       "rank 1/2 node 0/1 local 1/2 leader -:29500 by Open MPI"},
      {"Open MPI, two machines", two,
       open_mpi("1", "2",
                {{"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                 {"MASTER_ADDR", "h"}}),
       "rank 1/2 node 1/2 local 0/1 leader h:29500 by Open MPI"},
      {"MPICH",
       two,
       {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}},
       "rank 0/2 node 0/1 local 0/2 leader -:29500 by MPICH"},
      {"MPICH, two machines and no address",
       two,
       {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "1"}},
       "group: MPICH started ranks on several machines and MASTER_ADDR does not name the "
       "leader's address"},
      {"two launchers that agree", two, open_mpi("1", "2", torchrun("1", "2")),
       "rank 1/2 node 0/1 local 1/2 leader -:29500 by torchrun"},
      {"two that do not", two, open_mpi("1", "2", torchrun("0", "2")),
       "group: torchrun and Open MPI disagree: RANK=0 and WORLD_SIZE=2, but "
       "OMPI_COMM_WORLD_RANK=1 and OMPI_COMM_WORLD_SIZE=2"},
  });
}

TEST(Place, OfSlurmAndKubernetes) {
  const PlaceFlags two{.tensor_parallel_size = 2}, four{.tensor_parallel_size = 4};
  expect_all({
      {"a script of one task", two, slurm("0", "1"), kSelf},
      {"one machine", two, slurm("1", "2", {{"SLURM_LOCALID", "1"}, {"SLURM_STEP_NUM_NODES", "1"}}),
       "rank 1/2 node 0/1 local 1/2 leader -:29500 by Slurm"},
      {"two machines", four,
       slurm("2", "4",
             {{"SLURM_LOCALID", "0"},
              {"SLURM_STEP_NUM_NODES", "2"},
              {"SLURM_STEP_NODELIST", "gpu[07-08,11]"},
              {"SLURM_LAUNCH_NODE_IPADDR", "10.9.9.9"}}),
       "rank 2/4 node 1/2 local 0/2 leader gpu07:29500 by Slurm"},
      {"an address before the list", four,
       slurm("2", "4",
             {{"SLURM_STEP_NUM_NODES", "2"},
              {"SLURM_STEP_NODELIST", "a,b"},
              {"MASTER_ADDR", "10.0.0.1"}}),
       "rank 2/4 node 1/2 local 0/2 leader 10.0.0.1:29500 by Slurm"},
      {"a bad list", four,
       slurm("2", "4", {{"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_NODELIST", "a[1-"}}),
       "group: the list of hosts \"a[1-\" has no ]"},
      {"uneven", four, slurm("2", "4", {{"SLURM_STEP_NUM_NODES", "3"}}),
       "group: SLURM_NTASKS=4 is not a multiple of SLURM_STEP_NUM_NODES=3"},
      {"LeaderWorkerSet",
       four,
       {{"LWS_WORKER_INDEX", "1"}, {"LWS_GROUP_SIZE", "2"}, {"LWS_LEADER_ADDRESS", "lead.svc"}},
       "rank 2/4 node 1/2 local 0/2 leader lead.svc:29500 by LeaderWorkerSet"},
      {"a set of one",
       four,
       {{"LWS_WORKER_INDEX", "0"}, {"LWS_GROUP_SIZE", "1"}},
       "rank 0/4 node 0/1 local 0/4 leader -:29500 by the leader"},
      {"a set without its leader",
       four,
       {{"LWS_WORKER_INDEX", "1"}, {"LWS_GROUP_SIZE", "2"}},
       "group: LeaderWorkerSet's variables are not whole: LWS_GROUP_SIZE=2 is there without "
       "LWS_LEADER_ADDRESS"},
      {"an uneven set",
       {.tensor_parallel_size = 3},
       {{"LWS_WORKER_INDEX", "1"}, {"LWS_GROUP_SIZE", "2"}, {"LWS_LEADER_ADDRESS", "l"}},
       "group: --tensor-parallel-size 3 is not a multiple of LWS_GROUP_SIZE=2"},
  });
}

TEST(Place, OfARankThatTheLeaderHasStarted) {
  const PlaceFlags two{.tensor_parallel_size = 2};
  const auto link = [](std::string text) {
    Environment out = torchrun("0", "2");  // the link decides
    out[kLinkVariable] = std::move(text);
    return out;
  };
  expect_all({
      {"a link", two, link("2/3/9"),
       "rank 2/3 node 0/1 local 2/3 leader -:29500 by the leader link 9"},
      {"no rank of it", two, link("0/2/9"),
       "group: RBEE_GROUP_LINK is \"0\", not a number from 1 to 1"},
      {"no descriptor", two, link("1/2/"),
       "group: RBEE_GROUP_LINK is \"\", not a number from 3 to 32767"},
      {"no link", two, link("1"), "group: RBEE_GROUP_LINK=1 is not RANK/RANKS/DESCRIPTOR"},
  });
}

TEST(Place, OfAliasesNeighboursAndTorchrunsAgent) {
  const PlaceFlags two{.tensor_parallel_size = 2}, four{.tensor_parallel_size = 4};
  const Environment set{
      {"LWS_WORKER_INDEX", "1"}, {"LWS_GROUP_SIZE", "2"}, {"LWS_LEADER_ADDRESS", "lead"}};
  Environment neighbour = set, beyond = set;
  neighbour[kLocalVariable] = "1";
  beyond[kLocalVariable] = "2";
  const auto alias = [](std::string both) {
    return PlaceFlags{
        .tensor_parallel_size = 2, .nnodes = 2, .node_rank = 1, .dist_init_addr = std::move(both)};
  };
  PlaceFlags twice = alias("h:7");
  twice.master_port = 8;
  expect_all({
      {"SGLang's name",
       alias("10.0.0.1:5000"),
       {},
       "rank 1/2 node 1/2 local 0/1 leader 10.0.0.1:5000 by the leader"},
      {"IPv6",
       alias("[fd00::1]:5000"),
       {},
       "rank 1/2 node 1/2 local 0/1 leader fd00::1:5000 by the leader"},
      {"no port", alias("h"), {}, "group: --dist-init-addr h is not ADDRESS:PORT"},
      {"no address", alias(":5"), {}, "group: --dist-init-addr :5 is not ADDRESS:PORT"},
      {"a bad port",
       alias("h:0"),
       {},
       "group: --dist-init-addr is \"0\", not a number from 1 to 65535"},
      {"both names",
       twice,
       {},
       "group: --dist-init-addr h:7 and --master-addr or --master-port are both given"},
      {"a neighbour", four, neighbour,
       "rank 3/4 node 1/2 local 1/2 leader lead:29500 by LeaderWorkerSet"},
      {"none such", four, beyond, "group: RBEE_GROUP_LOCAL is \"2\", not a number from 1 to 1"},
      {"a neighbour of flags",
       {.tensor_parallel_size = 4, .nnodes = 2, .node_rank = 0, .master_addr = "a"},
       {{kLocalVariable, "1"}},
       "rank 1/4 node 0/2 local 1/2 leader a:29500 by the leader"},
      {"torchrun's agent has the port", two,
       torchrun("1", "2", {{"MASTER_PORT", "5"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
       "rank 1/2 node 0/1 local 1/2 leader -:6 by torchrun"},
      {"and has not", two,
       torchrun("1", "2", {{"MASTER_PORT", "5"}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}}),
       "rank 1/2 node 0/1 local 1/2 leader -:5 by torchrun"},
  });
}

TEST(Place, WhoMeetsTheLeader) {
  const auto place = [](Environment environment, PlaceFlags flags) {
    return find_place(flags, [&](std::string_view name) -> std::optional<std::string> {
      const auto at = environment.find(name);
      return at == environment.end() ? std::nullopt : std::optional(at->second);
    });
  };
  const PlaceFlags two{.tensor_parallel_size = 2};
  EXPECT_FALSE(place({}, two).meets());
  EXPECT_FALSE(place({{kLinkVariable, "1/2/9"}}, two).meets());
  EXPECT_TRUE(place(torchrun("1", "2"), two).meets());
  EXPECT_FALSE(place(torchrun("0", "2"), two).starts_neighbours());
  const PlaceFlags machines{
      .tensor_parallel_size = 4, .nnodes = 2, .node_rank = 1, .master_addr = "a"};
  EXPECT_TRUE(place({}, machines).starts_neighbours());
  EXPECT_FALSE(place({{kLocalVariable, "1"}}, machines).starts_neighbours());
  EXPECT_TRUE(place({{kLocalVariable, "1"}}, machines).meets());
}

TEST(Place, FirstHostsOfLists) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"a", "a"},          {"a,b", "a"},   {"a[1-3,7],b", "a1"}, {"n[001-120]-ib", "n001-ib"},
      {"x1,y[1-2]", "x1"}, {"g[9]", "g9"},
  };
  for (const auto& [list, host] : cases) EXPECT_EQ(first_host(list), host) << list;
  for (const char* const bad : {"", ",a", "a[", "a[]", "a[x]", "a]", "a[1][2]"}) {
    EXPECT_THROW(first_host(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace rbee::group
