#pragma once
// Bounds the bytes of all larger bodies that a server holds at once.

#include <cstddef>
#include <memory>
#include <string>

namespace rbee::server {

// A client may hold as much as it leaves to others: alone half of all, beside one that holds half a
// quarter. So others always find some room.
class BodyRoom {
 public:
  explicit BodyRoom(size_t bytes);

  // The room of one body. Its destructor gives the room back, on any thread, also after that of the
  // BodyRoom.
  class Part {
   public:
    virtual ~Part() = default;
    // Makes it at least so large; false, without a change, if there is too little room.
    virtual bool grow_to(size_t bytes) = 0;
  };
  // Empty at first.
  std::shared_ptr<Part> part(std::string client) const;

 private:
  class Held;
  class PartOf;

  const std::shared_ptr<Held> held_;
};

}  // namespace rbee::server
