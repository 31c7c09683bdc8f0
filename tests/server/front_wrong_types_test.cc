// The fields that the front itself reads, with values of types that they cannot have, on every path
// of workers of all kinds: each gets an answer, and the next plain request too.

#include <gmock/gmock.h>

#include "tests/server/front_harness.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

const std::vector<json>& samples() {
  static const std::vector<json> all = {true, 7.5, "zz", {{7.5}}, {{"zz", json::array()}}};
  return all;
}

json models_of_all_kinds() {
  json pictures = fake("sketch", "any");
  pictures["kind"] = "image";
  pictures["program"] = FAKE_SD_WORKER;
  return json::array({fake("chat", "echo"), pictures});
}

// POST paths of the front's own document, without those that name something.
std::vector<std::string> paths_of(Front& front) {
  std::vector<std::string> out;
  const json document = json::parse(front.get("/openapi.json").body);
  for (const auto& [path, methods] : document.at("paths").items()) {
    const bool fixed = path.find('{') == std::string::npos && path != "/";
    if (fixed && methods.contains("post")) out.push_back(path);
  }
  return out;
}

void expect_served(Front& front) {
  const RawResponse answer = front.post("/v1/chat/completions", chat("chat", "parrot"));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("parrot"));
  for (const size_t model : {0, 1}) {
    EXPECT_EQ(front.workers(model, 1).at(0).at("restarts"), 0);
  }
}

// Whatever a field means on a path. 501: a route that is not there.
TEST(FrontWrongTypes, OfEachFieldThatTheFrontReadsAreAnswered) {
  Front front(models_of_all_kinds());
  front.wait_ready();
  front.workers(1, 1);
  const std::vector<std::string> paths = paths_of(front);
  EXPECT_THAT(paths, ::testing::Contains("/v1/chat/completions"));
  EXPECT_THAT(paths, ::testing::Contains("/sdapi/v1/txt2img"));
  RawClient client(front.port());  // one connection: none is closed for what it sent
  for (const std::string& path : paths) {
    for (const char* field :
         {"model", "name", "keep_alive", "prompt", "messages", "input", "job_id", "operation",
          "previous_response_id", "override_settings", "tools", "cache_salt"}) {
      for (const json& value : {json(7.5), json({{"zz", json::array()}})}) {
        client.send(request("POST", path, json({{field, value}}).dump()));
        const RawResponse answer = client.read_response();
        EXPECT_THAT(answer.status, AnyOf(200, 400, 404, 415, 422, 501))
            << path << ' ' << field << ' ' << value << ": " << answer.body;
      }
    }
  }
  expect_served(front);
}

TEST(FrontWrongTypes, AreRefusedByName) {
  Front front(models_of_all_kinds());
  front.wait_ready();
  front.workers(1, 1);
  const json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const json picture = {{"prompt", "a"}, {"steps", 1}};
  struct Case {
    const char* path;
    json body;
    const char* field;
  };
  const Case cases[] = {
      {"/v1/chat/completions", {{"messages", messages}}, "model"},
      {"/v1/completions", {{"prompt", "Hi"}}, "model"},
      {"/v1/messages", {{"messages", messages}, {"max_tokens", 1}}, "model"},
      {"/v1/responses", {{"input", "Hi"}}, "model"},
      {"/v1/responses", {{"model", "chat"}, {"input", "Hi"}}, "previous_response_id"},
      {"/v1/images/generations", {{"prompt", "a"}}, "model"},
      {"/sdapi/v1/txt2img", picture, "override_settings"},
      {"/v1/jobs", {{"prompt", "Hi"}}, "operation"},
      {"/v1/cancel", json::object(), "job_id"},
      {"/api/chat", {{"messages", messages}}, "model"},
      {"/api/chat", {{"messages", messages}}, "name"},
      {"/api/chat", {{"model", "chat"}, {"messages", messages}}, "keep_alive"},
      {"/api/generate", {{"prompt", "Hi"}}, "name"},
      {"/api/show", json::object(), "name"},
      {"/api/embed", {{"model", "chat"}, {"input", "Hi"}}, "keep_alive"},
  };
  for (const Case& one : cases) {
    for (const json& value : samples()) {
      const bool object = value.is_object() && one.field == std::string("override_settings");
      const bool seconds = value.is_number() && one.field == std::string("keep_alive");
      if (object || seconds || value == "zz") continue;
      json body = one.body;
      body[one.field] = value;
      const RawResponse answer = front.post(one.path, body);
      EXPECT_EQ(answer.status, 400) << one.path << ' ' << body << answer.body;
      EXPECT_THAT(answer.body, HasSubstr(one.field)) << one.path << ' ' << body;
    }
  }
  expect_served(front);
}

// A part of a form has bytes alone: it may be a file, no text, or there twice.
TEST(FrontWrongTypes, OfFormsAreRefusedByName) {
  Front front(models_of_all_kinds());
  front.wait_ready();
  front.workers(1, 1);
  const auto part = [](std::string_view head, std::string_view data) {
    return cat("--b\r\nContent-Disposition: form-data; ", head, "\r\n\r\n", data, "\r\n");
  };
  const auto ask_with = [&](const std::string& more) {
    const std::string body =
        cat(part("name=\"prompt\"", "a"),
            part("name=\"image\"; filename=\"a.png\"", "not really a PNG"), more, "--b--\r\n");
    return ask(front.port(),
               cat("POST /v1/images/edits HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                   "multipart/form-data; boundary=b\r\nContent-Length: ",
                   body.size(), "\r\nConnection: close\r\n\r\n", body));
  };
  const std::string plain = part("name=\"model\"", "sketch");
  EXPECT_EQ(ask_with(plain).status, 200);
  const std::pair<std::string, const char*> wrong[] = {
      {part("name=\"model\"; filename=\"model.txt\"", "sketch"), "model: must be a text"},
      {plain + plain, "model: is given twice"},
      {plain + part("name=\"model\"", "other"), "model: is given twice"},
      {part("name=\"model\"", "other"), "'other' does not exist"},
      {plain + part("name=\"n\"", "zz"), "n must be an integer"},
      {plain + part("name=\"size\"; filename=\"a\"", "64x64"), "size is a file"},
  };
  for (const auto& [more, message] : wrong) {
    const RawResponse answer = ask_with(more);
    EXPECT_THAT(answer.status, AnyOf(400, 404)) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(message));
  }
  expect_served(front);
}

}  // namespace
}  // namespace rbee::testing
