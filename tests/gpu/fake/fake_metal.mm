// A Metal without a Mac, for tests: the classes and methods that metal_messages.h names, in
// Objective-C over GNU's runtime, so that the driver reaches them as it reaches Apple's. Text is
// compiled for this processor (metal_text.h). A command buffer that was committed runs when the
// host waits for it, so that a forgotten wait shows.
//
// It finds what Metal would ignore, assert or crash on: messages to objects that are gone or have
// no such method; encoders ended twice or left open; commits without an end; parameters above
// 4 KiB; threadgroup memory above 32 KiB or of odd lengths; more threads than the pipeline allows;
// buffers freed before the commands that use them; copies and fills that reach beyond a buffer or
// are no whole words; waits for events that nothing signals.

#include <objc/runtime.h>

#include "tests/gpu/fake/fake_runtime.h"
#include "tests/gpu/fake/metal_objects.h"

using namespace rbee::fake;

const int rbee::fake::kDeviceOfNewThreads = 0;

namespace {

constexpr unsigned long kMostParams = 4096;
constexpr unsigned long kMostShared = 32 << 10;
constexpr unsigned long kLanguage = 196608;
constexpr size_t kMostUncompleted = 64;  // of a queue

thread_local std::vector<std::vector<id>> pools;

int enter(const char* call) {
  return Runtime::instance().enter(call);
}
void violate(const std::string& what) {
  Runtime::instance().violate(what);
}

NSString* string_of(const std::string& text) {
  return [NSString stringWithUTF8String:text.c_str()];
}

}  // namespace

NSError* rbee::fake::error_of(const std::string& what, long code) {
  NSError* error = create([NSError class]);
  error->what = new std::string(what);
  error->number = code;
  return autorelease(error);
}

id rbee::fake::create(Class cls) {
  const std::scoped_lock lock(Fake::instance().mutex);
  id object = class_createInstance(cls, 0);
  static_cast<FakeObject*>(object)->references = 1;
  Fake::instance().alive[object] = class_getName(cls);
  return object;
}

id rbee::fake::autorelease(id object) {
  if (pools.empty()) {
    violate("something is autoreleased outside of a pool");
  } else {
    pools.back().push_back(object);
  }
  return object;
}

@implementation FakeObject
+ (Class)class {
  return self;
}
+ (id)new {
  return create(self);
}
- (void)retain {
  const std::scoped_lock lock(Fake::instance().mutex);
  ++references;
}
- (void)release {
  const std::scoped_lock lock(Fake::instance().mutex);
  if (--references > 0) return;
  [self gone];
  Fake::instance().alive.erase(self);
  Fake::instance().graves.push_back(self);  // its address stays its own
}
- (void)gone {
}
@end

@implementation NSString
+ (NSString*)stringWithUTF8String:(const char*)bytes {
  NSString* made = create(self);
  made->text = new std::string(bytes);
  return autorelease(made);
}
- (const char*)UTF8String {
  return text->c_str();
}
- (void)gone {
  delete text;
}
@end

@implementation NSError
- (NSString*)localizedDescription {
  return string_of(*what);
}
- (long)code {
  return number;
}
- (void)gone {
  delete what;
}
@end

@implementation NSURL
+ (NSURL*)fileURLWithPath:(NSString*)path {
  NSURL* made = create(self);
  made->path = new std::string(*path->text);
  return autorelease(made);
}
- (void)gone {
  delete path;
}
@end

@implementation NSArray
+ (NSArray*)arrayWithObject:(id)object {
  if (object == nil) violate("arrayWithObject: of nothing");
  [static_cast<FakeObject*>(object) retain];
  NSArray* made = create(self);
  made->items = new std::vector<id>{object};
  return autorelease(made);
}
- (unsigned long)count {
  return items->size();
}
- (id)objectAtIndex:(unsigned long)index {
  return items->at(index);
}
- (void)gone {
  for (id item : *items) [static_cast<FakeObject*>(item) release];
  delete items;
}
@end

@implementation NSProcessInfo
+ (NSProcessInfo*)processInfo {
  return autorelease(create(self));
}
- (NSString*)operatingSystemVersionString {
  return string_of("Version 13.0 (Build 22A380)");
}
@end

@implementation MTLCompileOptions
- (void)setLanguageVersion:(unsigned long)version {
  language = version;
}
- (void)setFastMathEnabled:(bool)on {
  precise = !on;
}
@end

@implementation FakeBuffer
- (void*)contents {
  return piece.host;
}
- (unsigned long)gpuAddress {
  return piece.address;
}
- (void)gone {
  if (!GpuMemory::instance().free(piece)) violate("something was written past a buffer's end");
  Fake::instance().bytes -= static_cast<int64_t>(piece.bytes);
}
@end

@implementation FakeFunction
@end

@implementation FakePipeline
- (unsigned long)maxTotalThreadsPerThreadgroup {
  return kernel.most_threads;
}
- (unsigned long)threadExecutionWidth {
  return 32;
}
- (unsigned long)staticThreadgroupMemoryLength {
  return text->group_bytes;
}
@end

@implementation FakeLibrary
- (FakeFunction*)newFunctionWithName:(NSString*)name {
  if (enter("newFunctionWithName:") != kSuccess) return nil;
  const auto found = text->kernels.find(*name->text);
  if (found == text->kernels.end()) return nil;
  FakeFunction* made = create([FakeFunction class]);
  made->text = text;
  made->kernel = found->second;
  return made;
}
@end

@implementation FakeEvent
@end

@implementation FakeEncoder
- (bool)isOpenFor:(const char*)call {
  if (commands != nil && !ended) return true;
  violate(std::string(call) + " after endEncoding");
  return false;
}
- (void)endEncoding {
  if (![self isOpenFor:"endEncoding"]) return;
  ended = true;
  commands->open = nil;
}
- (void)gone {
  if (!ended) violate("an encoder goes that was not ended");
  delete now;
}
@end

@implementation FakeComputeEncoder
- (void)setComputePipelineState:(FakePipeline*)made {
  if (![self isOpenFor:"setComputePipelineState:"]) return;
  pipeline = made;
}
- (void)setBytes:(const void*)bytes length:(unsigned long)length atIndex:(unsigned long)index {
  if (![self isOpenFor:"setBytes:length:atIndex:"]) return;
  if (length == 0 || length > kMostParams) {
    return violate("setBytes:length:atIndex: of " + std::to_string(length) + " bytes");
  }
  const auto* first = static_cast<const unsigned char*>(bytes);
  if (index == 0) now->params.assign(first, first + length);
  if (index == 1) now->grid_bytes.assign(first, first + length);
}
- (void)setThreadgroupMemoryLength:(unsigned long)length atIndex:(unsigned long)index {
  if (![self isOpenFor:"setThreadgroupMemoryLength:atIndex:"]) return;
  if (length % 16 != 0 || index != 0) {
    violate("setThreadgroupMemoryLength: " + std::to_string(length) + " is no multiple of 16");
  }
  now->dynamic_bytes = static_cast<uint32_t>(length);
}
- (void)useResources:(const id*)resources count:(unsigned long)count usage:(unsigned long)usage {
  if (![self isOpenFor:"useResources:count:usage:"]) return;
  if (usage != 3) violate("kernels read and write, so usage is 3");
  for (unsigned long i = 0; i < count; ++i) now->resources.push_back(resources[i]);
}
- (void)dispatchThreadgroups:(MTLSize)grid threadsPerThreadgroup:(MTLSize)threads {
  if (![self isOpenFor:"dispatchThreadgroups:threadsPerThreadgroup:"]) return;
  if (pipeline == nil) return violate("a dispatch without a pipeline");
  const unsigned long count = threads.width * threads.height * threads.depth;
  const unsigned long shared = pipeline->text->group_bytes + now->dynamic_bytes;
  if (grid.width * grid.height * grid.depth == 0 || count == 0 || count != threads.width ||
      count > pipeline->kernel.most_threads || shared > kMostShared || now->params.empty()) {
    return violate("a dispatch of " + std::to_string(grid.width) + " x " +
                   std::to_string(grid.height) + " x " + std::to_string(grid.depth) +
                   " threadgroups of " + std::to_string(count) + " threads with " +
                   std::to_string(shared) + " bytes of threadgroup memory");
  }
  Dispatch dispatch = *now;
  dispatch.kernel = pipeline->kernel;
  dispatch.text = pipeline->text;
  dispatch.grid = grid;
  dispatch.threads = static_cast<uint32_t>(count);
  commands->work->emplace_back([dispatch] { return Fake::instance().run(dispatch); });
}
@end

@implementation FakeBlitEncoder
- (bool)holds:(FakeBuffer*)buffer from:(unsigned long)offset size:(unsigned long)size {
  if (offset % 4 == 0 && size % 4 == 0 && offset + size <= buffer->piece.bytes) return true;
  violate("a copy or fill of " + std::to_string(size) + " bytes at " + std::to_string(offset) +
          " of a buffer of " + std::to_string(buffer->piece.bytes));
  return false;
}
- (void)copyFromBuffer:(FakeBuffer*)from
          sourceOffset:(unsigned long)start
              toBuffer:(FakeBuffer*)to
     destinationOffset:(unsigned long)end
                  size:(unsigned long)size {
  if (![self isOpenFor:"copyFromBuffer:"] || ![self holds:from from:start size:size] ||
      ![self holds:to from:end size:size]) {
    return;
  }
  commands->work->emplace_back([=]() -> std::string {
    if (!is_alive(from) || !is_alive(to)) return "a buffer was freed before it was copied";
    std::memmove(to->piece.host + end, from->piece.host + start, size);
    return "";
  });
}
- (void)fillBuffer:(FakeBuffer*)buffer range:(NSRange)range value:(unsigned char)value {
  if (![self isOpenFor:"fillBuffer:range:value:"] || ![self holds:buffer
                                                             from:range.location
                                                             size:range.length]) {
    return;
  }
  commands->work->emplace_back([=]() -> std::string {
    if (!is_alive(buffer)) return "a buffer was freed before it was filled";
    std::memset(buffer->piece.host + range.location, value, range.length);
    return "";
  });
}
@end

@implementation FakeCommands
- (id)encoderOf:(Class)cls {
  const std::scoped_lock lock(Fake::instance().mutex);
  if (committed) violate("an encoder of commands that were committed");
  if (open != nil) violate("an encoder while another one is open");
  FakeEncoder* made = create(cls);
  made->commands = self;
  made->now = new Dispatch;
  open = made;
  return autorelease(made);
}
- (id)computeCommandEncoder {
  if (enter("computeCommandEncoder") != kSuccess) return nil;
  return [self encoderOf:[FakeComputeEncoder class]];
}
- (id)blitCommandEncoder {
  if (enter("blitCommandEncoder") != kSuccess) return nil;
  return [self encoderOf:[FakeBlitEncoder class]];
}
- (void)encodeSignalEvent:(FakeEvent*)event value:(unsigned long)value {
  if (open != nil) violate("encodeSignalEvent: while an encoder is open");
  work->emplace_back([=]() -> std::string {
    if (!is_alive(event)) return "an event was freed before it was signalled";
    event->value = value;
    return "";
  });
}
- (void)encodeWaitForEvent:(FakeEvent*)event value:(unsigned long)value {
  if (open != nil) violate("encodeWaitForEvent: while an encoder is open");
  work->emplace_back([=]() -> std::string {
    if (!is_alive(event)) return "an event was freed before it was waited for";
    while (event->value < value) {
      if (!Fake::instance().run_another()) return "a wait for an event that nothing signals";
    }
    return "";
  });
}
- (void)commit {
  const std::scoped_lock lock(Fake::instance().mutex);
  if (committed) return violate("commands are committed twice");
  if (open != nil) return violate("commit while an encoder is open");
  committed = true;
  const int status = enter("commit");
  if (status != kSuccess) {
    work->clear();
    work->emplace_back([] { return std::string("the device was reset"); });
    number = status;
  }
  [self retain];
  queue->pending->push_back(self);
}
- (void)waitUntilCompleted {
  const std::scoped_lock lock(Fake::instance().mutex);
  if (!committed) return violate("a wait for commands that were not committed");
  enter("waitUntilCompleted");
  Fake::instance().run_until(self);
}
- (unsigned long)status {
  const std::scoped_lock lock(Fake::instance().mutex);
  if (!completed) return committed ? 2 : 0;
  return fault->empty() ? 4 : 5;
}
- (NSError*)error {
  const std::scoped_lock lock(Fake::instance().mutex);
  return fault->empty() ? nil : error_of(*fault, number);
}
- (double)GPUEndTime {
  return end;
}
- (void)gone {
  if (!committed && !work->empty()) violate("commands go that were not committed");
  delete work;
  delete fault;
}
@end

@implementation FakeQueue
- (FakeCommands*)commandBuffer {
  const std::scoped_lock lock(Fake::instance().mutex);
  if (enter("commandBuffer") != kSuccess) return nil;
  // As Metal's call waits then.
  while (pending->size() >= kMostUncompleted) Fake::instance().run_until(pending->front());
  FakeCommands* made = create([FakeCommands class]);
  made->queue = self;
  made->work = new std::vector<Work>;
  made->fault = new std::string;
  made->number = 1;
  return autorelease(made);
}
- (void)gone {
  if (!pending->empty()) violate("a queue goes before its commands have completed");
  auto& queues = Fake::instance().queues;
  queues.erase(std::find(queues.begin(), queues.end(), self));
  delete pending;
}
@end

@implementation FakeDevice
- (NSString*)name {
  return string_of(Runtime::instance().options.architecture == "intel" ? "Fake Intel GPU"
                                                                       : "Fake Apple GPU");
}
- (bool)supportsFamily:(long)family {
  if (Runtime::instance().options.architecture == "intel") return false;
  if (Runtime::instance().options.architecture == "old") return family == 1007;
  return family == 5001 || (family >= 1001 && family <= 1008);
}
- (unsigned long)recommendedMaxWorkingSetSize {
  return static_cast<unsigned long>(Runtime::instance().options.memory);
}
- (unsigned long)currentAllocatedSize {
  return static_cast<unsigned long>(Fake::instance().bytes.load());
}
- (unsigned long)maxBufferLength {
  return static_cast<unsigned long>(Runtime::instance().options.memory) / 4 * 3;
}
- (unsigned long)maxThreadgroupMemoryLength {
  return kMostShared;
}
- (FakeQueue*)newCommandQueue {
  const std::scoped_lock lock(Fake::instance().mutex);
  if (enter("newCommandQueue") != kSuccess) return nil;
  FakeQueue* made = create([FakeQueue class]);
  made->pending = new std::deque<FakeCommands*>;
  Fake::instance().queues.push_back(made);
  return made;
}
- (FakeBuffer*)newBufferWithLength:(unsigned long)length options:(unsigned long)options {
  const std::scoped_lock lock(Fake::instance().mutex);
  if (enter("newBufferWithLength:options:") != kSuccess) return nil;
  if (length == 0 || length > [self maxBufferLength] || options != 0) {
    violate("a buffer of " + std::to_string(length) + " bytes");
    return nil;
  }
  FakeBuffer* made = create([FakeBuffer class]);
  made->piece = GpuMemory::instance().allocate(length);
  Fake::instance().bytes += static_cast<int64_t>(length);
  return made;
}
- (FakeLibrary*)newLibraryWithSource:(NSString*)source
                             options:(MTLCompileOptions*)options
                               error:(id*)error {
  const std::scoped_lock lock(Fake::instance().mutex);
  if (options == nil || options->language != kLanguage || !options->precise) {
    violate("text is compiled with other options than Metal 3.0's without fast math");
  }
  const int status = enter("newLibraryWithSource:options:error:");
  const MetalText& text = compile_metal(*source->text);
  if (status != kSuccess || !text.error.empty()) {
    *error = error_of(status != kSuccess ? "the compiler failed" : text.error, 3);
    return nil;
  }
  FakeLibrary* made = create([FakeLibrary class]);
  made->text = &text;
  return made;
}
- (FakePipeline*)newComputePipelineStateWithFunction:(FakeFunction*)function error:(id*)error {
  if (enter("newComputePipelineStateWithFunction:error:") != kSuccess) {
    *error = error_of("no pipeline", 3);
    return nil;
  }
  FakePipeline* made = create([FakePipeline class]);
  made->text = function->text;
  made->kernel = function->kernel;
  return made;
}
- (FakeEvent*)newSharedEvent {
  if (enter("newSharedEvent") != kSuccess) return nil;
  return create([FakeEvent class]);
}
@end

extern "C" {

id MTLCopyAllDevices() {
  NSArray* made = create([NSArray class]);
  made->items = new std::vector<id>;
  for (int i = 0; i < Runtime::instance().options.count; ++i) {
    made->items->push_back(create([FakeDevice class]));
  }
  return made;
}

id objc_retain(id object) {
  if (object != nil) [static_cast<FakeObject*>(object) retain];
  return object;
}
void objc_release(id object) {
  if (object == nil) return;
  if (is_alive(object)) return [static_cast<FakeObject*>(object) release];
  violate("release of an object that is gone");
}
void* objc_autoreleasePoolPush() {
  pools.emplace_back();
  return reinterpret_cast<void*>(pools.size());
}
void objc_autoreleasePoolPop(void* pool) {
  if (pools.size() != reinterpret_cast<size_t>(pool)) violate("pools end in another order");
  const std::vector<id> objects = std::move(pools.back());
  pools.pop_back();
  for (id object : objects) objc_release(object);
}
}
