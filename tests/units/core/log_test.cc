#include "rbee/core/log.h"

#include <gtest/gtest.h>

#include <vector>

namespace rbee {
namespace {

class LogTest : public ::testing::Test {
 protected:
  void TearDown() override { set_log_sink({}, LogLevel::trace); }

  void record(LogLevel lowest) {
    set_log_sink(
        [this](LogLevel level, std::string_view message, std::span<const LogField> fields) {
          std::string line = cat(static_cast<int>(level), ' ', message);
          for (const LogField& field : fields) line += cat(' ', field.key, '=', field.value);
          lines_.push_back(line);
        },
        lowest);
  }

  std::vector<std::string> lines_;
};

TEST_F(LogTest, WithoutASinkNothingIsEnabled) {
  EXPECT_FALSE(log_enabled(LogLevel::error));
  EXPECT_NO_THROW(log(LogLevel::error, "dropped"));
}

TEST_F(LogTest, PassesMessageAndFields) {
  record(LogLevel::trace);
  log(LogLevel::info, "loaded", {{"bytes", cat(12)}, {"path", "a b"}});
  EXPECT_EQ(lines_, std::vector<std::string>{"2 loaded bytes=12 path=a b"});
}

TEST_F(LogTest, DropsWhatIsBelowTheLowestLevel) {
  record(LogLevel::warn);
  EXPECT_FALSE(log_enabled(LogLevel::info));
  EXPECT_TRUE(log_enabled(LogLevel::warn));
  log(LogLevel::info, "quiet");
  log(LogLevel::error, "loud");
  EXPECT_EQ(lines_, std::vector<std::string>{"4 loud"});
}

TEST_F(LogTest, AnEmptySinkTurnsItOff) {
  record(LogLevel::trace);
  set_log_sink({}, LogLevel::trace);
  EXPECT_FALSE(log_enabled(LogLevel::error));
  log(LogLevel::error, "dropped");
  EXPECT_TRUE(lines_.empty());
}

}  // namespace
}  // namespace rbee
