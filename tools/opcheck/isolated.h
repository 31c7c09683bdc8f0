#pragma once
// Cases in child processes: a memory fault of a GPU ends the process, and a kernel may never end.

#include <vector>

#include "tools/opcheck/cases.h"

namespace rbee::harness {

inline constexpr int kEndedProcess = 3;  // exit status: a case ended its process, or did not end

// As check_cases for each table, with the device opened in children alone. Every operation has a
// child; where a case ends it, that is told and another child goes on behind the case.
// Returns the exit status.
int check_isolated(const std::vector<const OpTable*>& tables, const Options& options);

}  // namespace rbee::harness
