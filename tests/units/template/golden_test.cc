// Renders templates like Python's Jinja2 (goldens/README.md says how the files were made).

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/text/template/chat_template.h"
#include "tests/support/data_folder.h"

namespace rbee::text {
namespace {

using Json = nlohmann::ordered_json;

std::filesystem::path folder() {
  return std::filesystem::path(test::data_folder()) / "units" / "template" / "goldens";
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Both must agree on the text, or on failing.
void expect_golden(const Json& golden, const std::string& source, const std::string& variables) {
  std::string output;
  try {
    output = ChatTemplate(source).render(variables);
  } catch (const Error& error) {
    EXPECT_TRUE(golden.contains("error"))
        << "failed: " << error.what() << "\nexpected: " << golden.value("output", "");
    return;
  }
  if (golden.contains("error")) {
    ADD_FAILURE() << "Jinja2 fails with " << golden["error"] << ", this gave:\n" << output;
    return;
  }
  EXPECT_EQ(output, golden["output"].get<std::string>());
}

TEST(TemplateGolden, Expressions) {
  const Json file = Json::parse(read(folder() / "expressions.json"));
  const std::string variables = file["variables"].dump();
  ASSERT_GE(file["cases"].size(), 400U);
  for (const Json& golden : file["cases"]) {
    const std::string source = golden["source"];
    SCOPED_TRACE(source);
    expect_golden(golden, source, variables);
  }
}

TEST(TemplateGolden, ChatFamilies) {
  const Json file = Json::parse(read(folder() / "families.json"));
  ASSERT_GE(file["cases"].size(), 200U);
  for (const Json& golden : file["cases"]) {
    const std::string family = golden["template"];
    const std::string conversation = golden["conversation"];
    SCOPED_TRACE(cat(family, " with ", conversation));
    expect_golden(golden, read(folder() / "templates" / (family + ".jinja")),
                  file["conversations"][conversation].dump());
  }
}

// The text of raise_exception() reaches the user unchanged.
TEST(TemplateGolden, RaisedMessages) {
  const Json file = Json::parse(read(folder() / "families.json"));
  int raised = 0;
  for (const Json& golden : file["cases"]) {
    if (!golden.contains("raised")) continue;
    const std::string family = golden["template"];
    SCOPED_TRACE(family);
    const ChatTemplate chat(read(folder() / "templates" / (family + ".jinja")));
    const std::string conversation = golden["conversation"];
    try {
      chat.render(file["conversations"][conversation].dump());
      ADD_FAILURE() << "nothing was raised";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "chat template: " + golden["raised"].get<std::string>());
      ++raised;
    }
  }
  EXPECT_GE(raised, 5);
}

}  // namespace
}  // namespace rbee::text
