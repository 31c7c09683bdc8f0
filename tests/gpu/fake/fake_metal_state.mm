// What the objects of the fake Metal share: who is alive, what runs, how a message finds its
// method, and the functions by which tests control it.

#include <objc/runtime.h>

#include <cstdlib>

#include "tests/gpu/fake/fake_runtime.h"
#include "tests/gpu/fake/metal_objects.h"

namespace rbee::fake {
namespace {

uint32_t seed() {
  const char* text = std::getenv("RBEE_FAKE_METAL_SEED");
  return text != nullptr ? static_cast<uint32_t>(std::atoi(text)) : 0;
}

id nothing(id, SEL, ...) {
  return nil;
}

}  // namespace

Fake& Fake::instance() {
  static auto* const fake = new Fake;
  return *fake;
}

bool is_alive(id object) {
  Fake& fake = Fake::instance();
  const std::scoped_lock lock(fake.mutex);
  return fake.alive.contains(object);
}

std::string Fake::run(const Dispatch& dispatch) {
  std::vector<GpuPiece> pieces;
  for (id resource : dispatch.resources) {
    if (!is_alive(resource)) return "a buffer was freed before the kernel that uses it ran";
    pieces.push_back(static_cast<FakeBuffer*>(resource)->piece);
  }
  GpuMemory::instance().make_resident(pieces);
  ++launches;
  const FiberLaunch launch{.function = dispatch.kernel.function,
                           .params = dispatch.params.data(),
                           .launch = dispatch.grid_bytes.data(),
                           .grid = {static_cast<uint32_t>(dispatch.grid.width),
                                    static_cast<uint32_t>(dispatch.grid.height),
                                    static_cast<uint32_t>(dispatch.grid.depth)},
                           .threads = dispatch.threads,
                           .dynamic_bytes = dispatch.dynamic_bytes,
                           .group_memory = dispatch.text->group_memory,
                           .group_bytes = dispatch.text->group_bytes,
                           .seed = seed()};
  return run_on_fibers(launch);
}

void Fake::run_first(FakeQueue* queue) {
  FakeCommands* commands = queue->pending->front();
  queue->running = true;
  for (const Work& work : *commands->work) {
    *commands->fault = work();
    if (!commands->fault->empty()) break;
  }
  queue->running = false;
  commands->completed = true;
  commands->end = static_cast<double>(launches) / 1000;
  queue->pending->pop_front();
  [commands release];
}

void Fake::run_until(FakeCommands* commands) {
  while (!commands->completed) run_first(commands->queue);
}

bool Fake::run_another() {
  for (FakeQueue* queue : queues) {
    if (queue->running || queue->pending->empty()) continue;
    run_first(queue);
    return true;
  }
  return false;
}

std::string Fake::live_objects() {
  const std::scoped_lock lock(mutex);
  std::map<std::string, int> counts;
  for (const auto& [object, name] : alive) ++counts[name];
  std::string out;
  for (const auto& [name, count] : counts) {
    out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  }
  return out;
}

}  // namespace rbee::fake

using rbee::fake::Fake;
using rbee::fake::Runtime;

extern "C" {

// The method of a message; one that does nothing for null, and for a message that is a mistake.
IMP rb_fake_find_method(id object, SEL selector) {
  const IMP none = &rbee::fake::nothing;
  if (object == nil) return none;
  Class cls = object_getClass(object);
  const bool of_class = class_isMetaClass(cls);
  if (!of_class && !rbee::fake::is_alive(object)) {
    Runtime::instance().violate(std::string(sel_getName(selector)) + " to an object that is gone");
    return none;
  }
  const Method method = of_class ? class_getClassMethod(reinterpret_cast<Class>(object), selector)
                                 : class_getInstanceMethod(cls, selector);
  if (method != nullptr) return method_getImplementation(method);
  Runtime::instance().violate(std::string(class_getName(cls)) + " has no method " +
                              sel_getName(selector));
  return none;
}

void rbee_fake_reset(int devices, const char* architecture, int, int64_t memory_bytes) {
  Runtime& runtime = Runtime::instance();
  runtime.reset();
  runtime.options.count = devices;
  runtime.options.architecture = architecture;
  runtime.options.memory = memory_bytes;
  Fake::instance().launches = 0;
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
  return Fake::instance().bytes;
}
const char* rbee_fake_live_objects() {
  static thread_local std::string text;
  text = Fake::instance().live_objects();
  return text.c_str();
}
int64_t rbee_fake_launches() {
  return Fake::instance().launches;
}
int64_t rbee_fake_calls(const char* name) {
  return Runtime::instance().calls(name);
}
// The types of the method that answers a selector in any class, as the runtime encodes them without
// sizes; empty: none has it.
const char* rbee_fake_metal_types(const char* selector) {
  static thread_local std::string types;
  types.clear();
  std::vector<Class> classes(static_cast<size_t>(objc_getClassList(nullptr, 0)));
  objc_getClassList(classes.data(), static_cast<int>(classes.size()));
  for (Class cls : classes) {
    Method method = class_getInstanceMethod(cls, sel_registerName(selector));
    if (method == nullptr) method = class_getClassMethod(cls, sel_registerName(selector));
    if (method == nullptr) continue;
    const std::string whole = method_getTypeEncoding(method);
    bool named = false;
    for (const char c : whole) {
      named = c == '{' || (named && c != '}');
      if (named || c < '0' || c > '9') types += c;
    }
    return types.c_str();
  }
  return types.c_str();
}
}

// GNU's runtime finds a method and leaves the call to the caller; Apple's has one entry for both.
// It keeps all registers of arguments.
#ifdef __x86_64__
__asm__(
    ".text\n.globl objc_msgSend\n.type objc_msgSend,@function\nobjc_msgSend:\n"
    "push %rbp\nmov %rsp,%rbp\n"
    "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\n"
    "sub $128,%rsp\n"
    "movups %xmm0,(%rsp)\nmovups %xmm1,16(%rsp)\nmovups %xmm2,32(%rsp)\nmovups %xmm3,48(%rsp)\n"
    "movups %xmm4,64(%rsp)\nmovups %xmm5,80(%rsp)\nmovups %xmm6,96(%rsp)\nmovups %xmm7,112(%rsp)\n"
    "call rb_fake_find_method@PLT\nmov %rax,%r11\n"
    "movups (%rsp),%xmm0\nmovups 16(%rsp),%xmm1\nmovups 32(%rsp),%xmm2\nmovups 48(%rsp),%xmm3\n"
    "movups 64(%rsp),%xmm4\nmovups 80(%rsp),%xmm5\nmovups 96(%rsp),%xmm6\nmovups 112(%rsp),%xmm7\n"
    "add $128,%rsp\n"
    "pop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\npop %rbp\njmp *%r11\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl objc_msgSend\n.type objc_msgSend,%function\nobjc_msgSend:\n"
        "stp x29,x30,[sp,#-208]!\nmov x29,sp\n"
        "stp x0,x1,[sp,#16]\nstp x2,x3,[sp,#32]\nstp x4,x5,[sp,#48]\nstp x6,x7,[sp,#64]\n"
        "stp q0,q1,[sp,#80]\nstp q2,q3,[sp,#112]\nstp q4,q5,[sp,#144]\nstp q6,q7,[sp,#176]\n"
        "bl rb_fake_find_method\nmov x16,x0\n"
        "ldp x0,x1,[sp,#16]\nldp x2,x3,[sp,#32]\nldp x4,x5,[sp,#48]\nldp x6,x7,[sp,#64]\n"
        "ldp q0,q1,[sp,#80]\nldp q2,q3,[sp,#112]\nldp q4,q5,[sp,#144]\nldp q6,q7,[sp,#176]\n"
        "ldp x29,x30,[sp],#208\nbr x16\n");
#else
#error "an objc_msgSend for this processor"
#endif
