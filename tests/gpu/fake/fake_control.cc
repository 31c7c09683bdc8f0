// The functions by which tests control a fake library that they opened.

#include "tests/gpu/fake/fake_runtime.h"

using rbee::fake::Runtime;

extern "C" {

void rbee_fake_reset(int devices, const char* architecture, int lanes, int64_t memory_bytes) {
  Runtime& runtime = Runtime::instance();
  runtime.reset();
  runtime.options = {
      .count = devices, .architecture = architecture, .lanes = lanes, .memory = memory_bytes};
}

void rbee_fake_tell_ptx(int version) {
  Runtime::instance().options.ptx = version;
}

void rbee_fake_tell_shared(uint32_t bytes) {
  Runtime::instance().options.shared = bytes;
}

void rbee_fake_fail(const char* call, int nth, int status, rbee::fake::Then then) {
  Runtime::instance().fail(call, nth, status, then);
}

const char* rbee_fake_violation() {
  static thread_local std::string text;
  text = Runtime::instance().violation();
  return text.c_str();
}

int64_t rbee_fake_live_bytes() {
  return Runtime::instance().live_bytes();
}

const char* rbee_fake_live_objects() {
  static thread_local std::string text;
  text = Runtime::instance().live_objects();
  return text.c_str();
}

int64_t rbee_fake_launches() {
  return Runtime::instance().launches();
}

int64_t rbee_fake_calls(const char* name) {
  return Runtime::instance().calls(name);
}

void rbee_fake_tell_params(uint32_t bytes) {
  Runtime::tell_params(bytes);
}

int rbee_fake_begin_capture(void* stream, rbee::fake::CaptureMode mode) {
  return Runtime::instance().begin_capture(static_cast<rbee::fake::Stream*>(stream),
                                           static_cast<int>(mode));
}

void rbee_fake_set_launch_hook(rbee::fake::LaunchHook hook) {
  Runtime::instance().hook = hook;
}

int rbee_fake_queue(void* stream, int (*run)(void*), void (*drop)(void*), void* data,
                    const rbee::fake::Touched* memory, int count) {
  return Runtime::instance().queue(static_cast<rbee::fake::Stream*>(stream),
                                   {.run = run, .data = std::shared_ptr<void>(data, drop)},
                                   {memory, memory + count});
}

bool rbee_fake_capturing(void* stream) {
  return Runtime::instance().capturing(static_cast<rbee::fake::Stream*>(stream));
}
}
