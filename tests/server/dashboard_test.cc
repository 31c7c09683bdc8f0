// The Grafana dashboard uses only metrics that workers report.

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;

// Words of letters, digits, '_' and ':' that begin with one of these.
std::set<std::string> names_in(const std::string& text) {
  const auto inside = [](char c) { return std::isalnum(c) != 0 || c == '_' || c == ':'; };
  std::set<std::string> names;
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), inside);
    const auto end = std::find_if_not(begin, text.end(), inside);
    const std::string word(begin, end);
    for (const char* first : {"worker", "rbee", "vllm", "llamacpp", "process"}) {
      if (word.starts_with(first)) names.insert(word);
    }
    begin = end;
  }
  return names;
}

TEST(Dashboard, AsksForMetricsThatAreServed) {
  Worker worker;
  worker.post("/v1/infer", R"({"prompt":"Hi"})");
  const std::string metrics = worker.get("/metrics").body;
  const std::set<std::string> served = names_in(metrics);
  std::ifstream file(DASHBOARD);
  const json dashboard = json::parse(file);
  std::set<std::string> asked;
  for (const json& panel : dashboard.at("panels")) {
    for (const json& target : panel.at("targets")) {
      const auto names = names_in(target.at("expr"));
      EXPECT_FALSE(names.empty()) << target;
      asked.insert(names.begin(), names.end());
    }
  }
  EXPECT_GE(asked.size(), 15U);
  for (const std::string& name : asked) EXPECT_TRUE(served.contains(name)) << name;
}

}  // namespace
}  // namespace rbee::testing
