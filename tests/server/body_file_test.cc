// Bodies that go to a file as they come.

#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>

#include "rbee/core/cat.h"
#include "server/http/body_file.h"
#include "server/http/server.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

using server::BodyFile;
using server::HeadVerdict;
using server::Request;
using server::Response;

constexpr size_t kMost = size_t{8} << 20;

// What became of the bodies.
struct Seen {
  void wait_for_dropped(int count) {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return dropped == count; }));
  }

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::string bytes;  // of the last
  size_t largest = 0;
  size_t most = kMost;  // more is refused
  int dropped = 0;
  bool held = false;  // writes wait
};

class SeenFile final : public BodyFile {
 public:
  explicit SeenFile(Seen& seen) : seen_(seen) {}
  ~SeenFile() override {
    const std::scoped_lock lock(seen_.mutex);
    ++seen_.dropped;
    seen_.changed.notify_all();
  }
  std::optional<Response> write(std::string_view bytes) override {
    std::unique_lock lock(seen_.mutex);
    seen_.changed.wait(lock, [&] { return !seen_.held; });
    seen_.bytes += bytes;
    seen_.largest = std::max(seen_.largest, bytes.size());
    if (seen_.bytes.size() > seen_.most) return server::text_response(507, "no room");
    return std::nullopt;
  }

 private:
  Seen& seen_;
};

struct FileServer {
  FileServer() : server({.max_body_bytes = 1000}, routes(), server::ApiKeys("")) {}

  server::Router routes() {
    server::Router router;
    router.add({.method = "POST",
                .pattern = "/files/{name}",
                .handler =
                    [this](const Request& request) {
                      const std::scoped_lock lock(seen.mutex);
                      return server::text_response(request.file ? 201 : 200,
                                                   cat(seen.bytes.size(), request.body.size()));
                    },
                .judge = [this](const Request& head) -> HeadVerdict {
                  if (head.param("name") == "none") {
                    return {.refusal = server::text_response(404, "none")};
                  }
                  const std::scoped_lock lock(seen.mutex);
                  seen.bytes.clear();
                  return {.max_body_bytes = kMost, .file = std::make_shared<SeenFile>(seen)};
                }});
    router.add({.method = "POST", .pattern = "/memory", .handler = [](const Request& request) {
                  return server::text_response(200, cat(request.body.size()));
                }});
    return router;
  }

  RawResponse post(std::string_view path, std::string_view body) const {
    return ask(server.port(), request("POST", path, body));
  }

  Seen seen;
  server::Server server;
};

std::string pattern_of(size_t size) {
  std::string out(size, ' ');
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<char>('a' + i * i % 23);
  return out;
}

TEST(BodyFile, GetsLargeBodiesInPieces) {
  FileServer files;
  for (const size_t size : {size_t{1}, size_t{300'000}, size_t{5'000'000}}) {
    const std::string body = pattern_of(size);
    const RawResponse answer = files.post("/files/a", body);
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer.body, cat(size, 0));
    EXPECT_EQ(files.seen.bytes, body);
  }
  EXPECT_LT(files.seen.largest, 300'000U);
  EXPECT_EQ(files.post("/files/a", "").body, "00");  // an empty one has a file too
  files.seen.wait_for_dropped(4);
}

TEST(BodyFile, ComesInChunksOnAConnectionThatGoesOn) {
  FileServer files;
  RawClient client(files.server.port());
  const std::string head =
      "POST /files/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 2; ++i) {
    client.send(head);
    for (int chunk = 0; chunk < 70; ++chunk)
      client.send(cat("2710\r\n", pattern_of(10'000), "\r\n"));
    client.send("0\r\n\r\n" + request("POST", "/memory", "abc"));
    EXPECT_EQ(client.read_response().body, cat(700'000, 0));
    EXPECT_EQ(client.read_response().body, "3");
  }
}

TEST(BodyFile, HasALimitOfItsOwn) {
  FileServer files;
  EXPECT_EQ(files.post("/memory", pattern_of(1000)).status, 200);
  EXPECT_EQ(files.post("/memory", pattern_of(1001)).status, 413);
  EXPECT_EQ(files.post("/nowhere", pattern_of(1001)).status, 404);
  EXPECT_EQ(files.post("/files/none", pattern_of(1001)).status, 404);
  RawClient promised(files.server.port());
  promised.send(
      cat("POST /files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: ", kMost + 1, "\r\n\r\n"));
  EXPECT_EQ(promised.read_response().status, 413);
  RawClient chunks(files.server.port());
  chunks.send("POST /files/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (size_t sent = 0; sent <= kMost; sent += 100'000) {
    if (!chunks.send(cat("186a0\r\n", pattern_of(100'000), "\r\n"))) break;
  }
  EXPECT_EQ(chunks.read_response().status, 413);
}

TEST(BodyFile, IsDroppedWhenItsClientLeaves) {
  FileServer files;
  {
    RawClient client(files.server.port());
    client.send("POST /files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n");
    client.send(pattern_of(700'000));
  }
  files.seen.wait_for_dropped(1);
  RawClient half(files.server.port());
  half.send("POST /files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\nabc");
  half.half_close();
  EXPECT_EQ(half.read_response().status, 400);
  files.seen.wait_for_dropped(2);
}

TEST(BodyFile, MayRefuseMore) {
  FileServer files;
  files.seen.most = 400'000;
  RawClient client(files.server.port());
  client.send("POST /files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n");
  client.send(pattern_of(700'000));
  const RawResponse answer = client.read_response();
  EXPECT_EQ(answer.status, 507);
  EXPECT_EQ(answer.body, "no room");
  files.seen.wait_for_dropped(1);
  EXPECT_EQ(files.post("/files/a", pattern_of(400'001)).status, 507);  // the last piece
  EXPECT_EQ(files.post("/files/a", pattern_of(400'000)).status, 201);
}

TEST(BodyFile, OthersDoNotWaitForItsDisk) {
  FileServer files;
  {
    const std::scoped_lock lock(files.seen.mutex);
    files.seen.held = true;
  }
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 4; ++i) {
    slow.push_back(std::make_unique<RawClient>(files.server.port()));
    slow.back()->send(request("POST", "/files/a", pattern_of(1'000'000 + i)));
    EXPECT_EQ(files.post("/memory", "abc").status, 200);
  }
  {
    const std::scoped_lock lock(files.seen.mutex);
    files.seen.held = false;
    files.seen.changed.notify_all();
  }
  for (const auto& client : slow) EXPECT_EQ(client->read_response().status, 201);
}

TEST(BodyFile, TheServerStopsDuringOne) {
  auto files = std::make_unique<FileServer>();
  RawClient client(files->server.port());
  client.send("POST /files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n");
  client.send(pattern_of(700'000));
  EXPECT_EQ(files->post("/memory", "abc").status, 200);
  files->server.stop(std::chrono::milliseconds(100));
  files->seen.wait_for_dropped(1);
}

}  // namespace
}  // namespace rbee::testing
