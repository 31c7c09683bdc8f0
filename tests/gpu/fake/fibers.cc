#include "tests/gpu/fake/fibers.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

// Saves the registers that a call keeps and the stack, and goes on with another stack.
extern "C" void rb_fiber_switch(void** from, void* to);
#ifdef __x86_64__
__asm__(
    ".text\n.globl rb_fiber_switch\n.hidden rb_fiber_switch\n.type rb_fiber_switch,@function\n"
    "rb_fiber_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
constexpr size_t kFrame = 10;  // words from the stack's end: a function begins 8 bytes off 16
constexpr size_t kReturn = 6;  // behind six registers
#elif defined(__aarch64__)
__asm__(
    ".text\n.globl rb_fiber_switch\n.hidden rb_fiber_switch\n.type rb_fiber_switch,%function\n"
    "rb_fiber_switch:\n"
    "sub sp,sp,#160\n"
    "stp x19,x20,[sp]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\nstp x25,x26,[sp,#48]\n"
    "stp x27,x28,[sp,#64]\nstp x29,x30,[sp,#80]\nstp d8,d9,[sp,#96]\nstp d10,d11,[sp,#112]\n"
    "stp d12,d13,[sp,#128]\nstp d14,d15,[sp,#144]\n"
    "mov x9,sp\nstr x9,[x0]\nmov sp,x1\n"
    "ldp x19,x20,[sp]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\nldp x25,x26,[sp,#48]\n"
    "ldp x27,x28,[sp,#64]\nldp x29,x30,[sp,#80]\nldp d8,d9,[sp,#96]\nldp d10,d11,[sp,#112]\n"
    "ldp d12,d13,[sp,#128]\nldp d14,d15,[sp,#144]\n"
    "add sp,sp,#160\nret\n");
constexpr size_t kFrame = 20;
constexpr size_t kReturn = 11;  // x30
#else
#error "a switch of stacks for this processor"
#endif

namespace rbee::fake {
namespace {

constexpr size_t kStack = 256 << 10;
constexpr size_t kGuard = 4096;  // at a stack's end
constexpr uint32_t kLanes = 32;

enum class State { ready, at_barrier, at_simd, done };

struct Fiber {
  void* stack = nullptr;
  void* saved = nullptr;
  State state = State::ready;
  const void* place = nullptr;  // where it waits
  uint64_t given = 0;           // for a shuffle
  const void* shown = nullptr;  // for a matrix
};

struct Group {
  std::vector<Fiber> fibers;
  void* scheduler = nullptr;
  uint32_t current = 0;
  FiberLaunch launch;
  unsigned char* dynamic = nullptr;
  Uint3 place = {0, 0, 0};
  std::string fault;
} group;

Fiber& current() {
  return group.fibers[group.current];
}

void leave(State state) {
  Fiber& fiber = current();
  fiber.state = state;
  rb_fiber_switch(&fiber.saved, group.scheduler);
}

void enter() {
  const uint32_t t = group.current;
  group.launch.function(group.launch.params, group.launch.launch, group.dynamic, Uint3{t, 0, 0},
                        group.place, t % kLanes);
  leave(State::done);
  std::abort();  // a fiber that is done is not run
}

[[noreturn]] void end_with_fault() {
  leave(State::done);
  std::abort();
}

void fault(const std::string& what) {
  if (group.fault.empty()) group.fault = what;
}

void make_stacks(uint32_t count) {
  while (group.fibers.size() < count) {
    void* stack = mmap(nullptr, kStack + kGuard, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, kGuard, PROT_NONE) != 0) std::abort();
    group.fibers.push_back({.stack = stack});
  }
}

void prepare(Fiber& fiber) {
  auto* top = reinterpret_cast<void**>(static_cast<char*>(fiber.stack) + kGuard + kStack);
  void** saved = top - kFrame;
  std::fill(saved, top, nullptr);
  saved[kReturn] = reinterpret_cast<void*>(&enter);
  fiber.saved = saved;
  fiber.state = State::ready;
}

// A load or store that the memory does not allow: the fiber ends with a fault.
void on_signal(int, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const auto stack = reinterpret_cast<uintptr_t>(current().stack);
  char text[128];
  if (address >= stack && address < stack + kGuard) {
    std::snprintf(text, sizeof text, "thread %u uses more than %zu KiB of stack", group.current,
                  kStack >> 10);
  } else {
    std::snprintf(text, sizeof text, "thread %u touches 0x%zx, which no resident buffer has",
                  group.current, address);
  }
  fault(text);
  auto* registers = &static_cast<ucontext_t*>(context)->uc_mcontext;
  const uintptr_t sp = (stack + kGuard + kStack - 4096) & ~uintptr_t{15};
#ifdef __x86_64__
  registers->gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(&end_with_fault));
  registers->gregs[REG_RSP] = static_cast<greg_t>(sp - 8);
#else
  registers->pc = reinterpret_cast<uintptr_t>(&end_with_fault);
  registers->sp = sp;
#endif
}

// Catches faults of memory while a kernel runs. The handler has a stack of its own, since a
// fiber's may be what is exhausted.
class Catcher {
 public:
  Catcher() : memory_(64 << 10) {
    stack_t own = {};
    own.ss_sp = memory_.data();
    own.ss_size = memory_.size();
    sigaltstack(&own, &old_stack_);
    struct sigaction action = {};
    action.sa_sigaction = &on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &old_segv_);
    sigaction(SIGBUS, &action, &old_bus_);
  }
  ~Catcher() {
    sigaction(SIGSEGV, &old_segv_, nullptr);
    sigaction(SIGBUS, &old_bus_, nullptr);
    sigaltstack(&old_stack_, nullptr);
  }
  Catcher(const Catcher&) = delete;
  Catcher& operator=(const Catcher&) = delete;

 private:
  std::vector<char> memory_;
  stack_t old_stack_ = {};
  struct sigaction old_segv_ = {}, old_bus_ = {};
};

// Whether the lanes that wait in [begin, end) wait at one place.
bool meet(uint32_t begin, uint32_t end, State state) {
  const void* place = nullptr;
  for (uint32_t t = begin; t < end; ++t) {
    const Fiber& fiber = group.fibers[t];
    if (fiber.state != state) continue;
    if (place != nullptr && fiber.place != place) return false;
    place = fiber.place;
  }
  return true;
}

// Runs a simdgroup until all its lanes are done or wait for the others of the group.
void run_simdgroup(uint32_t begin, uint32_t end, const std::vector<uint32_t>& order) {
  while (group.fault.empty()) {
    for (const uint32_t lane : order) {
      const uint32_t t = begin + lane;
      if (t >= end || group.fibers[t].state != State::ready) continue;
      group.current = t;
      rb_fiber_switch(&group.scheduler, group.fibers[t].saved);
      if (!group.fault.empty()) return;
    }
    uint32_t at_simd = 0, at_barrier = 0;
    for (uint32_t t = begin; t < end; ++t) {
      at_simd += group.fibers[t].state == State::at_simd ? 1 : 0;
      at_barrier += group.fibers[t].state == State::at_barrier ? 1 : 0;
    }
    if (at_simd == 0) return;
    if (at_barrier != 0) fault("a shuffle that some lanes of a simdgroup do not reach");
    if (!meet(begin, end, State::at_simd)) fault("lanes of a simdgroup are at different shuffles");
    for (uint32_t t = begin; t < end; ++t) {
      if (group.fibers[t].state == State::at_simd) group.fibers[t].state = State::ready;
    }
  }
}

void run_group(std::mt19937& rng) {
  const uint32_t threads = group.launch.threads;
  for (uint32_t t = 0; t < threads; ++t) prepare(group.fibers[t]);
  std::vector<uint32_t> lanes(kLanes), simdgroups((threads + kLanes - 1) / kLanes);
  std::iota(lanes.begin(), lanes.end(), 0);
  std::iota(simdgroups.begin(), simdgroups.end(), 0);
  while (group.fault.empty()) {
    if (group.launch.seed != 0) {
      std::shuffle(lanes.begin(), lanes.end(), rng);
      std::shuffle(simdgroups.begin(), simdgroups.end(), rng);
    }
    for (const uint32_t simdgroup : simdgroups) {
      const uint32_t begin = simdgroup * kLanes;
      run_simdgroup(begin, std::min(begin + kLanes, threads), lanes);
      if (!group.fault.empty()) return;
    }
    uint32_t done = 0;
    for (uint32_t t = 0; t < threads; ++t) done += group.fibers[t].state == State::done ? 1 : 0;
    if (done == threads) return;
    if (done != 0) return fault("a barrier that some threads do not reach");
    if (!meet(0, threads, State::at_barrier)) return fault("threads are at different barriers");
    for (uint32_t t = 0; t < threads; ++t) group.fibers[t].state = State::ready;
  }
}

}  // namespace

std::string run_on_fibers(const FiberLaunch& launch) {
  make_stacks(launch.threads);
  std::vector<unsigned char> dynamic(launch.dynamic_bytes + 16);
  group.launch = launch;
  group.dynamic = reinterpret_cast<unsigned char*>(
      (reinterpret_cast<uintptr_t>(dynamic.data()) + 15) & ~uintptr_t{15});
  group.fault.clear();
  const Catcher catcher;
  std::mt19937 rng(launch.seed);
  const uint64_t rows = launch.grid[0], planes = rows * launch.grid[1];
  const uint64_t count = planes * launch.grid[2];
  const uint64_t first = launch.seed == 0 ? 0 : rng() % count;
  for (uint64_t i = 0; i < count && group.fault.empty(); ++i) {
    const uint64_t g = (first + i) % count;
    group.place = Uint3{static_cast<uint32_t>(g % rows), static_cast<uint32_t>(g % planes / rows),
                        static_cast<uint32_t>(g / planes)};
    std::memset(dynamic.data(), 0xff, dynamic.size());
    if (launch.group_bytes != 0) std::memset(launch.group_memory, 0xff, launch.group_bytes);
    run_group(rng);
  }
  return group.fault;
}

}  // namespace rbee::fake

using rbee::fake::current;
using rbee::fake::group;
using rbee::fake::State;

void rb_fiber_barrier() {
  current().place = __builtin_return_address(0);
  rbee::fake::leave(State::at_barrier);
}

void rb_fiber_simd_barrier() {
  current().place = __builtin_return_address(0);
  rbee::fake::leave(State::at_simd);
}

uint64_t rb_fiber_shuffle(uint64_t value, uint32_t lane) {
  const void* place = __builtin_return_address(0);
  current().given = value;
  current().place = place;
  rbee::fake::leave(State::at_simd);
  const uint32_t other = group.current / 32 * 32 + lane % 32;
  const bool there = other < group.launch.threads && group.fibers[other].place == place &&
                     group.fibers[other].state != State::done;
  if (!there) rbee::fake::fault("a lane is read that takes no part in a shuffle");
  const uint64_t got = there ? group.fibers[other].given : 0;
  rbee::fake::leave(State::at_simd);
  return got;
}

void rb_fiber_together(const void* given, void (*then)(const void* const* all, void* out),
                       void* out) {
  const void* place = __builtin_return_address(0);
  current().shown = given;
  current().place = place;
  rbee::fake::leave(State::at_simd);
  const void* all[rbee::fake::kLanes] = {};
  const uint32_t first = group.current / rbee::fake::kLanes * rbee::fake::kLanes;
  for (uint32_t lane = 0; lane < rbee::fake::kLanes; ++lane) {
    const uint32_t t = first + lane;
    const bool there = t < group.launch.threads && group.fibers[t].place == place &&
                       group.fibers[t].state != State::done;
    if (!there) {
      rbee::fake::fault("a lane takes no part in an operation of a matrix");
      break;
    }
    all[lane] = group.fibers[t].shown;
  }
  if (then != nullptr && group.fault.empty()) then(all, out);
  rbee::fake::leave(State::at_simd);
}

uint32_t rb_fiber_lane() {
  return group.current % 32;
}
