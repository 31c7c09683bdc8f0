// How requests share steps, without a model: a step evaluates the plan, and each completed sequence
// gets a token.
#include "rbee/engine/text/scheduler.h"

#include <gmock/gmock.h>

#include <map>

#include "tests/support/expect_error.h"

namespace rbee::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Submitted {
  int64_t tokens = 1;
  std::string client = "c";
  std::string user = {};
  int32_t priority = 0;
  int32_t first_token = -1;  // the first of consecutive tokens; negative: its own
  int64_t score_end = 0;     // of the sequence
};

struct Named final : Ticket {
  Named(KvBlockPool& pool, std::string the_name, const Submitted& options)
      : Ticket(pool, options.client, options.user, options.priority), name(std::move(the_name)) {}
  const std::string name;
};

class SchedulerTest : public ::testing::Test {
 protected:
  void start(int64_t blocks, int64_t block_size, const SchedulerOptions& options) {
    pool_.emplace(blocks, block_size);
    scheduler_.emplace(*pool_, options);
  }
  void TearDown() override {
    tickets_.clear();
    scheduler_.reset();
  }

  void submit(const std::string& name, const Submitted& options) {
    auto ticket = std::make_shared<Named>(*pool_, name, options);
    const int32_t first =
        options.first_token >= 0 ? options.first_token : 10000 * (1 + std::ssize(tickets_));
    for (int32_t i = 0; i < options.tokens; ++i) ticket->sequence.tokens.push_back(first + i);
    ticket->sequence.score_end = options.score_end;
    tickets_[name] = ticket;
    scheduler_->add(ticket);
  }
  void let_join() {
    while (scheduler_->next() && scheduler_->join()) {
    }
  }
  // Runs one step; returns "name count" for each part.
  std::vector<std::string> step() {
    let_join();
    std::vector<std::string> out;
    const std::vector<Scheduler::Part> parts = scheduler_->plan();
    for (const Scheduler::Part& part : parts) {
      Sequence& sequence = part.ticket->sequence;
      out.push_back(static_cast<const Named&>(*part.ticket).name + " " +
                    std::to_string(part.count));
      EXPECT_LE((sequence.cached + part.count - 1) / pool_->block_size(),
                std::ssize(sequence.kv.blocks()) - 1);
      sequence.cached += part.count;
      sequence.scored = std::min(std::max(sequence.scored, sequence.cached), sequence.score_end);
    }
    Scheduler::publish(parts);
    scheduler_->note_time(0, 0, 0);
    for (const Scheduler::Part& part : parts) {
      Sequence& sequence = part.ticket->sequence;
      if (sequence.cached == sequence.length()) sequence.tokens.push_back(7);
    }
    return out;
  }
  void teach() {
    scheduler_->note_time(1, 0, 0.005);
    scheduler_->note_time(16, 0, 0.020);
    scheduler_->note_time(0, 100, 0.104);
  }
  void remove(const std::string& name) { scheduler_->remove(*tickets_.at(name)); }
  std::vector<std::string> running() const {
    std::vector<std::string> out;
    for (const TicketPtr& ticket : scheduler_->running()) {
      out.push_back(static_cast<const Named&>(*ticket).name);
    }
    return out;
  }
  // The order in which all waiting requests get the only place.
  std::vector<std::string> turns() {
    std::vector<std::string> out;
    while (scheduler_->next()) {
      EXPECT_TRUE(scheduler_->join());
      out.push_back(running().front());
      remove(out.back());
    }
    return out;
  }

  std::optional<KvBlockPool> pool_;
  std::optional<Scheduler> scheduler_;
  std::map<std::string, std::shared_ptr<Named>> tickets_;
};

TEST_F(SchedulerTest, RequestsJoinAndLeaveBetweenSteps) {
  start(64, 4, {.max_running = 2, .step_tokens = 16, .beside_tokens = 4});
  submit("a", {.tokens = 3});
  EXPECT_THAT(step(), ElementsAre("a 3"));
  submit("b", {.tokens = 2});
  submit("c", {.tokens = 2});
  EXPECT_THAT(step(), ElementsAre("a 1", "b 2"));
  EXPECT_THAT(step(), ElementsAre("a 1", "b 1"));
  EXPECT_EQ(scheduler_->waiting(), 1u);  // both places are taken
  remove("a");
  EXPECT_THAT(step(), ElementsAre("b 1", "c 2"));
  remove("b");
  remove("c");
  EXPECT_THAT(step(), IsEmpty());
  EXPECT_EQ(pool_->used(), 0);
}

TEST_F(SchedulerTest, ALongPromptGoesInChunksAndHoldsNobodyUp) {
  start(64, 4, {.max_running = 4, .step_tokens = 16, .beside_tokens = 4});
  submit("long", {.tokens = 40});
  EXPECT_THAT(step(), ElementsAre("long 16"));  // none generates: the whole step
  submit("short", {.tokens = 3});
  EXPECT_THAT(step(), ElementsAre("long 13", "short 3"));
  EXPECT_THAT(step(), ElementsAre("short 1", "long 4"));
  EXPECT_THAT(step(), ElementsAre("short 1", "long 4"));
  EXPECT_THAT(step(), ElementsAre("short 1", "long 3"));
  EXPECT_THAT(step(), ElementsAre("long 1", "short 1"));
}

TEST_F(SchedulerTest, GenerationBesidePromptsFillsTiles) {
  start(64, 4, {.max_running = 4, .step_tokens = 40, .beside_tokens = 10, .row_tile = 8});
  submit("a", {.tokens = 1});
  submit("b", {.tokens = 1});
  EXPECT_THAT(step(), ElementsAre("a 1", "b 1"));
  submit("long", {.tokens = 30});
  // 12 would be allowed, but only a tile of 8 fits without a half-empty one.
  EXPECT_THAT(step(), ElementsAre("a 1", "b 1", "long 6"));
  remove("a");
  EXPECT_THAT(step(), ElementsAre("b 1", "long 7"));
}

TEST_F(SchedulerTest, AStepBelowATileIsNotCut) {
  start(64, 4, {.max_running = 4, .step_tokens = 40, .beside_tokens = 3, .row_tile = 8});
  submit("a", {.tokens = 1});
  step();
  submit("long", {.tokens = 30});
  EXPECT_THAT(step(), ElementsAre("a 1", "long 3"));
}

TEST_F(SchedulerTest, TheFirstPromptHasHalfAndTheShortestTheRest) {
  start(64, 4, {.max_running = 8, .step_tokens = 16, .beside_tokens = 4});
  submit("first", {.tokens = 60});
  submit("second", {.tokens = 50});
  submit("third", {.tokens = 5});
  EXPECT_THAT(step(), ElementsAre("first 8", "second 3", "third 5"));
  EXPECT_THAT(step(), ElementsAre("third 1", "first 2", "second 2"));
}

TEST_F(SchedulerTest, PromptsAreLetInOnlyWhenTheNextStepHasRoomForThem) {
  start(64, 4, {.max_running = 8, .step_tokens = 16, .beside_tokens = 4});
  for (const char* name : {"a", "b", "c", "d", "e"}) submit(name, {.tokens = 20});
  let_join();
  EXPECT_THAT(running(), ElementsAre("a", "b", "c", "d"));  // a quarter of the step for each
}

TEST_F(SchedulerTest, StepsOfManyThatGenerateStillCarryPromptsOn) {
  start(64, 4, {.max_running = 4, .step_tokens = 4, .beside_tokens = 4});
  for (const char* name : {"a", "b", "c"}) submit(name, {});
  EXPECT_THAT(step(), ElementsAre("a 1", "b 1", "c 1"));
  submit("prompt", {.tokens = 4});
  EXPECT_THAT(step(), ElementsAre("a 1", "b 1", "c 1", "prompt 2"));
  EXPECT_THAT(step(), ElementsAre("a 1", "b 1", "c 1", "prompt 2"));
}

TEST_F(SchedulerTest, NoTokenOfAPromptIsEvaluatedAlone) {
  start(64, 4, {.max_running = 1, .step_tokens = 8, .beside_tokens = 8});
  submit("a", {.tokens = 17});
  EXPECT_THAT(step(), ElementsAre("a 8"));
  EXPECT_THAT(step(), ElementsAre("a 9"));
  EXPECT_THAT(step(), ElementsAre("a 1"));  // generated
}

TEST_F(SchedulerTest, ClientsTakeTurnsWithinAPriority) {
  start(16, 4, {.max_running = 1});
  for (const char* name : {"a1", "a2", "a3"}) submit(name, {.client = "a"});
  submit("b1", {.client = "b"});
  for (const char* name : {"c1", "c2"}) submit(name, {.client = "c"});
  submit("b2", {.client = "b", .priority = -1});
  submit("a4", {.client = "a", .priority = 5});
  EXPECT_THAT(turns(), ElementsAre("b2", "a1", "b1", "c1", "a2", "c2", "a3", "a4"));
}

TEST_F(SchedulerTest, UsersTakeTurnsWithinTheTurnsOfTheirClient) {
  start(16, 4, {.max_running = 1});
  for (const char* name : {"ax1", "ax2"}) submit(name, {.client = "a", .user = "x"});
  submit("ay1", {.client = "a", .user = "y"});
  submit("az1", {.client = "a", .user = "z"});
  for (const char* name : {"bx1", "bx2"}) submit(name, {.client = "b", .user = "x"});
  EXPECT_THAT(turns(), ElementsAre("ax1", "bx1", "ay1", "bx2", "az1", "ax2"));
}

TEST_F(SchedulerTest, WhoWaitsCanLeave) {
  start(16, 4, {.max_running = 1});
  submit("a1", {.client = "a", .user = "x"});
  submit("a2", {.client = "a", .user = "y"});
  for (const char* name : {"b1", "b2"}) submit(name, {.client = "b"});
  remove("a1");
  remove("b1");
  remove("b2");
  EXPECT_EQ(scheduler_->waiting(), 1u);
  remove("b2");  // again: nothing happens
  EXPECT_THAT(turns(), ElementsAre("a2"));
}

TEST_F(SchedulerTest, WithoutBlocksTheLastLosesItsOwnAndIsEvaluatedAnew) {
  start(4, 4, {.max_running = 2, .step_tokens = 16, .beside_tokens = 16});
  submit("old", {.tokens = 6});
  submit("new", {.tokens = 4});
  EXPECT_THAT(step(), ElementsAre("old 6", "new 4"));
  EXPECT_THAT(step(), ElementsAre("old 1", "new 1"));  // four blocks
  EXPECT_THAT(step(), ElementsAre("old 1", "new 1"));
  EXPECT_EQ(pool_->available(), 0);
  EXPECT_THAT(step(), ElementsAre("old 1"));  // its ninth token needs a third block
  EXPECT_EQ(scheduler_->counts().preemptions, 1u);
  EXPECT_EQ(scheduler_->waiting(), 1u);
  submit("later", {});
  EXPECT_THAT(step(), ElementsAre("old 1"));  // the preempted one is next, but there is no room
  remove("old");
  // Its first block is still cached; the three others are evaluated again.
  const auto again = step();
  EXPECT_THAT(again, ElementsAre("later 1", "new 3"));
  EXPECT_EQ(tickets_["new"]->sequence.length(), 8);
  EXPECT_EQ(scheduler_->counts().preemptions, 1u);
}

TEST_F(SchedulerTest, PromptsWhoseLogitsAreWantedShareABudgetOfTheirOwn) {
  start(32, 4, {.max_running = 3, .step_tokens = 32, .beside_tokens = 32, .scored_tokens = 5});
  for (const char* name : {"a", "b"}) submit(name, {.tokens = 12, .score_end = 11});
  submit("plain", {.tokens = 8});
  EXPECT_THAT(step(), ElementsAre("a 5", "plain 8"));
  EXPECT_THAT(step(), ElementsAre("plain 1", "a 5"));
  EXPECT_THAT(step(), ElementsAre("plain 1", "a 2", "b 3"));
}

TEST_F(SchedulerTest, WhereLogitsAreWantedNothingComesFromTheCache) {
  start(32, 4, {.max_running = 2, .step_tokens = 32, .beside_tokens = 32, .scored_tokens = 6});
  submit("first", {.tokens = 12, .first_token = 50});
  EXPECT_THAT(step(), ElementsAre("first 12"));
  submit("scored", {.tokens = 12, .first_token = 50, .score_end = 11});
  EXPECT_THAT(step(), ElementsAre("first 1", "scored 6"));
  EXPECT_EQ(scheduler_->counts().prefix_hits, 0u);
  // Scored tokens may come from the cache: the first block of six tokens.
  Sequence& sequence = tickets_["scored"]->sequence;
  remove("scored");
  sequence.cached = 0;
  scheduler_->add(tickets_["scored"]);
  EXPECT_THAT(step(), ElementsAre("first 1", "scored 6"));
  EXPECT_EQ(scheduler_->counts().prefix_hits, 4u);
  EXPECT_EQ(sequence.cached, 10);
}

TEST_F(SchedulerTest, ThePriorityDecidesWhoIsPreempted) {
  start(5, 4, {.max_running = 2, .step_tokens = 16, .beside_tokens = 16});
  submit("lowly", {.tokens = 7, .priority = 1});
  EXPECT_THAT(step(), ElementsAre("lowly 7"));
  submit("urgent", {.tokens = 7, .priority = 0});
  EXPECT_THAT(step(), ElementsAre("lowly 1", "urgent 7"));
  EXPECT_THAT(step(), ElementsAre("urgent 1", "lowly 1"));
  EXPECT_EQ(pool_->available(), 0);
  EXPECT_THAT(step(), ElementsAre("urgent 1"));  // it needs a third block
  EXPECT_THAT(running(), ElementsAre("urgent"));
}

TEST_F(SchedulerTest, WhoIsPreemptedCanBeCancelled) {
  start(2, 4, {.max_running = 2});
  submit("a", {.tokens = 4});
  submit("b", {.tokens = 3});
  step();
  step();
  EXPECT_THAT(running(), ElementsAre("a"));
  remove("b");
  EXPECT_EQ(scheduler_->waiting(), 0u);
  remove("a");
  EXPECT_EQ(pool_->used(), 0);
}

TEST_F(SchedulerTest, BeginningsAreSharedAndCounted) {
  start(16, 4, {.max_running = 4, .step_tokens = 64, .beside_tokens = 64});
  submit("a", {.tokens = 10, .first_token = 0});
  EXPECT_THAT(step(), ElementsAre("a 10"));
  submit("b", {.tokens = 12, .first_token = 0});
  EXPECT_THAT(step(), ElementsAre("a 1", "b 4"));
  EXPECT_EQ(pool_->used(), 4);  // two shared, one each
  EXPECT_EQ(scheduler_->counts().prefix_queries, 22u);
  EXPECT_EQ(scheduler_->counts().prefix_hits, 8u);
  remove("a");
  remove("b");
  EXPECT_EQ(pool_->used(), 0);
  submit("c", {.tokens = 13, .first_token = 0});
  EXPECT_THAT(step(), ElementsAre("c 5"));  // 8 of the 12 cached, so that some are left to evaluate
  EXPECT_EQ(scheduler_->counts().prefix_hits, 16u);
}

TEST_F(SchedulerTest, NobodyJoinsWhoWouldTakeTheBlocksThatOthersNeedNext) {
  start(3, 4, {.max_running = 4});
  submit("a", {.tokens = 8});
  step();
  submit("b", {.tokens = 4});
  EXPECT_THAT(step(), ElementsAre("a 1"));  // with the third block
  EXPECT_EQ(scheduler_->waiting(), 1u);
  EXPECT_EQ(scheduler_->counts().preemptions, 0u);
  remove("a");
  EXPECT_THAT(step(), ElementsAre("b 4"));
}

TEST_F(SchedulerTest, WhoIsHeldHasNoPart) {
  start(8, 4, {.max_running = 2});
  submit("a", {.tokens = 2});
  submit("b", {.tokens = 2});
  step();
  tickets_["a"]->held = true;
  EXPECT_THAT(step(), ElementsAre("b 1"));
  tickets_["b"]->held = true;
  EXPECT_THAT(step(), IsEmpty());
  tickets_["a"]->held = false;
  EXPECT_THAT(step(), ElementsAre("a 1"));
}

// Steps cost 4 ms, and 1 ms for each token.
SchedulerOptions bounded() {
  return {.max_running = 8, .step_tokens = 256, .beside_tokens = 64, .step_seconds = 0.06};
}

TEST_F(SchedulerTest, AClientAloneHasStepsAsLongAsItLikes) {
  start(256, 4, bounded());
  teach();
  submit("long", {.tokens = 300});
  EXPECT_THAT(step(), ElementsAre("long 256"));
  EXPECT_THAT(step(), ElementsAre("long 44"));
  submit("other", {.tokens = 300});
  EXPECT_THAT(step(), ElementsAre("long 1", "other 64"));
}

TEST_F(SchedulerTest, WhereOthersMayComeAPromptGoesInSteps) {
  start(256, 4, bounded());
  teach();
  submit("short", {.tokens = 1, .client = "b"});
  step();
  remove("short");
  submit("long", {.tokens = 300});
  EXPECT_THAT(step(), ElementsAre("long 60"));
  for (int i = 0; i < 11; ++i) scheduler_->note_time(0, 0, 1);  // no new client for long
  EXPECT_THAT(step(), ElementsAre("long 240"));
}

TEST_F(SchedulerTest, ManyOfOneClientLengthenTheStepsOfAnotherByAnotherStepOfOneToken) {
  start(256, 4, bounded());
  teach();
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) submit(name, {.tokens = 1});
  step();
  submit("x", {.tokens = 3, .client = "other"});
  tickets_["x"]->evaluated = 1000;  // no longer new
  // A step of one token takes 5 ms: 2 of generation beside the first of each, and 2 of prompts, but
  // at least 4.
  EXPECT_THAT(step(), ElementsAre("a 1", "b 1", "c 1", "x 3"));
  // 10 ms are 4 and 6.
  EXPECT_THAT(step(), ElementsAre("a 1", "d 1", "e 1", "f 1", "g 1", "x 1"));
  EXPECT_THAT(step(), ElementsAre("a 1", "b 1", "c 1", "d 1", "e 1", "x 1"));
}

TEST_F(SchedulerTest, PromptsOfClientsThatGenerateNothingGoFirst) {
  start(256, 4, bounded());
  teach();
  submit("a", {.tokens = 1});
  submit("long", {.tokens = 200});
  step();
  submit("x", {.tokens = 7, .client = "other"});
  EXPECT_THAT(step(), ElementsAre("a 1", "x 4"));
  EXPECT_THAT(step(), ElementsAre("a 1", "x 3", "long 2"));  // one alone is never a chunk
  EXPECT_THAT(step(), ElementsAre("a 1", "x 1", "long 4"));
}

// A token costs as much as the step itself, as on a device limited by arithmetic.
TEST_F(SchedulerTest, BesideANewClientTheOthersHaveEverySecondStep) {
  start(1024, 4, bounded());
  scheduler_->note_time(1, 0, 0.008);
  scheduler_->note_time(8, 0, 0.064);
  scheduler_->note_time(0, 100, 0.200);
  submit("long", {.tokens = 600});
  while (tickets_["long"]->sequence.cached < 600) step();
  submit("x", {.tokens = 3, .client = "other"});
  EXPECT_THAT(step(), ElementsAre("x 3"));
  EXPECT_THAT(step(), ElementsAre("long 1", "x 1"));
  EXPECT_THAT(step(), ElementsAre("x 1"));
  tickets_["x"]->held = true;  // a held one without a part makes no other wait
  EXPECT_THAT(step(), ElementsAre("long 1"));
  EXPECT_THAT(step(), ElementsAre("long 1"));
  tickets_["x"]->held = false;
  for (int i = 0; i < 400; ++i) step();
  // It is no longer new.
  EXPECT_THAT(step(), ElementsAre("long 1", "x 1"));
  EXPECT_THAT(step(), ElementsAre("long 1", "x 1"));
}

TEST_F(SchedulerTest, ManyRequestsAtOnceAreNotNew) {
  start(1024, 4, bounded());
  scheduler_->note_time(1, 0, 0.008);
  scheduler_->note_time(8, 0, 0.064);
  for (const char* name : {"a", "b", "c", "d", "e"}) submit(name, {.tokens = 1});
  step();
  submit("x", {.tokens = 1, .client = "other"});
  EXPECT_THAT(step(), ElementsAre("x 1"));
  EXPECT_THAT(step(), ::testing::SizeIs(2));
  EXPECT_THAT(step(), ElementsAre("x 1"));
}

TEST_F(SchedulerTest, ManyThatWaitAreNotNewEither) {
  SchedulerOptions options = bounded();
  options.max_running = 2;
  start(1024, 4, options);
  scheduler_->note_time(1, 0, 0.008);
  scheduler_->note_time(8, 0, 0.064);
  for (const char* name : {"a", "b", "c", "d", "e"}) submit(name, {.tokens = 1});
  step();
  submit("x", {.tokens = 1, .client = "other"});
  EXPECT_THAT(step(), ElementsAre("x 1"));  // replaces one of them
  EXPECT_THAT(step(), ElementsAre("a 1", "x 1"));
  EXPECT_THAT(step(), ElementsAre("x 1"));
  for (const char* name : {"c", "d", "e"}) remove(name);
  EXPECT_THAT(step(), ElementsAre("a 1", "x 1"));
  EXPECT_THAT(step(), ElementsAre("a 1", "x 1"));  // two are
}

TEST_F(SchedulerTest, OthersRestForAsLongAsTheirStepsTake) {
  start(1024, 4, bounded());
  scheduler_->note_time(1, 0, 0.008);
  scheduler_->note_time(2, 0, 0.032);  // 24 ms for another token, as with a slow sampler
  submit("long", {.tokens = 600});
  while (tickets_["long"]->sequence.cached < 600) step();
  submit("x", {.tokens = 1, .client = "other"});
  for (int i = 0; i < 2; ++i) {
    for (int rest = 0; rest < 3; ++rest) EXPECT_THAT(step(), ElementsAre("x 1"));
    EXPECT_THAT(step(), ElementsAre("long 1", "x 1"));
  }
}

TEST_F(SchedulerTest, StepsGrowNoFasterThanTheirTimesAreKnown) {
  start(256, 4, bounded());
  scheduler_->note_time(1, 0, 0.005);
  submit("short", {.tokens = 1, .client = "b"});
  step();
  remove("short");
  for (const char* name : {"a", "b", "c", "d", "e"}) submit(name, {.tokens = 1});
  EXPECT_THAT(step(), ::testing::SizeIs(2));
  scheduler_->note_time(2, 0, 0.005);
  EXPECT_THAT(step(), ::testing::SizeIs(4));
  scheduler_->note_time(4, 0, 0.080);
  EXPECT_THAT(step(), ::testing::SizeIs(3));
}

TEST_F(SchedulerTest, WhereTokensCostLittleBesideTheStepNobodyRests) {
  start(1024, 4, bounded());
  scheduler_->note_time(1, 0, 0.100);
  scheduler_->note_time(8, 0, 0.110);
  submit("long", {.tokens = 600});
  while (tickets_["long"]->sequence.cached < 600) step();
  submit("x", {.tokens = 1, .client = "other"});
  EXPECT_THAT(step(), ElementsAre("long 1", "x 1"));
  EXPECT_THAT(step(), ElementsAre("long 1", "x 1"));
}

TEST_F(SchedulerTest, OneWithoutAPlaceTakesThatOfAClientWithSeveral) {
  start(64, 4, {.max_running = 3, .step_tokens = 16, .beside_tokens = 8});
  for (const char* name : {"a", "b", "c", "d"}) submit(name, {.tokens = 2});
  step();
  submit("x", {.tokens = 2, .client = "other"});
  EXPECT_THAT(step(), ElementsAre("a 1", "b 1", "x 2"));
  submit("y", {.tokens = 2, .client = "third"});
  step();
  EXPECT_THAT(running(), ElementsAre("a", "x", "y"));
  submit("z", {.tokens = 2, .client = "fourth"});
  step();
  EXPECT_THAT(running(), ElementsAre("a", "x", "y"));  // no client has several
  remove("x");
  step();
  EXPECT_THAT(running(), ElementsAre("a", "y", "z"));
}

TEST_F(SchedulerTest, APriorityIsNotDisplacedByALowerOne) {
  start(64, 4, {.max_running = 2, .step_tokens = 16, .beside_tokens = 8});
  submit("a", {.tokens = 2});
  submit("b", {.tokens = 2});
  step();
  submit("x", {.tokens = 2, .client = "other", .priority = 1});
  step();
  EXPECT_THAT(running(), ElementsAre("a", "b"));
}

TEST_F(SchedulerTest, LongPromptsOfOneClientDoNotKeepAnotherFromJoining) {
  start(256, 4, {.max_running = 8, .step_tokens = 16, .beside_tokens = 8});
  for (const char* name : {"a", "b", "c", "d", "e"}) submit(name, {.tokens = 100});
  step();
  EXPECT_EQ(running().size(), 4u);
  submit("x", {.tokens = 3, .client = "other"});
  EXPECT_THAT(step(), ElementsAre("a 13", "x 3"));
}

TEST_F(SchedulerTest, WhoFillsTheCacheMakesRoomForASmallRequest) {
  start(16, 4, {.max_running = 8, .step_tokens = 64, .beside_tokens = 32});
  submit("a", {.tokens = 22});
  submit("b", {.tokens = 22});
  step();
  submit("x", {.tokens = 10, .client = "other"});
  step();
  EXPECT_THAT(running(), ElementsAre("a", "x"));
  submit("y", {.tokens = 30, .client = "third"});  // more than its share
  step();
  EXPECT_THAT(running(), ElementsAre("a", "x"));
}

// A displaced request does not wait for ever, even if new ones keep coming.
TEST_F(SchedulerTest, ALargeRequestThatWasDisplacedHasItsTurn) {
  start(16, 4, {.max_running = 8, .step_tokens = 64, .beside_tokens = 64});
  submit("large", {.tokens = 55});
  step();
  int most = 0, steps = 0;
  std::string before;
  for (int i = 0; i < 400; ++i) {
    const std::string name = "x" + std::to_string(i);
    submit(name, {.tokens = 8, .client = name});
    step();
    if (!before.empty()) remove(before);
    before = name;
    const bool runs = !running().empty() && running().front() == "large";
    steps = runs ? steps + 1 : 0;
    most = std::max(most, steps);
  }
  EXPECT_GE(most, 4);
}

TEST(StepTimes, TellWhatTokensCost) {
  StepTimes times;
  EXPECT_EQ(times.one(), 0);
  EXPECT_EQ(times.generated_in(1, 7), 7);
  EXPECT_EQ(times.prompts_in(1, 9), 9);
  times.note(1, 0, 0.005);
  EXPECT_DOUBLE_EQ(times.one(), 0.005);
  EXPECT_EQ(times.generated_in(1, 7), 7);  // one size of steps is not enough
  times.note(10, 0, 0.014);
  EXPECT_NEAR(times.one(), 0.005, 1e-9);
  EXPECT_EQ(times.generated_in(0.024, 7), 20);
  times.note(4, 100, 0.058);
  EXPECT_EQ(times.prompts_in(0.05, 9), 100);
  EXPECT_NEAR(times.of(2, 0), 0.006, 1e-9);
  EXPECT_NEAR(times.of(2, 100), 0.056, 1e-9);
  // Slow ones count at once, and are forgotten after a long time.
  times.note(3, 0, 0.025);
  EXPECT_EQ(times.generated_in(0.025, 7), 3);
  for (int i = 0; i < 300; ++i) times.note(10, 0, 0.014);
  EXPECT_EQ(times.generated_in(0.024, 7), 20);
}

TEST(Scheduler, RefusesOptionsOutOfRange) {
  KvBlockPool pool(4, 4);
  harness::expect_error("max_running", "0 is below 1", "",
                        [&] { Scheduler(pool, {.max_running = 0}); });
  harness::expect_error("step_tokens", "7 is below the 8", "",
                        [&] { Scheduler(pool, {.max_running = 8, .step_tokens = 7}); });
  harness::expect_error("beside_tokens", "0 is below 1", "",
                        [&] { Scheduler(pool, {.max_running = 1, .beside_tokens = 0}); });
}

}  // namespace
}  // namespace rbee::engine
