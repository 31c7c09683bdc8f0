#include "backends/cpu/ref/indexing.h"

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

template <typename Body>
void dispatch_ids(const char* op, DType dtype, Body&& body) {
  dispatch<uint8_t, uint32_t, int16_t, int32_t, int64_t>(op, dtype, body);
}

// The view with `axis` standing still: an index along it adds nothing to the offset.
View fixed(View view, int axis) {
  view.strides[axis] = 0;
  return view;
}

// ids (n) with the sizes of `like`, the same for every index but the one along `axis`.
View spread(const View& ids, const View& like, int axis) {
  View view = like;
  view.data = ids.data;
  view.dtype = ids.dtype;
  for (int64_t& stride : view.strides) stride = 0;
  view.strides[axis] = ids.strides[0];
  return view;
}

// ids has y's sizes; x may be larger along the other axes.
void gather(const GatherArgs& args, Stream&) {
  const int64_t step = args.x.strides[args.axis];
  dispatch_ids("gather", args.ids.dtype, [&]<typename Id>() {
    dispatch_sizes("gather", args.x.dtype, [&]<typename T>() {
      for_each(
          [&](int64_t to, int64_t at, int64_t from) {
            const Id id = args.ids.as<Id>()[at];
            args.y.as<T>()[to] =
                names_nothing(id) ? T{0} : args.x.as<T>()[from + static_cast<int64_t>(id) * step];
          },
          args.y, args.ids, fixed(args.x, args.axis));
    });
  });
}

// Calls body(element of y, element of src) for each element of src whose id names one of y.
template <typename Id, typename Body>
void for_each_target(const ScatterArgs& args, Body&& body) {
  const int64_t step = args.y.strides[args.axis];
  for_each(
      [&](int64_t from, int64_t at, int64_t to) {
        const Id id = args.ids.as<Id>()[at];
        if (!names_nothing(id)) body(to + static_cast<int64_t>(id) * step, from);
      },
      args.src, args.ids, fixed(args.y, args.axis));
}

void scatter_add(const ScatterArgs& args) {
  dispatch_ids("scatter_add", args.ids.dtype, [&]<typename Id>() {
    dispatch_numbers("scatter_add", args.y.dtype, [&]<typename T>() {
      for_each_target<Id>(args, [&](int64_t to, int64_t from) {
        T& y = args.y.as<T>()[to];
        y = store<T>(load(y) + load(args.src.as<T>()[from]));
      });
    });
  });
}

void scatter(const ScatterArgs& args, Stream&) {
  if (args.add) return scatter_add(args);
  dispatch_ids("scatter", args.ids.dtype, [&]<typename Id>() {
    dispatch_sizes("scatter", args.y.dtype, [&]<typename T>() {
      for_each_target<Id>(
          args, [&](int64_t to, int64_t from) { args.y.as<T>()[to] = args.src.as<T>()[from]; });
    });
  });
}

void index_select(const IndexSelectArgs& args, Stream& stream) {
  gather({args.x, spread(args.ids, args.y, args.axis), args.y, args.axis}, stream);
}

void index_add(const IndexAddArgs& args, Stream&) {
  scatter_add({spread(args.ids, args.src, args.axis), args.src, args.y, args.axis, true});
}

}  // namespace

const Impl<GatherArgs> ref_gather = {"ref", never_refuse, gather};
const Impl<ScatterArgs> ref_scatter = {"ref", never_refuse, scatter};
const Impl<IndexSelectArgs> ref_index_select = {"ref", never_refuse, index_select};
const Impl<IndexAddArgs> ref_index_add = {"ref", never_refuse, index_add};

}  // namespace rbee::cpu
