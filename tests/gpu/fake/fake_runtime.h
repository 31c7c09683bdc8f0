#pragma once
// A GPU runtime without a GPU, for tests: fake_cuda.cc and fake_hip.cc export it under the vendors'
// names as libraries that the backends open by path. Device memory is host memory; work runs at
// once, in the order of its calls.
//
// It checks what a real driver would let pass or crash on: copies outside of an allocation, use of
// freed memory, streams, events or modules, double frees, calls of threads that made no device
// current or another one, work on one stream that touches memory another stream has not finished
// writing or copying, launches beyond the device's limits, of kernels an image does not have or
// with a parameter of another size or alignment, calls that the mode of a capture forbids, and
// tensor maps that a device does not take or that reach beyond an allocation. The first such
// mistake is kept and told by violation().
// Kernels do nothing unless a launch hook runs them (tools/emulate_amd.py), but for those that copy
// elements which lie one after another.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "tests/gpu/fake/code_object.h"
#include "tests/gpu/fake/shared_use.h"

namespace rbee::fake {

struct Dim3 {
  uint32_t x, y, z;
};

// Runs a kernel of a loaded code object; `params`: the address of its one parameter. Returns 0 on
// success.
using LaunchHook = int (*)(const void* image, const char* kernel, Dim3 grid, uint32_t threads,
                           uint32_t shared_bytes, const void* params, uint32_t params_bytes);

struct DeviceOptions {
  int count = 1;
  std::string architecture = "gfx942";
  int ptx = 0;  // what kernels were compiled for; 0: for the device
  int lanes = 64;
  int64_t memory = int64_t{4} << 30;  // bytes of each device
};

// What a stream has seen of the others: the work of stream s up to tick clock[s].
using Clock = std::map<const void*, uint64_t>;

// Which threads may not make calls that a capture cannot see, such as allocations (HIP
// documentation, hipStreamCaptureMode; CUDA's has the same numbers): all, the one that began the
// capture, none.
enum class CaptureMode : int { global, thread_local_, relaxed };

struct Stream {
  int device = 0;
  Clock clock;
  bool capturing = false;
  // Of the capture.
  CaptureMode mode = CaptureMode::global;
  std::thread::id thread;
  bool invalidated = false;
};
struct Event {
  int device = 0;
  Clock clock;
  double ms = 0;
  bool recorded = false;
  const Stream* captured_by = nullptr;  // the last record was in a capture
};
struct Kernel {
  struct Module* module;
  std::string name;
  KernelFacts facts;            // of images that tell none: the most threads alone
  uint32_t allowed_shared = 0;  // bytes that launches were allowed to ask for
};
struct Module {
  int device = 0;
  const void* image = nullptr;
  CodeObject code;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};
// What a device takes of a launch.
struct LaunchLimits {
  uint32_t shared = 0;          // bytes of a block
  uint32_t shared_unasked = 0;  // bytes without a kernel's permission
  uint64_t blocks_x = 0;        // along a grid's first axis
  uint64_t threads_x = 0;       // the same
};
struct LaunchShape {
  Dim3 grid;
  uint32_t threads, shared_bytes;
};
struct RecordedLaunch {
  const Kernel* kernel;
  Dim3 grid;
  uint32_t threads, shared_bytes;
  std::vector<std::byte> params;
};
// Reads the kernels of an image for a device of an architecture; throws what it does not take.
using ImageReader = CodeObject (*)(const void* image, const std::string& architecture);
struct RecordedCopy {
  void* to;
  const void* from;  // null: a fill
  size_t bytes;
  int value;
};
struct Graph {
  std::vector<std::variant<RecordedLaunch, RecordedCopy>> work;
  int handles = 1;  // a graph and its executable are one object here
  int replays = 0;
};

// Statuses are the same numbers for both vendors.
enum Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinary = 209,  // a fat binary holds no code for the device
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kLaunchFailed = 719,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureIsolation = 905,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
};

// The device that is current where a thread has made none so; -1: none. Each vendor's own.
extern const int kDeviceOfNewThreads;

// What follows a failure that a test asked for.
enum class Then : uint8_t {
  goes_on,
  again,       // that call fails until the test says otherwise
  lost,        // every call of any name fails
  lost_later,  // the same from the next call on: the call itself has queued its work
};

// What the vendors' calls that explain a status say.
const char* status_text(int status);

class Runtime {
 public:
  static Runtime& instance();

  // Everything back to the beginning; reads RBEE_FAKE_ARCH, RBEE_FAKE_LANES, RBEE_FAKE_DEVICES and
  // RBEE_FAKE_MEMORY_MIB over the defaults. RBEE_FAKE_LOST names a file: once it exists, the device
  // is lost and every call fails. RBEE_FAKE_MODULES names one that says "COUNT STATUS": with so
  // many modules loaded, the next one fails with that status. RBEE_FAKE_SHARED names one in which
  // processes count what they have of the device's memory together. RBEE_FAKE_FILL: the byte that
  // fresh memory is full of. RBEE_FAKE_MISTAKES names one that mistakes are written to.
  // RBEE_FAKE_FAULT names a file: once it exists, a synchronisation behind kernels ends the
  // process, as AMD's runtime does at a fault of memory. RBEE_FAKE_FATAL says "KERNEL abort" or
  // "KERNEL hang": what a launch of a kernel does whose name holds KERNEL. RBEE_FAKE_FAIL says
  // "CALL NTH STATUS", as fail() takes them. RBEE_FAKE_GRAPHS names a fault of replays:
  // last_arguments (a kernel that is captured several times has the last arguments in all places),
  // or stale_uploads (one in fifty reads what the uploads since the last one replaced).
  void reset();
  // RBEE_FAKE_VERSION, as the vendor counts, or what is usual.
  static int version(int usual);
  DeviceOptions options;
  LaunchHook hook = nullptr;

  // Makes the `nth` call from now on (1 = the next) whose exported name is `call` return `status`,
  // and what `then` says of those behind it.
  void fail(const std::string& call, int nth, int status, Then then);
  // Counts a call; a status other than success is what it must return.
  int enter(const char* call);

  // Of the parameter that the calling thread launches next.
  static void tell_params(uint32_t bytes);
  // Of the calling thread.
  int set_device(int device);
  int leave_device();  // this thread has none, then
  // Counts a call that needs a current device, as enter() does.
  int enter_with_device(const char* call);
  int allocate(void** data, size_t bytes, bool host);
  int free(void* data, bool host);
  int memory_info(size_t* free, size_t* total);
  // `from` or `to` null: fill with `value`.
  int copy(void* to, const void* from, size_t bytes, bool to_device, bool from_device,
           Stream* stream);
  // Each side's memory is the named device's.
  int copy_peer(void* to, int to_device, const void* from, int from_device, size_t bytes,
                Stream* stream);
  int fill(void* data, int value, size_t bytes, Stream* stream);

  int create_stream(void** stream);
  int destroy_stream(Stream* stream);
  int synchronize(Stream* stream);
  int create_event(void** event);
  int destroy_event(Event* event);
  int record(Event* event, Stream* stream);
  int wait(Stream* stream, Event* event);
  int synchronize(Event* event);

  int load_module(void** module, const void* image, ImageReader read);
  int unload_module(Module* module);
  int find_kernel(void** kernel, Module* module, const char* name);
  int allow_shared(Kernel* kernel, uint32_t bytes, const LaunchLimits& limits);
  int launch(Kernel* kernel, const LaunchShape& shape, const LaunchLimits& limits, Stream* stream,
             void** params);
  // A tensor map over device memory of so many bytes; `fault`: what the driver has against it.
  int map_tensor(const void* data, size_t bytes, const std::string& fault);
  // An attribute of a launch; `known`: the device has it.
  int check_attribute(int id, bool known);
  int begin_capture(Stream* stream, int mode);
  // A `status` other than success is what it returns, without a graph.
  int end_capture(Stream* stream, int status, void** graph);
  int instantiate(Graph* graph);
  int launch_graph(Graph* graph, Stream* stream);
  // Or its executable.
  int destroy_graph(Graph* graph);

  std::string violation() const;
  int64_t live_bytes() const;
  // What is left of streams, events, modules, graphs and host memory: "2 events, 1 graphs".
  std::string live_objects() const;
  int64_t used_bytes() const;  // other processes' too
  int64_t launches() const;
  int64_t calls(const std::string& name) const;

 private:
  struct Block {
    size_t bytes;
    bool host;
    int device;
    const void* writer = nullptr;  // stream of the last write, and its tick
    uint64_t tick = 0;
    Clock readers;  // streams that read since, and the ticks of their last reads
  };
  struct Injection {
    int countdown;
    int status;
    Then then;
  };

  Runtime() { reset(); }
  void violate(const std::string& what);
  // The allocation around [data, data + bytes); null and a violation when there is none.
  Block* block_around(const void* data, size_t bytes, const char* what);
  bool known_stream(Stream* stream);
  // False and a violation where the calling thread's device is another one.
  bool on_device(int device, const char* what);
  void touch(Block& block, Stream* stream, bool write, const char* what);
  int run(const RecordedLaunch& launch);
  void end_as_told(const std::string& kernel) const;
  // A call that a capture cannot see: success, or a violation where the mode of one forbids it to
  // the calling thread, which invalidates that capture.
  int outside_captures(const char* call);
  // Of a call that conflicts with the stream's capture in every mode.
  int conflict(Stream& stream, const char* call);
  // Copies from or to the host (`within` is false) are no part of a capture here.
  int record_copy(const RecordedCopy& copy, bool within, Stream* stream);
  // Keeps what is there for graph_fault_.
  void note_upload(const void* to, size_t bytes);
  static void keep_last_arguments(Graph& graph);
  int replay(const Graph& graph);

  mutable std::recursive_mutex mutex_;
  int sticky_ = kSuccess;
  std::string lost_file_, modules_file_, mistakes_file_, fault_file_, graph_fault_;
  std::unique_ptr<SharedUse> shared_use_;
  int fill_ = 0;
  std::string violation_;
  std::map<uintptr_t, Block> blocks_;
  std::vector<std::vector<std::byte>> graveyard_;
  std::set<Stream*> streams_;
  std::set<Event*> events_;
  std::set<Module*> modules_;
  std::set<Kernel*> kernels_;
  std::set<Graph*> graphs_;
  std::map<Stream*, std::unique_ptr<Graph>> captures_;
  std::map<std::string, int64_t> calls_;
  std::map<std::string, Injection> injections_;
  std::map<uintptr_t, std::vector<std::byte>> uploads_;  // by address: what they replaced
  int64_t launches_ = 0;
  std::string fatal_kernel_, fatal_end_;  // empty: none
};

}  // namespace rbee::fake

// How tests steer the library they opened.
extern "C" {
void rbee_fake_reset(int devices, const char* architecture, int lanes, int64_t memory_bytes);
void rbee_fake_tell_ptx(int version);  // of all kernels
void rbee_fake_fail(const char* call, int nth, int status, rbee::fake::Then then);
const char* rbee_fake_violation();  // empty: none
int64_t rbee_fake_live_bytes();
const char* rbee_fake_live_objects();  // empty: none
int64_t rbee_fake_launches();
int64_t rbee_fake_calls(const char* name);
// As the vendor's call, in a mode that the backends do not use; returns its status.
int rbee_fake_begin_capture(void* stream, rbee::fake::CaptureMode mode);
void rbee_fake_set_launch_hook(rbee::fake::LaunchHook hook);
// Of the parameter that the calling thread launches next; a kernel of which another size is known
// is not started.
void rbee_fake_tell_params(uint32_t bytes);
}
