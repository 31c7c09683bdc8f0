#pragma once
// Which device each rank of a group has.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/registry.h"
#include "rbee/group/place.h"

namespace rbee::workers {

// The device of each rank of a process's part of this machine, in their order; before: ranks of the
// machine that others start, whose devices come first (RankPlace::first_local). text: as --device
// has it.
//
//   cuda:2         that one and those after it, without the first `before`
//   cuda:2,cuda:0  these; the kind may be left out after the first
//   auto           of the kind with most devices, likewise; CPUs if there is no GPU
//   cpu            every rank the CPU
//
// Throws invalid_argument for a text that is none of this, a device twice, and a number of devices
// that is not that of the ranks, and not_found if there are too few.
std::vector<DeviceId> rank_devices(std::span<const BackendInfo> backends, std::string_view text,
                                   int ranks, int before = 0);

}  // namespace rbee::workers
