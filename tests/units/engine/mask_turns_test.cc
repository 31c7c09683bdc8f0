#include "rbee/engine/text/form/mask_turns.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace rbee::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MaskTurns, GoRoundWhoIsHeld) {
  KvBlockPool pool(4, 4);
  std::vector<TicketPtr> running;
  for (const char* name : {"a", "b", "c"}) {
    running.push_back(std::make_shared<Ticket>(pool, name, "", 0));
  }
  MaskTurns turns;
  std::vector<TicketPtr> asked;
  // As `a` is done after one slice and `c` after two.
  const auto find = [&](const TicketPtr& ticket, int64_t&) {
    asked.push_back(ticket);
    return ticket == running[2] && std::ranges::count(asked, ticket) < 2;
  };
  turns.begin(running, find);
  EXPECT_THAT(asked, IsEmpty());
  running[0]->held = running[2]->held = true;
  turns.begin(running, find);
  EXPECT_THAT(asked, ElementsAre(running[0], running[2], running[2]));
  asked.clear();
  turns.begin(running, find);
  EXPECT_THAT(asked, ElementsAre(running[2], running[0], running[2]));
}

TEST(MaskTurns, EndWithTheTimeOfTheStep) {
  KvBlockPool pool(4, 4);
  const TicketPtr ticket = std::make_shared<Ticket>(pool, "a", "", 0);
  ticket->held = true;
  MaskTurns turns;
  int slices = 0;
  int64_t most_work = 0;
  // Whatever its work, a slice of this time leaves the step none.
  const auto slow = [&](int64_t& work) {
    ++slices;
    most_work = std::max(most_work, work);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  };
  const auto never = [&](const TicketPtr&, int64_t& work) {
    slow(work);
    return true;
  };
  turns.begin({ticket}, never);
  turns.slice(slow);
  EXPECT_EQ(slices, 1);
  turns.begin({}, never);  // each step has its own
  turns.slice(slow);
  turns.slice(slow);
  EXPECT_EQ(slices, 2);
  EXPECT_LE(most_work, 20'000);  // a mask waits for no more of another one
}

}  // namespace
}  // namespace rbee::engine
