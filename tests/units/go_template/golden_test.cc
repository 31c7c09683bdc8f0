// Templates as Go's own text/template renders them (goldens/README.md).

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "rbee/text/go_template/data.h"
#include "rbee/text/go_template/interpreter.h"
#include "rbee/text/go_template/parser.h"
#include "tests/support/data_folder.h"

namespace rbee::text::go {
namespace {

using nlohmann::json;

std::string rendered(const std::string& source, const Value& data) {
  const TemplateLimits limits;
  const Template code = parse(source, limits);
  return render(code, *code.root, data, limits);
}

// Both must agree on the text, or on failing.
TEST(GoTemplateGoldens, AreThoseOfGo) {
  const json all = json::parse(read_file(
      (std::filesystem::path(test::data_folder()) / "units/go_template/goldens/goldens.json")
          .string()));
  const Value data = data_of(all.at("data").dump());
  size_t good = 0;
  for (const json& one : all.at("cases")) {
    const std::string source = one.at("template");
    const bool fails = one.contains("error");
    try {
      const std::string out = rendered(source, data);
      EXPECT_FALSE(fails) << source << "\nmade " << out << "\nGo: " << one.value("error", "");
      if (!fails) EXPECT_EQ(out, one.at("output").get<std::string>()) << source;
      ++good;
    } catch (const Error& error) {
      EXPECT_TRUE(fails) << source << "\n" << error.what();
      EXPECT_EQ(error.code(), Code::invalid_argument) << source;
    }
  }
  EXPECT_GT(good, 80U);
}

}  // namespace
}  // namespace rbee::text::go
