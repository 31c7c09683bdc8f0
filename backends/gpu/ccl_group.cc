#include "backends/gpu/ccl_group.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "backends/gpu/gpu_device.h"
#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::gpu {
namespace {

constexpr const char* kOp = "group";
constexpr int kMostRanks = 1024;
// For a call of the library that another thread is in. If that never ends, nothing is aborted, and
// whoever ends the group ends the process.
constexpr std::chrono::seconds kCallTime{1};
constexpr std::chrono::milliseconds kLook{100};  // between two looks whether the group has ended
// For an abort to end, after the captures have been destroyed.
constexpr std::chrono::seconds kAbortTime{5};

CclUniqueId id_of(const GroupEntry& entry) {
  CclUniqueId out{};
  rbee::check(entry.ranks >= 2 && entry.ranks <= kMostRanks, kOp, "ranks is ", entry.ranks,
              ", wanted 2 to ", kMostRanks);
  rbee::check(entry.rank >= 0 && entry.rank < entry.ranks, kOp, "rank is ", entry.rank,
              ", wanted 0 to ", entry.ranks - 1);
  rbee::check(entry.id.size() == sizeof out.internal, kOp, "the group's id has ", entry.id.size(),
              " bytes, not ", sizeof out.internal);
  std::memcpy(out.internal, entry.id.data(), sizeof out.internal);
  return out;
}

}  // namespace

struct CclGroup::State {
  const CclLibrary* library = nullptr;
  GpuDevice* device = nullptr;
  std::timed_mutex calls;  // held by whoever calls the library with comm
  CclComm comm = nullptr;  // null: given back, or not there yet

  std::mutex mutex;  // guards the next ones
  std::condition_variable changed;
  std::atomic<bool> ended = false;
  std::string why;
  bool aborting = false;

  // Gives the communicator back without waiting for other ranks.
  void give_back() {
    const std::unique_lock lock(calls, kCallTime);
    if (lock && comm != nullptr) {
      try {
        device->use();
        library->functions().CommAbort(std::exchange(comm, nullptr));
      } catch (const Error& error) {
        log(LogLevel::warn, "a communicator is not given back", {{"why", error.what()}});
      }
    }
    const std::scoped_lock own(mutex);
    aborting = false;
    changed.notify_all();
  }
};

CclGroup::Use::Use(CclGroup& group) : state_(*group.state_) {
  group.device_.use();
  bool held = false;
  // An abort holds the lock until the captures are gone, for which this thread has to end first.
  while (!state_.ended && !held) held = state_.calls.try_lock_for(kLook);
  if (held && !state_.ended) return;
  if (held) state_.calls.unlock();
  const std::scoped_lock lock(state_.mutex);
  fail(Code::device, kOp, "the group has ended: ", state_.why);
}

CclGroup::Use::~Use() {
  state_.calls.unlock();
}

CclComm CclGroup::Use::comm() const {
  return state_.comm;
}

CclGroup::CclGroup(CclLibrary& library, GpuDevice& device, const GroupEntry& entry)
    : library_(library),
      device_(device),
      rank_(entry.rank),
      ranks_(entry.ranks),
      state_(std::make_shared<State>()) {
  library.require();
  const CclUniqueId id = id_of(entry);
  device.use();
  state_->library = &library;
  state_->device = &device;
  CclComm comm = nullptr;
  library.check(library.functions().CommInitRank(&comm, ranks_, id, rank_), "CommInitRank",
                nullptr);
  state_->comm = comm;
}

CclGroup::~CclGroup() {
  if (!state_->ended) {
    try {
      device_.synchronize(device_.default_stream());
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      // A lost device does nothing more.
    }
    state_->give_back();
    return;
  }
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, kAbortTime, [&] { return !state_->aborting; });
}

GroupView CclGroup::view() {
  return {.rank = rank_, .ranks = ranks_, .link = GroupLink::collectives, .handle = this};
}

void CclGroup::check(int status, const char* name) const {
  library_.check(status, name, state_->comm);
}

void CclGroup::end(std::string_view why) noexcept {
  try {
    const std::scoped_lock lock(state_->mutex);
    if (state_->ended) return;
    state_->why = why;
    state_->aborting = true;
    state_->ended = true;
    std::thread([state = state_] { state->give_back(); }).detach();
  } catch (const std::exception& error) {  // no thread
    log(LogLevel::warn, "a communicator is not aborted", {{"why", error.what()}});
  }
}

std::string CclGroup::fault() {
  const std::unique_lock lock(state_->calls, std::try_to_lock);
  if (!lock || state_->comm == nullptr || state_->ended) return {};
  try {
    int status = kCclSuccess;
    check(library_.functions().CommGetAsyncError(state_->comm, &status), "CommGetAsyncError");
    check(status, "a collective operation");
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::string make_group_id(const CclLibrary& library) {
  const CclUniqueId id = library.unique_id();
  return {id.internal, sizeof id.internal};
}

}  // namespace rbee::gpu
