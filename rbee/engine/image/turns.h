#pragma once
// Decides whose turn it is on an image model: the client that has had the least time, with its
// oldest request. It has no threads and no lock.

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

namespace rbee::engine {

// A user of the model, which may be paused meanwhile.
struct ImageTurn {
  virtual ~ImageTurn() = default;

  std::string client;
  // The adapters that the model must have meanwhile; absent: it does not matter.
  std::optional<std::string> adapters;
  int64_t picture_pixels = 0;   // of the pictures that it is drawn from, decoded before its work
  bool holds_pictures = false;  // decoded, or being decoded
  bool beside = false;          // works without the device and without a turn
  std::function<void()> work;   // from the first turn on, on its own thread
  bool leaving = false;         // wants its turn to end at once
  bool begun = false;           // has had a turn
  bool over = false;            // for good
  bool resting = true;          // has no work on the device: a batch is done, or none has begun
  int64_t decoded_pixels = 0;   // of the picture being decoded; 0: none
  int64_t wanted_pixels = 0;    // of the picture to decode next
};
using ImageTurnPtr = std::shared_ptr<ImageTurn>;

class ImageTurns {
 public:
  // For turns in the middle of their work.
  struct Limits {
    int32_t working = 8;
    int32_t with_pictures = 2;
    // Of all pictures that requests are drawn from; a single request may have more.
    int64_t picture_pixels = int64_t{32} << 20;
    // Of all pictures being decoded; a single one may have more.
    int64_t decoded_pixels = int64_t{5} << 20;
    bool alone = false;  // nothing may be paused in the middle
  };
  explicit ImageTurns(const Limits& limits) : limits_(limits) {}

  void add(ImageTurnPtr turn);
  // Does nothing if it is not there.
  void remove(const ImageTurn& turn);
  // Null: there are none.
  ImageTurnPtr next() const;
  // Its turn took this long.
  void spend(const ImageTurn& turn, double seconds);

 private:
  struct Client {
    std::string name;
    double seconds = 0;              // its time; a new client starts with the least time of any
    std::deque<ImageTurnPtr> turns;  // oldest first, not empty
  };
  enum class Fits : uint8_t { yes, no, after_others };

  // Turns in the middle of their work.
  template <typename Visit>
  void each_working(const Visit& visit) const;
  Fits fits(const ImageTurn& turn) const;
  bool may_decode(const ImageTurn& turn) const;

  const Limits limits_;
  std::list<Client> clients_;  // least time first
};

}  // namespace rbee::engine
