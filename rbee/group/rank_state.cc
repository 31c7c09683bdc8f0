#include "rbee/group/rank_state.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/core/log.h"
#include "rbee/core/system/process.h"

namespace rbee::group {
namespace {

namespace fs = std::filesystem;

constexpr RankPhase kPhases[] = {RankPhase::waits, RankPhase::loading, RankPhase::follows};

// Another user could have made a folder of this name in /tmp.
bool is_own(const fs::path& folder) {
  struct stat facts{};
  return lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
         facts.st_uid == geteuid() && (facts.st_mode & 077) == 0;
}

// "RANK RANKS PHASE"
std::optional<RankReport> read_report(const fs::path& file) {
  RankReport out;
  const std::string process = file.filename().string();
  const auto [end, error] =
      std::from_chars(process.data(), process.data() + process.size(), out.process);
  if (error != std::errc{} || end != process.data() + process.size()) return std::nullopt;
  std::istringstream text(read_file(file));
  std::string phase;
  if (!(text >> out.rank >> out.ranks >> phase)) return std::nullopt;
  for (const RankPhase each : kPhases) {
    if (name(each) == phase) out.phase = each;
  }
  return out;
}

}  // namespace

std::string_view name(RankPhase phase) {
  switch (phase) {
    case RankPhase::waits:
      return "waits";
    case RankPhase::loading:
      return "loading";
    case RankPhase::follows:
      return "follows";
  }
  return "";
}

fs::path rank_folder() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') return fs::path(runtime) / "rbee";
  return cat("/tmp/rbee-", geteuid());
}

RankState::RankState(int rank, int ranks, fs::path folder)
    : rank_(rank), ranks_(ranks), file_(folder / std::to_string(getpid())) {
  mkdir(folder.c_str(), 0700);
  if (!is_own(folder)) {
    log(LogLevel::warn, "the rank's state cannot be told: its folder is not this user's alone",
        {{"folder", folder.string()}});
    return;
  }
  set(RankPhase::waits);
}

RankState::~RankState() {
  std::error_code ignored;
  fs::remove(file_, ignored);
}

void RankState::set(RankPhase phase) {
  if (!is_own(file_.parent_path())) return;
  // Whole or not at all: a reader may come at any time.
  const fs::path next = cat(file_.string(), ".next");
  std::ofstream(next) << rank_ << ' ' << ranks_ << ' ' << name(phase) << '\n';
  std::error_code ignored;
  fs::rename(next, file_, ignored);
}

std::vector<RankReport> ranks_here(const fs::path& folder) {
  std::vector<RankReport> out;
  if (!is_own(folder)) return out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    try {
      std::optional<RankReport> report = read_report(entry.path());
      if (!report) continue;
      const ProcessState state = process_state(report->process);
      std::error_code ignored;
      if (state == ProcessState::none) fs::remove(entry.path(), ignored);
      if (state == ProcessState::none || state == ProcessState::ended) continue;
      report->stopped = state == ProcessState::stopped;
      out.push_back(*report);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      // It has ended meanwhile.
    }
  }
  std::ranges::sort(out, {}, &RankReport::rank);
  return out;
}

}  // namespace rbee::group
