// What ranks say to each other over their link, as bytes.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "rbee/core/error.h"
#include "rbee/group/rank_link.h"
#include "rbee/group/wire.h"

namespace rbee::group {
namespace {

using ::testing::HasSubstr;

std::string refusal(std::span<const std::byte> message) {
  try {
    decode_link(message);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return "no error";
}

TEST(LinkMessages, SurviveTheWay) {
  const Identity identity{.build = "0.1", .model = "two\ntensors", .flags = "", .device = "cpu"};
  const LinkMessage hello =
      decode_link(encode_link(LinkHello{.rank = 3, .identity = identity, .machine = "m:1"}));
  EXPECT_EQ(std::get<LinkHello>(hello).machine, "m:1");
  EXPECT_EQ(std::get<LinkHello>(hello).rank, 3);
  EXPECT_EQ(std::get<LinkHello>(hello).identity, identity);
  EXPECT_EQ(std::get<LinkModel>(decode_link(encode_link(LinkModel{"/m"}))).path, "/m");
  const auto loaded = std::get<LinkLoaded>(decode_link(encode_link(LinkLoaded{5, 7, 9})));
  EXPECT_EQ(loaded.free_bytes, 9);
  EXPECT_EQ(loaded.weight_bytes, 5);
  EXPECT_EQ(loaded.cache_token_bytes, 7);
  const LinkMessage failed = decode_link(encode_link(LinkFailed{Code::not_found, "why"}));
  EXPECT_EQ(std::get<LinkFailed>(failed).code, Code::not_found);
  EXPECT_EQ(std::get<LinkFailed>(failed).why, "why");
  EXPECT_TRUE(std::holds_alternative<LinkBeat>(decode_link(encode_link(LinkBeat{}))));
  const std::string id("an id\0 of bytes", 15);
  const LinkMessage welcome =
      decode_link(encode_link(LinkWelcome{.memory = "door", .comm_id = id}));
  EXPECT_EQ(std::get<LinkWelcome>(welcome).memory, "door");
  EXPECT_EQ(std::get<LinkWelcome>(welcome).comm_id, id);
  const std::vector<std::byte> frame(5, std::byte{9});
  EXPECT_EQ(std::get<LinkCommand>(decode_link(encode_link(LinkCommand{frame}))).frame, frame);
  EXPECT_EQ(std::get<LinkDone>(decode_link(encode_link(LinkDone{77}))).frames, 77U);
}

TEST(LinkMessages, ThatAreCutOrLongerAreRefused) {
  const std::vector<std::byte> whole =
      encode_link(LinkHello{.rank = 1, .identity = {.build = "b", .model = "m"}});
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_THAT(refusal(std::span(whole).first(bytes)), HasSubstr("group message: ")) << bytes;
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_EQ(refusal(longer), "group message: 1 bytes are behind its end");
}

TEST(LinkMessages, ThatClaimTooMuchAreRefused) {
  EXPECT_EQ(refusal(std::vector{std::byte{77}}), "group message: its kind 77 is outside of 0 to 7");
  WireWriter large;
  large.put(uint8_t{0});
  large.put(int64_t{1} << 40);
  EXPECT_EQ(refusal(large.bytes()),
            "group message: model.path 1099511627776 is outside of 0 to 16384");
  WireWriter absent;
  absent.put(uint8_t{0});
  absent.put(int64_t{100});
  EXPECT_EQ(refusal(absent.bytes()),
            "group message: model.path has 100 elements, 0 bytes are left");
  WireWriter code;
  code.put(uint8_t{5});
  code.put(uint8_t{200});
  code.put_text("");
  EXPECT_EQ(refusal(code.bytes()), "group message: failed.code 200 is outside of 0 to 7");
  WireWriter negative;
  negative.put(uint8_t{4});
  negative.put(int64_t{-1});
  negative.put(int64_t{0});
  EXPECT_THAT(refusal(negative.bytes()), HasSubstr("loaded.weight_bytes -1 is outside of 0 to"));
}

TEST(RankLink, DropsWhatTheOtherSideHasNoRoomFor) {
  const auto [one, other] = RankLink::pair();
  int sent = 0;
  while (one.send(LinkFailed{Code::io, std::string(10'000, 'x')}) && sent < 100'000) ++sent;
  EXPECT_GT(sent, 1);
  EXPECT_LT(sent, 100'000);
  EXPECT_TRUE(other.receive().has_value());
}

// Two ends of a connection that carries bytes.
std::array<Descriptor, 2> stream() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

TEST(RankLink, AStreamKeepsMessagesApart) {
  auto [own, other] = stream();
  const int raw = own.get();
  const RankLink one = RankLink::of_stream(std::move(own));
  const RankLink two = RankLink::of_stream(std::move(other));
  EXPECT_TRUE(one.send(LinkDone{1}));
  EXPECT_TRUE(one.send(LinkDone{2}));
  EXPECT_EQ(std::get<LinkDone>(two.receive().value()).frames, 1U);
  EXPECT_TRUE(two.wait(std::chrono::milliseconds(0)));  // also if the socket has no more
  EXPECT_EQ(std::get<LinkDone>(two.receive().value()).frames, 2U);
  EXPECT_FALSE(two.receive().has_value());
  // Larger than the system's room, and byte by byte.
  const LinkCommand large{.frame = std::vector<std::byte>(1'000'000, std::byte{3})};
  std::thread sender([&] { EXPECT_TRUE(one.send(large)); });
  std::optional<LinkMessage> message;
  while (!message && two.wait(std::chrono::seconds(60))) message = two.receive();
  sender.join();
  EXPECT_EQ(std::get<LinkCommand>(message.value()).frame, large.frame);
  for (const char byte : {'\1', '\0', '\0', '\0', '\3'}) {
    EXPECT_FALSE(two.receive().has_value());
    ASSERT_EQ(::send(raw, &byte, 1, 0), 1);
  }
  EXPECT_TRUE(std::holds_alternative<LinkBeat>(two.receive().value()));
}

TEST(RankLink, AStreamRefusesAMessageThatIsTooLong) {
  auto [own, other] = stream();
  const RankLink two = RankLink::of_stream(std::move(other));
  const uint32_t size = 0x10000000;
  ASSERT_EQ(::send(own.get(), &size, sizeof size, 0), 4);
  EXPECT_THROW(two.receive(), Error);
}

TEST(RankLink, NoticesTheOtherSidesEnd) {
  auto [one, other] = RankLink::pair();
  EXPECT_FALSE(one.receive().has_value());
  other = RankLink();
  EXPECT_TRUE(one.wait(std::chrono::seconds(60)));
  EXPECT_THROW(one.receive(), Error);
  EXPECT_FALSE(one.send(LinkBeat{}));
}

// One that ends without reading: why it ended arrives all the same.
TEST(RankLink, LastMessagesOfASideThatReadsNothingArrive) {
  auto [leader, rank] = RankLink::pair();
  auto [near, far] = stream();
  const RankLink over = RankLink::of_stream(std::move(near));
  RankLink away = RankLink::of_stream(std::move(far));
  for (const auto& [reader, writer] :
       {std::pair<const RankLink*, RankLink*>{&leader, &rank}, {&over, &away}}) {
    EXPECT_TRUE(reader->send(LinkBeat{}));
    EXPECT_TRUE(writer->send(LinkFailed{Code::not_found, "no such file"}));
    EXPECT_TRUE(writer->send(LinkDone{7}));
    *writer = RankLink();
    EXPECT_EQ(std::get<LinkFailed>(reader->receive().value()).why, "no such file");
    EXPECT_EQ(std::get<LinkDone>(reader->receive().value()).frames, 7U);
    EXPECT_THROW(reader->receive(), Error);
  }
}

}  // namespace
}  // namespace rbee::group
