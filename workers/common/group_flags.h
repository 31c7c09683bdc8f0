#pragma once
// The flags of a model that several ranks hold. Names are vLLM's, torchrun's and llama.cpp's.

#include <string>
#include <vector>

#include "rbee/group/meeting.h"
#include "rbee/group/place.h"

namespace CLI {
class App;
}

namespace rbee::workers {

struct GroupFlags {
  group::PlaceFlags place;
  std::vector<double> tensor_split;  // sizes of the ranks' parts, relative; empty: equal
  std::string secret_file;           // empty: the secret is in RBEE_GROUP_SECRET, or there is none
  bool insecure = false;             // none is needed off loopback
  bool expert_parallel = false;      // see models::LoadOptions
  int seconds = 600;                 // for the ranks to come
};

// Adds --tensor-parallel-size, --tensor-split, --enable-expert-parallel, --nvls, --nnodes,
// --node-rank, --master-addr, --master-port, --dist-init-addr, --group-secret-file,
// --group-insecure and --group-seconds.
void add_group_flags(CLI::App& app, GroupFlags& flags);

// The place of this process, by the flags and the environment. Throws as group::find_place().
group::RankPlace group_place(const GroupFlags& flags);
// The same, and --tensor-split, as a check of the command line: throws CLI::ValidationError.
void check_group_flags(const GroupFlags& flags);

// Where ranks that others start meet the leader. Throws not_found and io for the secret's file, and
// invalid_argument for an empty one.
group::MeetingPlace meeting_place(const GroupFlags& flags, const group::RankPlace& place);
group::GroupTimes group_times(const GroupFlags& flags);

}  // namespace rbee::workers
