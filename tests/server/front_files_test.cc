// The front's routes for files of models, with files that a script makes.

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cli/blob_store.h"
#include "rbee/core/cancel.h"
#include "rbee/core/error.h"
#include "server/front/creations.h"
#include "server/front/uploads.h"
#include "server/http/server.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using namespace server;  // NOLINT(google-build-using-namespace)

// printf abc | sha256sum
constexpr const char* kAbc =
    "/api/blobs/sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class ScriptedFiles final : public ModelStore {
 public:
  explicit ScriptedFiles(std::filesystem::path folder) : blobs_(std::move(folder)) {}

  std::string problem_of_name(const std::string&) const override { return {}; }
  std::optional<ServedModel> pull(const std::string&, const PullWatch&) override { return {}; }
  std::vector<OllamaRecord> records() override { return {}; }
  std::optional<OllamaRecord> find_record(const std::string&) override { return {}; }
  void copy(const OllamaCopy&) override {}
  std::optional<Removal> removal(const std::string&) override { return {}; }
  bool has_blob(const std::string& digest) override { return blobs_.touch(digest); }
  std::unique_ptr<Upload> upload(const std::string& digest, std::optional<int64_t> size) override {
    return blobs_.upload(digest, size);
  }
  // What is made says what happens.
  void create(const OllamaCreate& create, const CreateWatch& watch) override {
    const std::string& name = create.record.name;
    watch.step({.status = "reading"});
    if (name == "missing") fail(Code::not_found, "create", "it is not here");
    if (name == "quick") return;
    watch.begin();
    watch.step({.status = "growing", .digest = "0", .done = 1, .total = 2});
    if (name == "bad") fail(Code::invalid_argument, "files", "they are bad");
    while (name == "endless" && !is_cancelled()) std::this_thread::yield();
    if (is_cancelled()) ended = true;
    check_cancelled("create");
  }

  std::atomic<bool> ended = false;

 private:
  tools::BlobStore blobs_;
};

class FrontFiles : public ::testing::Test {
 protected:
  FrontFiles() { std::filesystem::remove_all(folder_); }
  ~FrontFiles() override {
    creations_.stop();
    server_.stop(std::chrono::milliseconds(0));
    std::filesystem::remove_all(folder_);
  }

  Router routes() {
    Router router;
    uploads_.add_to(router);
    router.add({.method = "POST", .pattern = "/create", .handler = [this](const Request& request) {
                  OllamaCreate body;
                  body.record.name = body.record.from = query_value(request.query, "name");
                  body.stream = request.query.find("whole") == std::string::npos;
                  return creations_.create(body);
                }});
    return router;
  }
  RawResponse ask(std::string_view method, std::string_view path, std::string_view body = {}) {
    return testing::ask(server_.port(), request(method, path, body));
  }
  static std::vector<std::string> lines(const RawResponse& answer) {
    std::vector<std::string> out;
    std::istringstream text(answer.body);
    for (std::string line; std::getline(text, line);) out.push_back(line);
    return out;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / cat("front-files-", getpid());
  std::shared_ptr<ScriptedFiles> files_ = std::make_shared<ScriptedFiles>(folder_);
  std::atomic<int> made_ = 0;
  Uploads uploads_{files_, {.may_manage = true, .max_upload_bytes = 1000, .max_uploads = 4}};
  Creations creations_{files_, [this](const std::string&) { return ++made_ > 0; }};
  Server server_{{}, routes(), ApiKeys("")};
};

TEST_F(FrontFiles, AnUploadIsKeptUnderItsSum) {
  EXPECT_EQ(ask("GET", kAbc).status, 404);
  EXPECT_EQ(ask("POST", kAbc, "abc").status, 201);
  EXPECT_EQ(ask("POST", kAbc, "abc").status, 200);
  RawClient head(server_.port());
  head.send(request("HEAD", kAbc));
  EXPECT_EQ(head.read_response(false).status, 200);
  const std::string other = "/api/blobs/sha256-" + std::string(64, 'F');
  const RawResponse wrong = ask("POST", other, "abc");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, HasSubstr("digest mismatch"));
  EXPECT_EQ(ask("GET", other).status, 404);
  EXPECT_EQ(ask("POST", "/api/blobs/sha256:00", "abc").status, 400);
}

TEST_F(FrontFiles, UploadsAreLimited) {
  const std::string path = "/api/blobs/sha256:" + std::string(64, '0');
  const RawResponse large = ask("POST", path, std::string(1001, 'x'));
  EXPECT_EQ(large.status, 413);
  EXPECT_THAT(large.body, HasSubstr("1000"));
  RawClient clients[2] = {RawClient(server_.port()), RawClient(server_.port())};
  for (RawClient& client : clients) {
    client.send(cat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n",
                    "Content-Length: 9\r\n\r\n"));
    EXPECT_EQ(client.read_head().status, 100);
  }
  EXPECT_EQ(ask("POST", kAbc, "abc").status, 429);  // half of four
  for (RawClient& client : clients) {
    client.send("123456789");
    EXPECT_EQ(client.read_response().status, 400);
  }
  EXPECT_EQ(ask("POST", kAbc, "abc").status, 201);
}

TEST_F(FrontFiles, WhatIsQuickHasAStatusOfItsOwn) {
  const RawResponse quick = ask("POST", "/create?name=quick");
  EXPECT_EQ(quick.status, 200);
  EXPECT_THAT(lines(quick),
              ::testing::ElementsAre(R"({"status":"reading"})", R"({"status":"success"})"));
  EXPECT_EQ(ask("POST", "/create?name=quick&whole").body, R"({"status":"success"})");
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(ask("POST", "/create?name=missing").status, 404);
  EXPECT_EQ(made_, 2);
}

TEST_F(FrontFiles, LongWorkIsAStream) {
  const RawResponse grown = ask("POST", "/create?name=long");
  EXPECT_EQ(grown.status, 200);
  EXPECT_THAT(lines(grown), ::testing::Contains(HasSubstr(R"("completed":1)")));
  EXPECT_EQ(json::parse(lines(grown).back()), json({{"status", "success"}}));
  const RawResponse bad = ask("POST", "/create?name=bad");
  EXPECT_EQ(bad.status, 200);
  EXPECT_THAT(lines(bad).back(), HasSubstr("they are bad"));
  EXPECT_EQ(ask("POST", "/create?name=bad&whole").status, 400);
}

TEST_F(FrontFiles, ItEndsWithItsClient) {
  {
    RawClient client(server_.port());
    client.send(request("POST", "/create?name=endless"));
    EXPECT_THAT(client.read_until("growing"), HasSubstr("growing"));
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!files_->ended && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(files_->ended);
  EXPECT_EQ(made_, 0);
}

TEST_F(FrontFiles, TwoLongOnesAtOnce) {
  RawClient clients[2] = {RawClient(server_.port()), RawClient(server_.port())};
  for (RawClient& client : clients) {
    client.send(request("POST", "/create?name=endless"));
    EXPECT_THAT(client.read_until("growing"), HasSubstr("growing"));
  }
  EXPECT_EQ(ask("POST", "/create?name=long").status, 503);
  EXPECT_EQ(ask("POST", "/create?name=quick").status, 200);
  creations_.stop();
  for (RawClient& client : clients)
    EXPECT_THAT(client.read_until("stopping"), HasSubstr("stopping"));
}

}  // namespace
}  // namespace rbee::testing
