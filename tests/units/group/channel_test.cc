// The ring between a leader and the other ranks: threads and processes, full rings, slow readers
// and ends.
#include "rbee/group/channel.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "rbee/core/error.h"
#include "rbee/group/place.h"

namespace rbee::group {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kPatience = 60s;

// A message whose bytes tell its number.
std::vector<std::byte> message(size_t bytes, size_t number) {
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(number * 31 + i);
  return out;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

size_t size_of(size_t number) {
  constexpr size_t kSizes[] = {1, 7, 8, 9, 4096, 100'001, kMostMessageBytes, 3};
  return kSizes[number % std::size(kSizes)];
}

TEST(Channel, GivesAllReadersAllMessagesInOrder) {
  constexpr size_t kMessages = 80;  // many times around the ring
  ChannelWriter writer(3, kPatience);
  std::vector<std::jthread> readers;
  std::atomic<size_t> right = 0;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&, i] {
      ChannelReader reader(writer.descriptor(), i);
      for (size_t number = 0; number < kMessages; ++number) {
        right += reader.read() == message(size_of(number), number) ? 1 : 0;
      }
      reader.done();
    });
  }
  size_t bytes = 0;
  for (size_t number = 0; number < kMessages; ++number) {
    writer.write(message(size_of(number), number));
    bytes += size_of(number);
  }
  writer.finish();
  readers.clear();
  EXPECT_EQ(right, 3 * kMessages);
  EXPECT_EQ(writer.messages(), kMessages);
  EXPECT_EQ(writer.bytes(), bytes);
}

TEST(Channel, ReachesOtherProcesses) {
  ChannelWriter writer(2, kPatience);
  std::vector<pid_t> processes;
  for (int i = 0; i < 2; ++i) {
    processes.push_back(fork());
    ASSERT_GE(processes.back(), 0);
    if (processes.back() > 0) continue;
    ChannelReader reader(writer.descriptor(), i);
    bool right = true;
    for (size_t number = 0; number < 40; ++number) {
      right = right && reader.read() == message(size_of(number), number);
    }
    reader.done();
    _exit(right ? 0 : 1);
  }
  for (size_t number = 0; number < 40; ++number) writer.write(message(size_of(number), number));
  writer.finish();
  for (const pid_t process : processes) {
    int status = -1;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    EXPECT_EQ(status, 0);
  }
}

TEST(Channel, IsNeverFurtherAheadThanAgreed) {
  ChannelWriter writer(2, kPatience);
  ChannelReader fast(writer.descriptor(), 0), slow(writer.descriptor(), 1);
  for (uint64_t i = 0; i < kMostAhead; ++i) writer.write(message(8, i));
  for (uint64_t i = 0; i < kMostAhead; ++i) fast.read();
  fast.done();
  std::atomic<bool> written = false;
  std::jthread more([&] {
    writer.write(message(8, kMostAhead));
    written = true;
  });
  EXPECT_EQ(slow.read(), message(8, 0));  // read, but not done
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(written);
  slow.done();
  more.join();
  EXPECT_TRUE(written);
}

TEST(Channel, NamesTheRankThatDoesNothing) {
  ChannelWriter writer(2, 50ms);
  ChannelReader fast(writer.descriptor(), 0);
  for (uint64_t i = 0; i < kMostAhead; ++i) {
    writer.write(message(8, i));
    fast.read();
  }
  fast.done();
  EXPECT_EQ(error_of([&] { writer.write(message(8, 9)); }),
            "group: rank 2 has done nothing for 50 ms");
  EXPECT_GT(writer.waited_seconds(), -1);
}

TEST(Channel, AnAbortEndsAllWaits) {
  ChannelWriter writer(2, kPatience);
  ChannelReader busy(writer.descriptor(), 0);
  auto waiting = std::async(std::launch::async, [&] {
    ChannelReader reader(writer.descriptor(), 1);
    while (true) reader.read();
  });
  for (uint64_t i = 0; i < kMostAhead; ++i) writer.write(message(8, i));
  auto full = std::async(std::launch::async, [&] { writer.write(message(8, kMostAhead)); });
  busy.end();
  EXPECT_THAT(error_of([&] { waiting.get(); }), HasSubstr("the group has ended"));
  EXPECT_THAT(error_of([&] { full.get(); }), HasSubstr("a rank was lost"));
  EXPECT_TRUE(writer.ended());
  EXPECT_THAT(error_of([&] { busy.read(); }), HasSubstr("the group has ended"));
}

TEST(Channel, RefusesWhatDoesNotFit) {
  ChannelWriter writer(1, kPatience);
  EXPECT_EQ(error_of([&] { writer.write({}); }),
            "group: a message of 0 bytes is outside of 1 to 2097152");
  EXPECT_EQ(error_of([&] { writer.write(message(kMostMessageBytes + 1, 0)); }),
            "group: a message of 2097153 bytes is outside of 1 to 2097152");
  EXPECT_EQ(error_of([&] { ChannelReader(writer.descriptor(), 1); }),
            "group: the shared memory is no channel with a reader 1");
  const SharedMapping other(4096);
  EXPECT_THAT(error_of([&] { ChannelReader(other.descriptor(), 0); }),
              HasSubstr("the shared memory has 4096 bytes"));
  EXPECT_THROW(ChannelWriter(0, kPatience), Error);
  EXPECT_THROW(ChannelWriter(kMostRanks, kPatience), Error);
}

}  // namespace
}  // namespace rbee::group
