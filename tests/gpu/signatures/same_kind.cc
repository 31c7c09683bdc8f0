// Compiles if same_kind.h detects each difference that would break a call.

#include "tests/gpu/signatures/same_kind.h"

#include <cstddef>

namespace rbee::signatures {

struct Opaque;
struct Stream;
struct Config {};
enum Kind { kFirst };

template <typename Ours, typename Theirs>
constexpr bool agree = Signatures<Ours(*), Theirs(*)>::agree;

static_assert(agree<int(int, size_t), Kind(Kind, unsigned long)>);
static_assert(agree<int(Opaque*, Opaque**), int(Stream*, Stream**)>);
static_assert(agree<int(const void*), int(const Config*)>);
static_assert(agree<int(void**), int(void**)>);

static_assert(!agree<int(int), int(int, int)>, "number");
static_assert(!agree<int(int), int(long)>, "size");
static_assert(!agree<int(int), int(unsigned)>, "sign");
static_assert(!agree<int(int), int(float)>, "integer for float");
static_assert(!agree<int(float), int(Kind)>, "float for enumeration");
static_assert(!agree<int(size_t), int(void*)>, "integer for pointer");
static_assert(!agree<int(int*), int(size_t*)>, "size behind a pointer");
static_assert(!agree<int(Opaque*), int(Opaque**)>, "depth");
static_assert(!agree<int(const int*), int(int*)>, "written through");
static_assert(!agree<const char*(int), int(int)>, "result");
static_assert(!agree<void(int), int(int)>, "no result");

}  // namespace rbee::signatures
