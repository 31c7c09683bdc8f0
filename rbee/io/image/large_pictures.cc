#include "rbee/io/image/large_pictures.h"

#include <chrono>

#include "rbee/core/cancel.h"

namespace rbee::io {

std::unique_lock<std::timed_mutex> LargePictures::enter(int64_t pixels) {
  constexpr std::chrono::milliseconds kLook{20};
  std::unique_lock place(one_, std::defer_lock);
  if (pixels <= kLarge) return place;
  while (!place.try_lock_for(kLook)) check_cancelled("image");
  return place;
}

}  // namespace rbee::io
