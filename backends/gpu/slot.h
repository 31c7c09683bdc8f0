#pragma once
// slot<a, b>(): a kernel table's slot that tries a, then b.

#include <array>
#include <cstdint>

#include "backends/api/impl.h"
#include "rbee/core/error.h"

namespace rbee::gpu {

template <typename Args>
Args args_of(const Impl<Args>&);

// Kernels, copies and fills that were queued on the stream so far.
uint64_t queued_on(const Stream& stream);
// Logs, once for each pair, that `other` runs in place of `impl`, and why.
void note_replaced(const char* impl, const char* other, const Error& why);

// The implementations of a slot from kFirst on.
template <const auto& kFirst, const auto&... kRest>
struct Chain {
  using Args = decltype(args_of(kFirst));

  // Runs kFirst. A device may turn out not to take one of its kernels: its compiler refuses the
  // text, or the code needs too many registers for the launch's threads (Metal). If kFirst had
  // queued nothing by then, the first of kRest that takes the arguments runs instead.
  static void run(const Args& args, Stream& stream) {
    if constexpr (sizeof...(kRest) == 0) {
      kFirst.run(args, stream);
    } else {
      const uint64_t before = queued_on(stream);
      try {
        kFirst.run(args, stream);
      } catch (const Error& error) {
        if (error.code() != Code::unsupported || queued_on(stream) != before ||
            !Chain<kRest...>::replaces(kFirst.name, error, args, stream)) {
          throw;
        }
      }
    }
  }

  // Runs the first that takes the arguments; false: none does.
  static bool replaces(const char* impl, const Error& why, const Args& args, Stream& stream) {
    if (refusal(kFirst, args, stream) == nullptr) {
      note_replaced(impl, kFirst.name, why);
      run(args, stream);
      return true;
    }
    if constexpr (sizeof...(kRest) > 0) {
      return Chain<kRest...>::replaces(impl, why, args, stream);
    }
    return false;
  }

  static void put(Impl<Args>* into) {
    *into = kFirst;
    into->run = &run;
    if constexpr (sizeof...(kRest) > 0) Chain<kRest...>::put(into + 1);
  }
};

template <const auto& kFirst, const auto&... kRest>
auto slot() {
  using Args = decltype(args_of(kFirst));
  static const std::array list = [] {
    std::array<Impl<Args>, 1 + sizeof...(kRest)> out{};
    Chain<kFirst, kRest...>::put(out.data());
    return out;
  }();
  return Slot<Args>(list);
}

}  // namespace rbee::gpu
