// Pictures are encoded in slices between other requests' steps.

#include <gmock/gmock.h>

#include <functional>

#include "rbee/engine/text/prompt/picture_cache.h"
#include "rbee/engine/text/scheduler.h"
#include "rbee/io/image/png.h"
#include "tests/support/data_folder.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kSide = 32, kRows = 16;  // of tests/models/vision/data

// A tower of many stages; the last is the model's own tower.
class LongTower final : public models::PictureEncoder {
 public:
  LongTower(const models::PictureEncoder& inner, int64_t stages) : inner_(inner), stages_(stages) {}

  int64_t side() const override { return inner_.side(); }
  int64_t tokens() const override { return inner_.tokens(); }
  int64_t stages() const override { return stages_; }
  Tensor stage(int64_t index, const Tensor& x) const override {
    if (at_stage) at_stage(index);
    return index + 1 < stages_ ? x : inner_(x);
  }
  double multiplications() const override { return static_cast<double>(stages_) * 1e12; }
  int64_t weight_bytes() const override { return inner_.weight_bytes(); }
  int64_t parameters() const override { return inner_.parameters(); }

  std::function<void(int64_t index)> at_stage;

 private:
  const models::PictureEncoder& inner_;
  const int64_t stages_;
};

// A model whose pictures go through a LongTower.
class LookingLong final : public models::LanguageModel {
 public:
  LookingLong(std::unique_ptr<models::LanguageModel> inner, int64_t stages)
      : inner_(std::move(inner)), tower(*inner_->pictures(), stages) {}

  const models::ModelConfig& config() const override { return inner_->config(); }
  Tensor forward(const models::ForwardBatch& batch, nn::KvCache& cache) const override {
    return inner_->forward(batch, cache);
  }
  Tensor states(const models::ForwardBatch& batch, nn::KvCache& cache) const override {
    return inner_->states(batch, cache);
  }
  const models::PictureEncoder* pictures() const override { return &tower; }
  std::span<const nn::LoraTarget> lora_targets() const override { return inner_->lora_targets(); }
  DType activations() const override { return inner_->activations(); }
  int64_t weight_bytes() const override { return inner_->weight_bytes(); }
  int64_t parameters() const override { return inner_->parameters(); }
  std::string quantization() const override { return inner_->quantization(); }

 private:
  std::unique_ptr<models::LanguageModel> inner_;

 public:
  LongTower tower;
};

TextModel seeing_model() {
  const auto path = std::filesystem::path(test::data_folder()) / "models/vision/data/hf";
  return load_text_model(path, {.device = &cpu(), .context = 256});
}

// The same with this many stages; tower: receives its address.
TextModel looking_long(int64_t stages, LongTower** tower) {
  TextModel out = seeing_model();
  auto model = std::make_unique<LookingLong>(std::move(out.model), stages);
  *tower = &model->tower;
  out.model = std::move(model);
  return out;
}

std::shared_ptr<const io::Pixels> pixels(uint8_t value) {
  return std::make_shared<const io::Pixels>(
      io::Pixels{.width = kSide,
                 .height = kSide,
                 .channels = 3,
                 .values = std::vector<uint8_t>(kSide * kSide * 3, value)});
}

TextRequest asking(uint8_t value, int32_t max_tokens = 6) {
  TextRequest request = greedy("", max_tokens);
  request.messages.push_back({.role = "user", .content = "What?"});
  request.messages[0].pictures.push_back(
      {.at = 5,
       .file = std::make_shared<const PictureFile>(io::encode_png(*pixels(value))),
       .field = "messages[0].content[0]"});
  return request;
}

TextRequest long_text(int32_t tokens) {
  TextRequest request = greedy("Once", tokens);
  request.sampling.ignore_eos = true;
  return request;
}

TEST(PictureSlices, OthersGenerateWhileAPictureIsLookedAt) {
  std::string wanted, wanted_text;
  {
    const auto engine = make_llm_engine(seeing_model(), {});
    wanted = answer(*engine, asking(9))->text;
    wanted_text = answer(*engine, long_text(100))->text;
  }
  LongTower* tower = nullptr;
  TextModel model = looking_long(20, &tower);
  const std::shared_ptr<Holder> stream = std::make_shared<Holder>();
  TextEngine* running = nullptr;
  std::vector<uint64_t> tokens;  // tokens received before each stage
  tower->at_stage = [&](int64_t) { tokens.push_back(running->stats().generated_tokens); };
  const auto engine = make_llm_engine(std::move(model), {});
  running = engine.get();
  TextRequest text = long_text(100);
  text.job_id = "text";
  engine->submit(std::move(text), stream);
  stream->wait_until_it_holds();
  const auto seeing = submit(*engine, asking(9), "seeing");
  stream->let_go();
  seeing->wait();
  stream->events.wait();
  EXPECT_EQ(seeing->text, wanted);
  EXPECT_EQ(stream->events.text, wanted_text);
  ASSERT_EQ(tokens.size(), 20u);
  // A stage costs more than a chunk of a prompt, so each token comes with one stage.
  for (size_t i = 1; i < tokens.size(); ++i) EXPECT_EQ(tokens[i], tokens[i - 1] + 1) << i;
}

TEST(PictureSlices, ACancelledRequestStopsItsTower) {
  LongTower* tower = nullptr;
  TextModel model = looking_long(20, &tower);
  TextEngine* running = nullptr;
  int stages = 0;
  tower->at_stage = [&](int64_t index) {
    ++stages;
    if (index == 3) running->cancel("seeing");
  };
  const auto engine = make_llm_engine(std::move(model), {});
  running = engine.get();
  const auto cancelled = submit(*engine, asking(9), "seeing");
  cancelled->wait();
  ASSERT_TRUE(cancelled->finished);
  EXPECT_EQ(cancelled->finished->reason, StopReason::cancelled);
  EXPECT_EQ(stages, 4);
  EXPECT_EQ(engine->stats().pictures, 0u);
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
  // The interrupted picture is dropped; the next starts from its beginning.
  EXPECT_TRUE(answer(*engine, asking(9))->finished);
  EXPECT_EQ(stages, 24);
}

TEST(PictureSlices, AFailureOfTheTowerEndsItsRequestAlone) {
  LongTower* tower = nullptr;
  TextModel model = looking_long(5, &tower);
  bool fails = true;
  tower->at_stage = [&](int64_t index) {
    if (fails && index == 2) fail(Code::out_of_memory, "tower", "nothing is left");
  };
  const auto engine = make_llm_engine(std::move(model), {});
  const auto holder = hold(*engine, long_text(10));
  const auto failed = submit(*engine, asking(9), "seeing");
  holder->let_go();
  failed->wait();
  holder->events.wait();
  ASSERT_TRUE(failed->failed);
  EXPECT_EQ(failed->failed->code, Code::out_of_memory);
  EXPECT_TRUE(holder->events.finished);
  fails = false;
  EXPECT_TRUE(answer(*engine, asking(9))->finished);
}

// A request with many pictures does not delay one with a single picture.
TEST(PictureSlices, PicturesTakeTurns) {
  struct Named final : Ticket {
    Named(KvBlockPool& pool, int32_t level) : Ticket(pool, "c", {}, level) {}
  };
  KvBlockPool pool(64, 4);
  Scheduler scheduler(pool, {.max_running = 4, .step_tokens = 40, .beside_tokens = 10});
  int32_t keys = 0;
  const auto add = [&](int64_t pictures, int32_t level) {
    auto ticket = std::make_shared<Named>(pool, level);
    for (int64_t i = 0; i < pictures; ++i) {
      ticket->sequence.pictures.push_back(
          {.first = 2 + 6 * i, .count = 4, .picture = std::make_shared<SeenPicture>()});
      ticket->sequence.pictures.back().picture->key = --keys;
    }
    for (int32_t i = 0; i < 2 + 6 * pictures; ++i)
      ticket->sequence.tokens.push_back(-keys * 100 + i);
    scheduler.add(ticket);
    EXPECT_EQ(scheduler.next(), ticket);
    EXPECT_TRUE(scheduler.join());
    return ticket;
  };
  const auto see = [&] {
    const TicketPtr ticket = scheduler.next_picture();
    ticket->sequence.unseen()->picture->rows = zeros(Shape{4, 1}, DType::f32, cpu());
    ++ticket->pictures_seen;
    return ticket;
  };
  const auto counts = [&] {
    std::vector<int64_t> out;
    const std::vector<Scheduler::Part> parts = scheduler.plan();
    for (const Scheduler::Part& part : parts) {
      out.push_back(part.count);
      part.ticket->sequence.cached += part.count;
    }
    return out;
  };
  const auto many = add(3, 0), one = add(1, 0);
  EXPECT_EQ(scheduler.next_picture(), many);
  EXPECT_THAT(counts(), ElementsAre(2, 2));  // the text before the pictures
  EXPECT_THAT(counts(), ElementsAre());
  EXPECT_EQ(scheduler.picture_tokens({}), 40);
  EXPECT_EQ(see(), many);
  const auto urgent = add(1, -1);
  EXPECT_EQ(see(), urgent);
  EXPECT_EQ(see(), one);
  EXPECT_EQ(see(), many);
  // All that can be evaluated: two pictures, and the text between and after them.
  EXPECT_THAT(counts(), ElementsAre(8, 12, 6));
  // The others got their first tokens with their prompts: now they leave the tower less.
  for (const auto& ticket : {urgent, one}) ticket->sequence.tokens.push_back(1);
  const std::vector<Scheduler::Part> parts = scheduler.plan();
  EXPECT_EQ(parts.size(), 2u);
  EXPECT_EQ(scheduler.picture_tokens(parts), 10);
  scheduler.remove(*many);
  EXPECT_EQ(scheduler.next_picture(), nullptr);
  scheduler.remove(*urgent);
  scheduler.remove(*one);
  EXPECT_EQ(pool.used(), 0);
}

TEST(PictureSlices, AsManyStagesAsTheWorkIsFor) {
  const TextModel model = seeing_model();
  LongTower tower(*model.model->pictures(), 10);
  std::vector<int64_t> stages;
  tower.at_stage = [&](int64_t index) { stages.push_back(index); };
  PictureCache cache(tower, cpu(), 1 << 20);
  const auto picture = cache.find(pixels(1));
  cache.encode(picture, 3.5e12);  // a stage is 1e12
  EXPECT_THAT(stages, ElementsAre(0, 1, 2));
  cache.encode(picture, 0);
  EXPECT_THAT(stages, ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(picture->seen());
  EXPECT_EQ(cache.encoded(), 0);
  cache.encode(picture, 1e30);
  EXPECT_EQ(stages.size(), 10u);
  ASSERT_TRUE(picture->seen());
  EXPECT_EQ(cache.encoded(), 1);
  // Shared before it is complete, too.
  const auto other = cache.find(pixels(2));
  cache.encode(other, 0);
  EXPECT_EQ(cache.find(pixels(2)), other);
  EXPECT_NE(other->key, picture->key);
}

TEST(PictureSlices, BytesThatAreKept) {
  const TextModel model = seeing_model();
  const models::PictureEncoder& tower = *model.model->pictures();
  const int64_t width = model.model->config().dim;
  const int64_t each = kRows * width * 4 + kSide * kSide * 3;
  PictureCache cache(tower, cpu(), 2 * each + 1);
  const auto see = [&](uint8_t value) {
    auto picture = cache.find(pixels(value));
    if (!picture->seen()) cache.encode(picture, 1e30);
    return picture->key;
  };
  const int32_t first = see(1), second = see(2);
  EXPECT_EQ(cache.kept_bytes(), 2 * each);
  EXPECT_EQ(see(1), first);  // makes the second one the older
  see(3);
  EXPECT_EQ(cache.kept_bytes(), 2 * each);
  EXPECT_EQ(see(1), first);
  EXPECT_NE(see(2), second);
  EXPECT_EQ(cache.encoded(), 4);
  PictureCache none(tower, cpu(), 0);
  const auto held = none.find(pixels(1));
  none.encode(held, 1e30);
  EXPECT_EQ(none.kept_bytes(), 0);
  EXPECT_EQ(none.find(pixels(1)), held);  // as long as it is held
}

}  // namespace
}  // namespace rbee::engine
