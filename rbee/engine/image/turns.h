#pragma once
// Whose turn it is among those that want an image model: a client's that has had it for the
// shortest time, each with its oldest request. No thread is known here, nor a lock.

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

namespace rbee::engine {

// One that wants the model for a while, and may be paused meanwhile.
struct ImageTurn {
  virtual ~ImageTurn() = default;

  std::string client;
  // Which adapters the model must have meanwhile; absent: it does not matter.
  std::optional<std::string> adapters;
  bool has_pictures = false;   // holds decoded pictures from its first turn to a rest
  std::function<void()> work;  // from the first turn on, on a thread of its own
  bool leaving = false;        // wants its turn to end at once
  bool begun = false;          // has had a turn
  bool over = false;           // for good
  bool resting = true;         // has no work on the device: a batch is done, or none has begun
  int64_t decoded_pixels = 0;  // of the picture that it decodes; 0: it decodes none
  int64_t wanted_pixels = 0;   // of the picture that it is about to decode
};
using ImageTurnPtr = std::shared_ptr<ImageTurn>;

class ImageTurns {
 public:
  // Of those that are in the middle of their work.
  struct Limits {
    int32_t working = 8;
    int32_t with_pictures = 2;
    // Of the pictures that are decoded, in all, unless it is one alone.
    int64_t decoded_pixels = int64_t{5} << 20;
    bool alone = false;  // nobody may be paused in the middle
  };
  explicit ImageTurns(const Limits& limits) : limits_(limits) {}

  void add(ImageTurnPtr turn);
  // Nothing happens when it is not there.
  void remove(const ImageTurn& turn);
  // Null: nobody is there.
  ImageTurnPtr next() const;
  // So long its turn took.
  void spend(const ImageTurn& turn, double seconds);

 private:
  struct Client {
    std::string name;
    double seconds = 0;              // that it had; of one that comes, as of who had the least
    std::deque<ImageTurnPtr> turns;  // the oldest first, not empty
  };
  enum class Fits : uint8_t { yes, no, after_others };

  // Those that are in the middle of their work.
  template <typename Visit>
  void each_working(const Visit& visit) const;
  Fits fits(const ImageTurn& turn) const;
  bool may_decode(const ImageTurn& turn) const;

  const Limits limits_;
  std::list<Client> clients_;  // who has had the least time first
};

}  // namespace rbee::engine
