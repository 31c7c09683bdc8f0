#include "backends/gpu/ops/collectives.h"

#include "backends/gpu/ccl_group.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/rms_norm.h"
#include "rbee/core/error.h"

namespace rbee::gpu {
namespace {

const char* refuse_group(const GroupView& group) {
  return group.link == GroupLink::collectives ? nullptr : "the ranks have no communicator";
}

// A negative number: it adds no numbers of this type.
int summed_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return kCclF32;
    case DType::f16:
      return kCclF16;
    case DType::bf16:
      return kCclBf16;
    case DType::i32:
      return kCclI32;
    default:
      return -1;
  }
}

size_t bytes_of(const View& x) {
  return static_cast<size_t>(row_bytes(x.dtype, x.numel()));
}

// Queues one of the library's calls, and notes that a kernel of others is on the stream.
template <typename Call>
void queue(const char* op, const char* name, const GroupView& group, Stream& stream,
           const Call& call) {
  GpuDevice& device = device_of(stream);
  try {
    device.note_kernel(op, name, stream);
    static_cast<CclGroup*>(group.handle)->queue(name, call);
  } catch (const Error& error) {
    fail(error.code(), op, "on ", device.id(), ": ", error.what());
  }
  StreamRecord& record = device.streams().of(stream.handle);
  record.last_op = op;
  record.last_blocks = 0;
  // Kernels that read ahead wait for it.
  record.floats_under_way = record.tables_under_way = true;
}

CclStream handle_of(const Stream& stream) {
  return static_cast<CclStream>(stream.handle);
}

void sum(const char* op, const View& x, const View& y, const GroupView& group, Stream& stream) {
  const auto count = static_cast<size_t>(x.numel());
  queue(op, "AllReduce", group, stream, [&](const auto& fn, CclComm comm) {
    return fn.AllReduce(x.data, y.data, count, summed_type(x.dtype), kCclSum, comm,
                        handle_of(stream));
  });
}

const char* refuse_sum(const View& x, const GroupView& group) {
  return summed_type(x.dtype) < 0 ? "only f32, f16, bf16 and i32 are added" : refuse_group(group);
}

void run_all_reduce(const AllReduceArgs& args, Stream& stream) {
  sum("all_reduce", args.x, args.y, args.group, stream);
}

void run_all_gather(const AllGatherArgs& args, Stream& stream) {
  queue("all_gather", "AllGather", args.group, stream, [&](const auto& fn, CclComm comm) {
    return fn.AllGather(args.x.data, args.y.data, bytes_of(args.x), kCclU8, comm,
                        handle_of(stream));
  });
}

void run_broadcast(const BroadcastArgs& args, Stream& stream) {
  queue("broadcast", "Broadcast", args.group, stream, [&](const auto& fn, CclComm comm) {
    return fn.Broadcast(args.x.data, args.x.data, bytes_of(args.x), kCclU8, args.root, comm,
                        handle_of(stream));
  });
}

void run_reduce_norm(const ReduceNormArgs& args, Stream& stream) {
  // The norm kernel reads y where it writes sum and then y: each row by one block, at its end.
  sum("reduce_norm", args.x, args.y, args.group, stream);
  add_rms_norm.run({.x = args.y,
                    .residual = args.residual,
                    .weight = args.weight,
                    .sum = args.sum,
                    .y = args.y,
                    .eps = args.eps},
                   stream);
}

}  // namespace

const Impl<AllReduceArgs> all_reduce_ccl{
    "ccl", [](const AllReduceArgs& args) { return refuse_sum(args.x, args.group); },
    run_all_reduce};
const Impl<AllGatherArgs> all_gather_ccl{
    "ccl", [](const AllGatherArgs& args) { return refuse_group(args.group); }, run_all_gather};
const Impl<BroadcastArgs> broadcast_ccl{
    "ccl", [](const BroadcastArgs& args) { return refuse_group(args.group); }, run_broadcast};
const Impl<ReduceNormArgs> reduce_norm_ccl{
    "ccl", [](const ReduceNormArgs& args) { return refuse_sum(args.x, args.group); },
    run_reduce_norm};

}  // namespace rbee::gpu
