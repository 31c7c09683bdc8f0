#pragma once
// The flags of a model that several ranks hold. Names are vLLM's.

#include <string>
#include <vector>

#include "rbee/group/place.h"

namespace CLI {
class App;
}

namespace rbee::workers {

// Adds --tensor-parallel-size, --nvls, --nnodes, --node-rank, --master-addr and --master-port.
void add_group_flags(CLI::App& app, group::PlaceFlags& flags);

// The place of this process, by the flags and the environment. Throws as group::find_place(), and
// unsupported for groups that are not implemented: ranks on several machines, and ranks that a
// launcher starts.
group::RankPlace group_place(const group::PlaceFlags& flags);
// The same, as a check of the command line: throws CLI::ValidationError.
void check_group_flags(const group::PlaceFlags& flags);

}  // namespace rbee::workers
