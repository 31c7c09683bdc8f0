// Adapters on the chat worker, over an engine that follows a script.

#include <gmock/gmock.h>

#include "tests/server/harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kChat = "/v1/chat/completions";
using Choices = std::vector<engine::LoraChoice>;

void add_two(Worker& worker) {
  worker.engine.load_lora({.name = "sql", .path = "/adapters/sql", .scale = 1});
  worker.engine.load_lora({.name = "poet", .path = "/adapters/poet.gguf", .scale = 0.5f});
}

std::string hello(const std::string& more) {
  return cat(R"({"messages":[{"role":"user","content":"Hi"}])", more.empty() ? "" : ",", more, "}");
}

TEST(LoraRoutes, AdaptersAreModelsOfTheModel) {
  Worker worker;
  add_two(worker);
  const json data = json::parse(worker.get("/v1/models").body).at("data");
  ASSERT_EQ(data.size(), 3u);
  EXPECT_EQ(data[0].at("id"), "hf:fake");
  EXPECT_EQ(data[0].at("parent"), nullptr);
  EXPECT_EQ(data[2].at("id"), "poet");
  EXPECT_EQ(data[2].at("parent"), "hf:fake");
  EXPECT_EQ(data[2].at("max_model_len"), 2048);
  EXPECT_EQ(data[2].at("root"), "/adapters/poet.gguf");
  EXPECT_EQ(json::parse(worker.get("/v1/models/poet").body), data[2]);
}

TEST(LoraRoutes, TheModelsNameChoosesOneOnEveryRoute) {
  Worker worker;
  add_two(worker);
  const std::pair<const char*, std::string> bodies[] = {
      {kChat, hello(R"("model":"poet")")},
      {"/v1/completions", R"({"prompt":"a","model":"poet"})"},
      {"/v1/responses", R"({"input":"a","model":"poet"})"},
      {"/v1/messages",
       R"({"messages":[{"role":"user","content":"a"}],"max_tokens":4,"model":"poet"})"},
  };
  for (const auto& [path, body] : bodies) {
    const RawResponse response = worker.post(path, body);
    ASSERT_EQ(response.status, 200) << path << response.body;
    EXPECT_EQ(json::parse(response.body).at("model"), "poet") << path;
    EXPECT_EQ(worker.engine.last_request().lora, (Choices{{"poet", {}}})) << path;
  }
  ASSERT_EQ(worker.post("/v1/infer", R"({"prompt":"a","model":"sql"})").status, 200);
  EXPECT_EQ(worker.engine.last_request().lora, (Choices{{"sql", {}}}));
}

TEST(LoraRoutes, AnyOtherNameIsTheModels) {
  Worker worker;
  add_two(worker);
  const RawResponse response = worker.post(kChat, hello(R"("model":"whatever")"));
  EXPECT_EQ(json::parse(response.body).at("model"), "hf:fake");
  EXPECT_TRUE(worker.engine.last_request().lora.empty());
}

TEST(LoraRoutes, AListChoosesByIdOrName) {
  Worker worker;
  add_two(worker);
  const auto asked = [&](const std::string& more) {
    EXPECT_EQ(worker.post(kChat, hello(more)).status, 200) << more;
    return worker.engine.last_request().lora;
  };
  EXPECT_EQ(asked(R"("lora":[{"id":1,"scale":0.25},{"id":0}])"),
            (Choices{{"poet", 0.25f}, {"sql", {}}}));
  EXPECT_EQ(asked(R"("lora":[{"name":"sql","scale":-1}])"), (Choices{{"sql", -1.0f}}));
  EXPECT_EQ(asked(R"("lora":[],"model":"sql")"), Choices{});
  EXPECT_EQ(worker.post("/v1/infer", R"({"prompt":"a","lora":[{"id":1}]})").status, 200);
  EXPECT_EQ(worker.engine.last_request().lora, (Choices{{"poet", {}}}));
}

TEST(LoraRoutes, ListsThatAreWrong) {
  Worker worker;
  add_two(worker);
  const auto refused = [&](const std::string& lora, int status, const std::string& text) {
    const RawResponse response = worker.post(kChat, hello(cat(R"("lora":)", lora)));
    EXPECT_EQ(response.status, status) << lora;
    EXPECT_THAT(response.body, HasSubstr(text)) << lora;
  };
  refused(R"([{"id":2}])", 404, "no adapter of id 2; there are 2");
  refused(R"([{"id":-1}])", 400, "lora[0].id");
  refused(R"([{"scale":1}])", 400, "lora[0].id");
  refused(R"([{"id":0,"scale":101}])", 400, "lora[0].scale");
  refused(R"({"id":0})", 400, "at most 8 adapters");
  refused(R"([7])", 400, "lora[0]");
}

TEST(LoraRoutes, ScalesOfRequestsThatNameNone) {
  Worker worker;
  EXPECT_EQ(json::parse(worker.get("/lora-adapters").body), json::array());
  add_two(worker);
  const auto scales = [](const RawResponse& response) {
    EXPECT_EQ(response.status, 200) << response.body;
    std::vector<float> out;
    for (const json& each : json::parse(response.body)) out.push_back(each.at("scale"));
    return out;
  };
  EXPECT_EQ(scales(worker.get("/lora-adapters")), (std::vector<float>{0, 0}));
  EXPECT_EQ(scales(worker.post("/lora-adapters", R"([{"id":1,"scale":0.75}])")),
            (std::vector<float>{0, 0.75f}));
  worker.post(kChat, hello(""));
  EXPECT_EQ(worker.engine.last_request().lora, (Choices{{"poet", 0.75f}}));
  worker.post(kChat, hello(R"("model":"sql")"));
  EXPECT_EQ(worker.engine.last_request().lora, (Choices{{"sql", {}}}));
  worker.post(kChat, hello(R"("lora":[])"));
  EXPECT_TRUE(worker.engine.last_request().lora.empty());
  EXPECT_EQ(worker.post("/lora-adapters", R"([{"name":"other"}])").status, 404);
  EXPECT_EQ(worker.post("/lora-adapters", R"({"id":1})").status, 400);
  EXPECT_EQ(scales(worker.post("/lora-adapters", "[]")), (std::vector<float>{0, 0}));
  worker.post(kChat, hello(""));
  EXPECT_TRUE(worker.engine.last_request().lora.empty());
}

TEST(LoraRoutes, LoadingIsForWhomAFlagAllowsIt) {
  const std::string load = R"({"lora_name":"sql","lora_path":"/adapters/sql"})";
  Worker strict;
  EXPECT_EQ(strict.post("/v1/load_lora_adapter", load).status, 404);
  EXPECT_TRUE(strict.engine.loras().empty());
  Worker worker({.routes = {.lora_loading = true}});
  EXPECT_EQ(worker.post("/v1/load_lora_adapter", load).status, 200);
  ASSERT_EQ(worker.engine.loras().size(), 1u);
  EXPECT_EQ(worker.engine.loras()[0].path, "/adapters/sql");
  EXPECT_EQ(worker.post("/v1/load_lora_adapter", R"({"lora_name":"x"})").status, 400);
  const RawResponse blank =
      worker.post("/v1/load_lora_adapter", R"({"lora_name":"a b","lora_path":"/adapters/sql"})");
  EXPECT_EQ(blank.status, 400);
  EXPECT_THAT(blank.body, ::testing::HasSubstr("printable ASCII characters without space"));
  EXPECT_EQ(
      worker.post("/v1/load_lora_adapter", R"({"lora_name":"x","lora_path":"nowhere"})").status,
      404);
  const RawResponse named =
      worker.post("/v1/load_lora_adapter", R"({"lora_name":"x","lora_path":"hf:org/adapter"})");
  EXPECT_EQ(named.status, 400);
  EXPECT_THAT(named.body, ::testing::HasSubstr("names of the hub are for the flag --lora"));
  EXPECT_EQ(worker.post("/v1/unload_lora_adapter", R"({"lora_name":"x"})").status, 404);
  EXPECT_EQ(worker.post("/v1/unload_lora_adapter", R"({"lora_name":"sql"})").status, 200);
  EXPECT_TRUE(worker.engine.loras().empty());
}

}  // namespace
}  // namespace rbee::testing
