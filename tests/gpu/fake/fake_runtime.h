#pragma once
// A GPU runtime without a GPU, for tests: fake_cuda.cc and fake_hip.cc export it under the vendors'
// names, as libraries that the backends open by path. Device memory is host memory; each call does
// its work at once.
//
// It finds mistakes that a real driver would ignore or crash on: copies outside an allocation;
// use of freed memory, streams, events or modules; double frees; calls from threads without a
// current device or with the wrong one; work on a stream that touches memory another stream is
// still writing or copying; launches beyond the device's limits, of unknown kernels, or with a
// parameter of another size or alignment; calls that the mode of a capture forbids; and tensor
// maps that the device rejects or that reach beyond an allocation. violation() returns the
// first.
// Kernels do nothing unless a launch hook runs them (tools/emulate_amd.py). Only kernels that copy
// contiguous elements work.

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
  int ptx = 0;  // what kernels were compiled for; 0: for this device
  int lanes = 64;
  int64_t memory = int64_t{4} << 30;  // bytes of each device
  uint32_t shared = 0;                // bytes of a block; 0: as the architecture has
};

// The work of other streams that a stream waited for: of stream s up to tick clock[s].
using Clock = std::map<const void*, uint64_t>;

// Threads that may not make calls that a capture cannot see, such as allocations (HIP
// documentation, hipStreamCaptureMode; CUDA uses the same numbers): all threads, the one that began
// the capture, none.
enum class CaptureMode : int { global, thread_local_, relaxed };

// Work that another library queues on a stream, such as a collective operation.
struct ForeignWork {
  int (*run)(void* data);  // returns a status
  std::shared_ptr<void> data;
};
// Memory of the device that such work touches.
struct Touched {
  const void* data;
  size_t bytes;
  bool written;
};

struct Stream {
  int device = 0;
  Clock clock;
  // May wait for other processes, so it runs when the stream's next call needs it: whoever queued
  // it goes on.
  std::vector<ForeignWork> pending;
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
  KernelFacts facts;            // if the image has none, only the most threads
  uint32_t allowed_shared = 0;  // bytes that launches were allowed to ask for
};
struct Module {
  int device = 0;
  const void* image = nullptr;
  CodeObject code;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};
// A device's limits on launches.
struct LaunchLimits {
  uint32_t shared = 0;          // bytes of a block
  uint32_t shared_unasked = 0;  // bytes that need no permission for the kernel
  uint64_t blocks_x = 0;        // along a grid's first axis
  uint64_t threads_x = 0;       // the same
};
struct LaunchShape {
  Dim3 grid;
  uint32_t threads, shared_bytes;
};
struct CapturedLaunch {
  const Kernel* kernel;
  Dim3 grid;
  uint32_t threads, shared_bytes;
  std::vector<std::byte> params;
};
// Reads the kernels of an image for an architecture; throws if the device rejects it.
using ImageReader = CodeObject (*)(const void* image, const std::string& architecture);
struct CapturedCopy {
  void* to;
  const void* from;  // null: a fill
  size_t bytes;
  int value;
};
struct Graph {
  std::vector<std::variant<CapturedLaunch, CapturedCopy, ForeignWork>> work;
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

// The current device of a thread that has set none; -1: none. Each vendor has its own.
extern const int kDeviceOfNewThreads;

// What happens after a failure that a test asked for.
enum class Then : uint8_t {
  goes_on,
  again,       // that call fails until the test ends the fault
  lost,        // every call of any name fails
  lost_later,  // the same from the next call on: the call itself has queued its work
};

// The texts of the vendors' calls that explain a status.
const char* status_text(int status);

class Runtime {
 public:
  static Runtime& instance();

  // Resets everything, then reads the environment. RBEE_FAKE_ARCH, _LANES, _DEVICES and _MEMORY_MIB
  // replace the defaults. RBEE_FAKE_LOST names a file: once it exists, the device is lost and every
  // call fails. RBEE_FAKE_MODULES names a file with "COUNT STATUS": with COUNT modules loaded,
  // loading another fails with STATUS. RBEE_FAKE_SHARED names a file in which processes count the
  // device memory that they use together. RBEE_FAKE_FILL: the byte that fills fresh memory.
  // RBEE_FAKE_MISTAKES names a file that mistakes are written to. RBEE_FAKE_FAULT names a file:
  // once it exists, a synchronisation after kernels ends the process, as AMD's runtime does after a
  // memory fault. RBEE_FAKE_FATAL, "KERNEL abort" or "KERNEL hang": the effect of launching a
  // kernel whose name contains KERNEL. RBEE_FAKE_FAIL, "CALL NTH STATUS": as fail().
  // RBEE_FAKE_GRAPHS names a fault of replays: last_arguments (a kernel captured several times gets
  // its last arguments everywhere) or stale_uploads (one replay in fifty reads what the uploads
  // since the last one replaced).
  void reset();
  // RBEE_FAKE_VERSION, in the vendor's numbering, else `usual`.
  static int version(int usual);
  DeviceOptions options;
  LaunchHook hook = nullptr;

  // Makes the `nth` call from now on (1 = the next) of the exported name `call` return `status`;
  // `then` sets what happens to later calls.
  void fail(const std::string& call, int nth, int status, Then then);
  // Counts a call. It must return this status unless it is success.
  int enter(const char* call);

  // Sets the size of the parameter of the calling thread's next launch.
  static void tell_params(uint32_t bytes);
  // For the calling thread.
  int set_device(int device);
  int leave_device();  // then this thread has none
  // Counts a call that needs a current device, as enter() does.
  int enter_with_device(const char* call);
  int allocate(void** data, size_t bytes, bool host);
  int free(void* data, bool host);
  int memory_info(size_t* free, size_t* total);
  // `from` or `to` null: fill with `value`.
  int copy(void* to, const void* from, size_t bytes, bool to_device, bool from_device,
           Stream* stream);
  // Each pointer is to memory of the device beside it.
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
  // A tensor map over `bytes` of device memory; `fault`: the driver's objection to it.
  int map_tensor(const void* data, size_t bytes, const std::string& fault);
  // An attribute of a launch; `known`: this device supports it.
  int check_attribute(int id, bool known);
  int queue(Stream* stream, ForeignWork work, const std::vector<Touched>& memory);
  bool capturing(Stream* stream);
  int begin_capture(Stream* stream, int mode);
  // If `status` is not success, returns it without a graph.
  int end_capture(Stream* stream, int status, void** graph);
  int instantiate(Graph* graph);
  int launch_graph(Graph* graph, Stream* stream);
  // Also for its executable.
  int destroy_graph(Graph* graph);

  // Notes a mistake of the caller.
  void violate(const std::string& what);
  std::string violation() const;
  int64_t live_bytes() const;
  // Streams, events, modules, graphs and host memory still alive: "2 events, 1 graphs".
  std::string live_objects() const;
  int64_t used_bytes() const;  // including other processes
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
  // The allocation around [data, data + bytes). If there is none: null, and a violation.
  Block* block_around(const void* data, size_t bytes, const char* what);
  // Runs the stream's pending work, too, without holding mutex_.
  bool known_stream(Stream* stream);
  // If the calling thread's device is another one: false, and a violation.
  bool on_device(int device, const char* what);
  void touch(Block& block, Stream* stream, bool write, const char* what);
  int run(const CapturedLaunch& launch);
  void end_as_told(const std::string& kernel) const;
  // For a call that a capture cannot see. Returns success; if a capture's mode forbids the call to
  // this thread, it is a violation and invalidates that capture.
  int outside_captures(const char* call);
  // For a call that conflicts with the stream's capture in every mode.
  int conflict(Stream& stream, const char* call);
  // Copies from or to the host (`within` is false) do not become part of a capture here.
  int capture_copy(const CapturedCopy& copy, bool within, Stream* stream);
  // Keeps the bytes to be replaced, for graph_fault_.
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
  std::map<uintptr_t, std::vector<std::byte>> uploads_;  // by address: the bytes they replaced
  int64_t launches_ = 0;
  std::string fatal_kernel_, fatal_end_;  // empty: none
};

}  // namespace rbee::fake

// How tests steer the library they opened.
extern "C" {
void rbee_fake_reset(int devices, const char* architecture, int lanes, int64_t memory_bytes);
void rbee_fake_tell_ptx(int version);        // of all kernels
void rbee_fake_tell_shared(uint32_t bytes);  // of a block
void rbee_fake_fail(const char* call, int nth, int status, rbee::fake::Then then);
const char* rbee_fake_violation();  // empty: none
int64_t rbee_fake_live_bytes();
const char* rbee_fake_live_objects();  // empty: none
int64_t rbee_fake_launches();
int64_t rbee_fake_calls(const char* name);
// The vendor's call, for modes that the backends do not use; returns its status.
int rbee_fake_begin_capture(void* stream, rbee::fake::CaptureMode mode);
void rbee_fake_set_launch_hook(rbee::fake::LaunchHook hook);
// Sets the size of the parameter of the calling thread's next launch; a kernel with a known other
// size is not started.
void rbee_fake_tell_params(uint32_t bytes);
// Queues work of another library; captures take it as they take kernels. drop: gives `data` back.
// Returns a status.
int rbee_fake_queue(void* stream, int (*run)(void*), void (*drop)(void*), void* data,
                    const rbee::fake::Touched* memory, int count);
bool rbee_fake_capturing(void* stream);
}
