// NCCL (with RB_FAKE_RCCL: RCCL) between ranks of one machine, over memory that the host can read,
// like the fake runtimes'. Its work is queued on their streams and kept by their captures.
//
// It finds what the library would answer with a hang or a crash: ranks that do different
// operations, or only some of them in a capture; calls with a communicator that was given back;
// and an abort before the captures of its operations are destroyed. As the library's, an
// operation waits for ever if a rank does not come, until this rank aborts its communicator.
// RBEE_FAKE_MISTAKES names a file that mistakes are written to. RBEE_FAKE_CCL_FAIL, "CALL NTH
// STATUS": that call returns the status. RBEE_FAKE_CCL_VERSION replaces 22809.
#include "tests/gpu/fake/fake_ccl.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "backends/shared/float_types.h"
#include "tests/gpu/fake/fake_ccl_memory.h"
#include "tests/gpu/fake/fake_runtime.h"

namespace {

using rbee::fake::CclMemory;
using rbee::fake::CclOperation;
using rbee::fake::Touched;

enum Status : int { kSuccess = 0, kUnhandled = 1, kInvalidArgument = 4, kInvalidUsage = 5 };
enum Type : int { kU8 = 1, kI32 = 2, kF16 = 6, kF32 = 7, kBf16 = 9 };
enum Kind : int32_t { kAllReduce = 1, kAllGather, kBroadcast };

#ifdef RB_FAKE_RCCL
constexpr const char* kDriver = "RBEE_HIP_LIBRARY";
#else
constexpr const char* kDriver = "RBEE_CUDA_LIBRARY";
#endif
// After which an abort that still waits for captures is a mistake.
constexpr std::chrono::seconds kCapturesTime{20};

struct Comm {
  std::unique_ptr<CclMemory> memory;
  std::atomic<bool> ended = false;
  std::atomic<int> captured = 0;
};

struct Fake {
  std::mutex mutex;
  std::map<Comm*, std::shared_ptr<Comm>> comms;
  std::map<std::string, int64_t> calls;
  std::map<std::string, std::pair<int, int>> failures;  // countdown, status
  std::string mistake;
  int fault = kSuccess;

  Fake() {
    const char* const failing = std::getenv("RBEE_FAKE_CCL_FAIL");
    std::istringstream text(failing != nullptr ? failing : "");
    std::string call;
    int nth = 0, status = 0;
    if (text >> call >> nth >> status) failures[call] = {nth, status};
  }
};

Fake& fake() {
  static auto* const instance = new Fake;
  return *instance;
}

void note_mistake(const std::string& what) {
  const std::scoped_lock lock(fake().mutex);
  if (fake().mistake.empty()) fake().mistake = what;
  const char* const path = std::getenv("RBEE_FAKE_MISTAKES");
  if (path != nullptr) std::ofstream(path, std::ios::app) << what << '\n';
}

// Counts a call. It must return this status unless it is success.
int enter(const char* call) {
  const std::scoped_lock lock(fake().mutex);
  ++fake().calls[call];
  const auto found = fake().failures.find(call);
  if (found == fake().failures.end() || --found->second.first > 0) return kSuccess;
  const int status = found->second.second;
  fake().failures.erase(found);
  return status;
}

std::shared_ptr<Comm> known(void* comm, const char* call) {
  {
    const std::scoped_lock lock(fake().mutex);
    const auto found = fake().comms.find(static_cast<Comm*>(comm));
    if (found != fake().comms.end()) return found->second;
  }
  note_mistake(std::string(call) + " with a communicator that does not exist");
  return nullptr;
}

// A function of the fake driver that this process uses.
template <typename Function>
Function* driver_function(const char* name) {
  const char* const path = std::getenv(kDriver);
  void* const driver = dlopen(path != nullptr ? path : "", RTLD_NOW | RTLD_NOLOAD);
  return driver != nullptr ? reinterpret_cast<Function*>(dlsym(driver, name)) : nullptr;
}

size_t bytes_of(int type) {
  return type == kU8 ? 1 : type == kF16 || type == kBf16 ? 2 : 4;
}

template <typename T, typename Wide, typename Load, typename Store>
void add(const CclMemory& memory, std::byte* to, size_t bytes, const Load& load,
         const Store& store) {
  for (size_t i = 0; i < bytes / sizeof(T); ++i) {
    Wide sum{};
    for (int rank = 0; rank < memory.ranks(); ++rank) {
      T value;
      std::memcpy(&value, memory.area_of(rank) + i * sizeof(T), sizeof value);
      sum += load(value);
    }
    const T out = store(sum);
    std::memcpy(to + i * sizeof(T), &out, sizeof out);
  }
}

void add_all(int type, const CclMemory& memory, std::byte* to, size_t bytes) {
  using namespace rbee::shared;
  const auto widen = [](auto x) { return to_float(x); };
  const auto same = [](auto x) { return x; };
  switch (type) {
    case kI32:
      return add<uint32_t, uint32_t>(memory, to, bytes, same, same);
    case kF16:
      return add<f16, float>(memory, to, bytes, widen, [](float x) { return from_float<f16>(x); });
    case kBf16:
      return add<bf16, float>(memory, to, bytes, widen,
                              [](float x) { return from_float<bf16>(x); });
    default:
      return add<float, float>(memory, to, bytes, same, same);
  }
}

// A queued operation.
struct Work {
  std::shared_ptr<Comm> comm;
  CclOperation operation;
  const std::byte* from;
  std::byte* to;
};

bool same_everywhere(const CclMemory& memory, const CclOperation& own) {
  for (int rank = 0; rank < memory.ranks(); ++rank) {
    const CclOperation& other = memory.operation_of(rank);
    if (other == own) continue;
    const auto told = [](const CclOperation& operation) {
      return "operation " + std::to_string(operation.kind) + " of " +
             std::to_string(operation.bytes) + " bytes, type " + std::to_string(operation.type) +
             ", root " + std::to_string(operation.root) +
             (operation.captured != 0 ? ", captured" : "");
    };
    note_mistake("rank " + std::to_string(rank) + " does " + told(other) + ", rank " +
                 std::to_string(memory.rank()) + " " + told(own));
    return false;
  }
  return true;
}

int run(void* data) {
  const auto& work = *static_cast<const Work*>(data);
  Comm& comm = *work.comm;
  CclMemory& memory = *comm.memory;
  const auto [kind, type, root, captured, bytes] = work.operation;
  const bool gives = kind != kBroadcast || root == memory.rank();
  for (size_t at = 0; at < bytes; at += CclMemory::kAreaBytes) {
    const size_t count = std::min(CclMemory::kAreaBytes, bytes - at);
    if (gives) std::memcpy(memory.area(), work.from + at, count);
    // As a kernel that was aborted: it ends, and nothing says so.
    if (!memory.meet(work.operation, comm.ended)) return kSuccess;
    if (!same_everywhere(memory, work.operation)) {
      comm.ended = true;
      return kSuccess;
    }
    if (kind == kAllReduce) add_all(type, memory, work.to + at, count);
    if (kind == kBroadcast) std::memcpy(work.to + at, memory.area_of(root), count);
    if (kind != kAllGather) continue;
    for (int rank = 0; rank < memory.ranks(); ++rank) {
      std::memcpy(work.to + static_cast<size_t>(rank) * bytes + at, memory.area_of(rank), count);
    }
  }
  return kSuccess;
}

void drop(void* data) {
  const std::unique_ptr<Work> work(static_cast<Work*>(data));
  if (work->operation.captured != 0) --work->comm->captured;
}

int queue(const char* call, void* comm, CclOperation operation, const void* from, void* to,
          void* stream) {
  if (const int status = enter(call)) return status;
  const std::shared_ptr<Comm> own = known(comm, call);
  auto* const put = driver_function<decltype(rbee_fake_queue)>("rbee_fake_queue");
  auto* const capturing = driver_function<decltype(rbee_fake_capturing)>("rbee_fake_capturing");
  if (own == nullptr || own->ended || put == nullptr || capturing == nullptr) {
    return kInvalidUsage;
  }
  const size_t ranks = static_cast<size_t>(own->memory->ranks());
  const std::vector<Touched> memory{
      {from, operation.bytes, false},
      {to, operation.kind == kAllGather ? ranks * operation.bytes : operation.bytes, true}};
  operation.captured = capturing(stream) ? 1 : 0;
  if (operation.captured != 0) ++own->captured;
  auto work = std::make_unique<Work>(Work{.comm = own,
                                          .operation = operation,
                                          .from = static_cast<const std::byte*>(from),
                                          .to = static_cast<std::byte*>(to)});
  return put(stream, run, drop, work.release(), memory.data(), static_cast<int>(memory.size())) == 0
             ? kSuccess
             : kUnhandled;
}

}  // namespace

extern "C" {

struct FakeCclId {
  char internal[128];
};

int ncclGetVersion(int* version) {
  const char* const text = std::getenv("RBEE_FAKE_CCL_VERSION");
  *version = text != nullptr ? std::atoi(text) : 22809;
  return enter("ncclGetVersion");
}

int ncclGetUniqueId(FakeCclId* id) {
  if (const int status = enter("ncclGetUniqueId")) return status;
  const std::string where = CclMemory::create();
  *id = {};
  where.copy(id->internal, sizeof id->internal - 1);
  return where.empty() ? kUnhandled : kSuccess;
}

int ncclCommInitRank(void** comm, int ranks, FakeCclId id, int rank) {
  if (const int status = enter("ncclCommInitRank")) return status;
  if (ranks < 1 || ranks > CclMemory::kMostRanks || rank < 0 || rank >= ranks) {
    return kInvalidArgument;
  }
  auto made = std::make_shared<Comm>();
  made->memory = CclMemory::attach(id.internal, rank, ranks);
  if (made->memory == nullptr || !made->memory->join(made->ended)) return kInvalidUsage;
  *comm = made.get();
  const std::scoped_lock lock(fake().mutex);
  fake().comms.emplace(made.get(), made);
  return kSuccess;
}

int ncclCommAbort(void* comm) {
  const int status = enter("ncclCommAbort");
  const std::shared_ptr<Comm> own = known(comm, "ncclCommAbort");
  if (own == nullptr) return kInvalidArgument;
  own->ended = true;
  const auto begin = std::chrono::steady_clock::now();
  while (own->captured > 0) {
    if (std::chrono::steady_clock::now() - begin > kCapturesTime) {
      note_mistake("a communicator is aborted, and captures of its operations are still there");
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::scoped_lock lock(fake().mutex);
  fake().comms.erase(own.get());
  return status;
}

int ncclCommGetAsyncError(void* comm, int* status) {
  if (const int failed = enter("ncclCommGetAsyncError")) return failed;
  if (known(comm, "ncclCommGetAsyncError") == nullptr) return kInvalidArgument;
  const std::scoped_lock lock(fake().mutex);
  *status = fake().fault;
  return kSuccess;
}

int ncclAllReduce(const void* from, void* to, size_t count, int type, int operation, void* comm,
                  void* stream) {
  if (operation != 0) return kInvalidArgument;
  return queue("ncclAllReduce", comm,
               {.kind = kAllReduce, .type = type, .bytes = count * bytes_of(type)}, from, to,
               stream);
}

int ncclAllGather(const void* from, void* to, size_t count, int type, void* comm, void* stream) {
  return queue("ncclAllGather", comm,
               {.kind = kAllGather, .type = type, .bytes = count * bytes_of(type)}, from, to,
               stream);
}

int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, void* comm,
                  void* stream) {
  return queue("ncclBroadcast", comm,
               {.kind = kBroadcast, .type = type, .root = root, .bytes = count * bytes_of(type)},
               from, to, stream);
}

const char* ncclGetErrorString(int status) {
  return status == kUnhandled         ? "unhandled cuda error"
         : status == kInvalidArgument ? "invalid argument"
         : status == kInvalidUsage    ? "invalid usage"
                                      : "remote process exited or there was a network error";
}

const char* ncclGetLastError(void*) {
  return "told by the fake";
}

void rbee_fake_ccl_reset() {
  const std::scoped_lock lock(fake().mutex);
  fake().calls.clear();
  fake().failures.clear();
  fake().mistake.clear();
  fake().fault = kSuccess;
}

void rbee_fake_ccl_fail(const char* call, int nth, int status) {
  const std::scoped_lock lock(fake().mutex);
  fake().failures[call] = {nth, status};
}

void rbee_fake_ccl_fault(int status) {
  const std::scoped_lock lock(fake().mutex);
  fake().fault = status;
}

int64_t rbee_fake_ccl_calls(const char* name) {
  const std::scoped_lock lock(fake().mutex);
  const auto found = fake().calls.find(name);
  return found != fake().calls.end() ? found->second : 0;
}

int rbee_fake_ccl_live() {
  const std::scoped_lock lock(fake().mutex);
  return static_cast<int>(fake().comms.size());
}

const char* rbee_fake_ccl_mistake() {
  static thread_local std::string text;
  const std::scoped_lock lock(fake().mutex);
  text = fake().mistake;
  return text.c_str();
}
}
