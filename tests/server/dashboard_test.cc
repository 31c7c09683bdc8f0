// The Grafana dashboard asks for what workers report.

#include <gmock/gmock.h>

#include <fstream>
#include <regex>
#include <set>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;

std::set<std::string> names_in(const std::string& text, const char* pattern) {
  const std::regex name(pattern);
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

TEST(Dashboard, AsksForMetricsThatAreServed) {
  Worker worker;
  worker.post("/v1/infer", R"({"prompt":"Hi"})");
  const std::string metrics = worker.get("/metrics").body;
  const std::set<std::string> served = names_in(metrics, R"((?:^|\n)([a-z][a-z0-9_:]*)[{ ])");
  std::ifstream file(DASHBOARD);
  const json dashboard = json::parse(file);
  std::set<std::string> asked;
  for (const json& panel : dashboard.at("panels")) {
    for (const json& target : panel.at("targets")) {
      const auto names = names_in(target.at("expr"), R"(((?:worker|rbee|vllm)[a-z0-9_:]+))");
      EXPECT_FALSE(names.empty()) << target;
      asked.insert(names.begin(), names.end());
    }
  }
  EXPECT_GE(asked.size(), 15U);
  for (const std::string& name : asked) EXPECT_TRUE(served.contains(name)) << name;
}

}  // namespace
}  // namespace rbee::testing
