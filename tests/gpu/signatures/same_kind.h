#pragma once
// Whether our declaration of a function matches the vendor's header: the same number of
// parameters, each of the same size and kind, and the same kind of result. Handles are opaque
// pointers on our side, so pointers to classes match; an enumeration matches an integer of its
// size.

#include <type_traits>

namespace rbee::signatures {

template <typename Ours, typename Theirs>
consteval bool same_kind();

// Pointers must agree in const, because const separates inputs from
// outputs.
template <typename Ours, typename Theirs>
consteval bool same_target() {
  using A = std::remove_const_t<Ours>;
  using B = std::remove_const_t<Theirs>;
  if constexpr (std::is_const_v<Ours> && !std::is_const_v<Theirs>) {
    return false;
  } else if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
    return true;
  } else if constexpr (std::is_class_v<A> || std::is_class_v<B>) {
    return std::is_class_v<A> && std::is_class_v<B>;
  } else {
    return same_kind<A, B>();
  }
}

template <typename Ours, typename Theirs>
consteval bool same_kind() {
  if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  } else if constexpr (sizeof(Ours) != sizeof(Theirs)) {
    return false;
  } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    return same_target<std::remove_pointer_t<Ours>, std::remove_pointer_t<Theirs>>();
  } else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>) {
    return true;  // of one size, given by value
  } else if constexpr (std::is_enum_v<Theirs>) {
    return std::is_integral_v<Ours>;
  } else if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>) {
    return std::is_signed_v<Ours> == std::is_signed_v<Theirs>;
  } else {
    return std::is_floating_point_v<Ours> && std::is_floating_point_v<Theirs>;
  }
}

template <typename Ours, typename Theirs>
struct Signatures {
  static constexpr bool agree = false;  // another number of parameters
};

template <typename R1, typename... P1, typename R2, typename... P2>
  requires(sizeof...(P1) == sizeof...(P2))
struct Signatures<R1 (*)(P1...), R2 (*)(P2...)> {
  static constexpr bool agree = same_kind<R1, R2>() && (same_kind<P1, P2>() && ...);
};

}  // namespace rbee::signatures

// `ours` is a type; `theirs` the function that the vendor's header declares.
#define RB_SAME_SIGNATURE(ours, theirs) \
  static_assert(rbee::signatures::Signatures<ours, decltype(&theirs)>::agree, #theirs)
// A number of ours that stands for a value of the vendor's.
#define RB_SAME_VALUE(ours, theirs) \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs), #theirs)
