#include "rbee/engine/image/turns.h"

#include <algorithm>

namespace rbee::engine {

// Only a client's oldest request can be in the middle of its work.
template <typename Visit>
void ImageTurns::each_working(const Visit& visit) const {
  for (const Client& client : clients_) {
    if (!client.turns.front()->resting) visit(*client.turns.front());
  }
}

void ImageTurns::add(ImageTurnPtr turn) {
  auto client = std::ranges::find(clients_, turn->client, &Client::name);
  if (client == clients_.end()) {
    const double least = clients_.empty() ? 0 : clients_.front().seconds;
    client = clients_.insert(clients_.begin(), {turn->client, least, {}});
  }
  client->turns.push_back(std::move(turn));
}

void ImageTurns::remove(const ImageTurn& turn) {
  const auto client = std::ranges::find(clients_, turn.client, &Client::name);
  if (client == clients_.end()) return;
  std::erase_if(client->turns, [&](const ImageTurnPtr& each) { return each.get() == &turn; });
  if (client->turns.empty()) clients_.erase(client);
}

void ImageTurns::spend(const ImageTurn& turn, double seconds) {
  const auto client = std::ranges::find(clients_, turn.client, &Client::name);
  if (client == clients_.end()) return;
  client->seconds += seconds;
  const auto behind =
      std::ranges::find_if(clients_, [&](const Client& c) { return c.seconds > client->seconds; });
  clients_.splice(behind, clients_, client);
}

ImageTurnPtr ImageTurns::next() const {
  for (const Client& client : clients_) {
    const ImageTurnPtr& turn = client.turns.front();
    if (turn->leaving && turn->begun && !turn->beside) return turn;
  }
  bool nobody_begins = false;
  for (const Client& client : clients_) {
    const ImageTurnPtr& turn = client.turns.front();
    if (turn->beside) continue;
    if (!turn->resting) {
      if (may_decode(*turn)) return turn;
      continue;
    }
    if (nobody_begins) continue;
    const Fits found = fits(*turn);
    if (found == Fits::yes) return turn;
    // Others that begin now would keep it waiting.
    nobody_begins = found == Fits::after_others;
  }
  return nullptr;
}

ImageTurns::Fits ImageTurns::fits(const ImageTurn& turn) const {
  int32_t working = 0, with_pictures = 0;
  int64_t pixels = 0;
  bool together = true;
  each_working([&](const ImageTurn& other) {
    ++working;
    const bool differ = other.adapters && turn.adapters && other.adapters != turn.adapters;
    if (differ || limits_.alone) together = false;
  });
  if (!together) return Fits::after_others;
  if (working >= limits_.working) return Fits::no;
  if (turn.picture_pixels == 0 || turn.holds_pictures) return Fits::yes;
  for (const Client& client : clients_) {
    const ImageTurn& other = *client.turns.front();
    if (&other == &turn || !other.holds_pictures) continue;
    ++with_pictures;
    pixels += other.picture_pixels;
  }
  const bool many = with_pictures >= limits_.with_pictures ||
                    (with_pictures > 0 && pixels + turn.picture_pixels > limits_.picture_pixels);
  return many ? Fits::no : Fits::yes;
}

bool ImageTurns::may_decode(const ImageTurn& turn) const {
  int64_t decoded = 0;
  each_working([&](const ImageTurn& other) {
    if (&other != &turn) decoded += other.decoded_pixels;
  });
  return turn.wanted_pixels == 0 || decoded == 0 ||
         decoded + turn.wanted_pixels <= limits_.decoded_pixels;
}

}  // namespace rbee::engine
