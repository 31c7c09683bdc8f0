// Clients that read a large answer slowly while the worker drains.

#include <gmock/gmock.h>
#include <signal.h>

#include <thread>

#include "rbee/core/cat.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kPieces = 100;  // in the answer of the model "large"

// Requests an answer, reads some of it, and stops the worker.
class SlowReader : public ::testing::TestWithParam<const char*> {
 protected:
  explicit SlowReader(const char* drain_seconds = "600")
      : worker_(FAKE_WORKER, {"--model", "large", "--port", "0", "--drain-seconds", drain_seconds}),
        reader_(worker_.port(), 4096) {
    reader_.send(request("POST", "/v1/infer", GetParam()));
    reader_.read_until("<0>");
    worker_.signal(SIGTERM);
    worker_.read_until("draining");
  }

  Process worker_;
  RawClient reader_;
};

class SlowReaderWithoutTime : public SlowReader {
 protected:
  SlowReaderWithoutTime() : SlowReader("1") {}
};

TEST_P(SlowReader, GetsAllOfItInADrain) {
  for (int i = 1; i < kPieces; ++i) {
    ASSERT_THAT(reader_.read_until(cat("<", i, ">")), EndsWith(cat("<", i, ">")));
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(worker_.wait(), 0);
  EXPECT_THAT(worker_.text(), HasSubstr("\"status\":200"));
  EXPECT_THAT(worker_.text(), HasSubstr("\"message\":\"stopped\""));
}

// The connection ends before the last chunk, or before Content-Length: the client notices.
TEST_P(SlowReaderWithoutTime, DoesNotHoldTheWorker) {
  const auto begin = steady_clock::now();
  EXPECT_EQ(worker_.wait(), 0);
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(1) + kStopLimit);
  EXPECT_THAT(worker_.text(), HasSubstr("\"status\":499"));
  EXPECT_THAT(reader_.read_until("\r\n0\r\n\r\n"), Not(HasSubstr(cat("<", kPieces - 1, ">"))));
}

const auto kKinds = ::testing::Values(R"({"prompt":"Hi"})", R"({"prompt":"Hi","stream":true})");
INSTANTIATE_TEST_SUITE_P(Answers, SlowReader, kKinds);
INSTANTIATE_TEST_SUITE_P(Answers, SlowReaderWithoutTime, kKinds);

}  // namespace
}  // namespace rbee::testing
