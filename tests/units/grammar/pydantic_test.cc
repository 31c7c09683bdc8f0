// The schemas that pydantic writes for its types (tools/goldens/make_pydantic_schemas.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "rbee/core/error.h"
#include "rbee/grammar/json_schema.h"
#include "tests/support/data_folder.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar {
namespace {

TEST(Pydantic, SchemasAreTakenOrRefusedByName) {
  std::ifstream file(std::filesystem::path(test::data_folder()) /
                     "units/grammar/data/pydantic.json");
  std::set<std::string> refused;
  size_t taken = 0;
  for (const auto& one : nlohmann::json::parse(file)) {
    try {
      testing::compile(parse_json_schema(one.at("schema").dump()));
      ++taken;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unsupported) << one << error.what();
      refused.insert(one.at("name").get<std::string>());
    }
  }
  EXPECT_GT(taken, 60u);
  // Sets of any strings or integers.
  EXPECT_EQ(refused, (std::set<std::string>{"frozenset", "set_", "setint"}));
}

}  // namespace
}  // namespace rbee::grammar
