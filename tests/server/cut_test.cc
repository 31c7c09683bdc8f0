// Clients that disconnect after any byte, while they send and while they read.

#include <gmock/gmock.h>
#include <sys/socket.h>

#include "tests/server/certificate.h"
#include "tests/server/harness.h"
#include "tests/server/tls_client.h"

namespace rbee::testing {
namespace {

using ::testing::HasSubstr;

const std::string& question() {
  static const std::string text = request("POST", "/v1/infer", R"({"prompt":"Hi","stream":true})");
  return text;
}

constexpr std::string_view kEndOfPieces = "world\"}\n\n\r\n";  // with the end of its chunk

// A worker whose answers end only if they are cancelled.
WorkerOptions held(const Certificate* certificate = nullptr) {
  WorkerOptions options{.script = {.hold_after = true}};
  if (certificate != nullptr) {
    options.server.tls_certificate = certificate->file();
    options.server.tls_key = certificate->key();
  }
  return options;
}

TEST(Cut, RequestsThatEndAfterAnyByteStartNothing) {
  Worker worker(held());
  for (size_t count = 0; count < question().size(); ++count) {
    const int socket = connect_to(worker.port());
    ::send(socket, question().data(), count, MSG_NOSIGNAL);
    close_socket(socket, count % 2 == 1);
  }
  EXPECT_EQ(worker.get("/health").status, 200);
  EXPECT_EQ(worker.engine.stats().running, 0);
  EXPECT_EQ(worker.engine.cancelled(), 0);
}

TEST(Cut, RequestsWhoseSenderClosesItsSideAreToldSo) {
  Worker worker(held());
  for (size_t count = 1; count < question().size(); ++count) {
    RawClient client(worker.port());
    client.send(question().substr(0, count));
    client.half_close();
    EXPECT_EQ(client.read_response().status, 400) << count;
  }
}

TEST(Cut, AnswersLeftAfterAnyByteAreCancelled) {
  Worker worker(held());
  RawClient whole(worker.port());
  whole.send(question());
  const size_t bytes = whole.read_until(kEndOfPieces).size();
  whole.close();
  ASSERT_TRUE(worker.engine.wait_ended(1));
  for (size_t count = 0; count <= bytes; ++count) {
    const int socket = connect_to(worker.port());
    ::send(socket, question().data(), question().size(), MSG_NOSIGNAL);
    // The server may join other pieces in one chunk, which changes the bytes.
    skip_bytes_until(socket, count, kEndOfPieces);
    close_socket(socket, count % 2 == 1);
    ASSERT_TRUE(worker.engine.wait_ended(static_cast<int>(count) + 2)) << count;
  }
  EXPECT_EQ(worker.engine.cancelled(), static_cast<int>(bytes) + 2);
  EXPECT_EQ(worker.get("/health").status, 200);
}

class CutTls : public ::testing::Test {
 protected:
  // Counts bytes on the wire: until a request is sent, and after the handshake until the end of the
  // answer's pieces.
  void measure() {
    TlsClient client(worker_.port());
    ASSERT_TRUE(client.handshake());
    // The bytes of this handshake; signatures differ in length.
    const size_t handshake = client.received();
    ASSERT_TRUE(client.send(question()));
    EXPECT_THAT(client.read_until(kEndOfPieces), HasSubstr("world"));
    sent_ = client.sent();
    answered_ = client.received() - handshake;
    client.close(false);
    ASSERT_TRUE(worker_.engine.wait_ended(1));
  }
  bool answers() {
    TlsClient client(worker_.port());
    return client.handshake() && client.send(request("GET", "/health")) &&
           client.read_until("\r\n").starts_with("HTTP/1.1 200");
  }

  const Certificate certificate_;
  Worker worker_{held(&certificate_)};
  size_t sent_ = 0;
  size_t answered_ = 0;
};

TEST_F(CutTls, HandshakesAndRequestsThatEndAfterAnyByteStartNothing) {
  measure();
  for (size_t count = 0; count < sent_; ++count) {
    TlsClient client(worker_.port(), count);
    EXPECT_FALSE(client.handshake() && client.send(question())) << count;
    client.close(count % 2 == 1);
  }
  EXPECT_TRUE(answers());
  EXPECT_EQ(worker_.engine.cancelled(), 1);  // the request that was measured
  EXPECT_EQ(worker_.engine.stats().running, 0);
}

TEST_F(CutTls, AnswersLeftAfterAnyByteAreCancelled) {
  measure();
  int ended = 1;
  ASSERT_GT(answered_, 0u);
  for (size_t count = 0; count <= answered_; ++count) {
    TlsClient client(worker_.port());
    ASSERT_TRUE(client.handshake());
    ASSERT_TRUE(client.send(question()));
    // The server may join other pieces in one send, which changes the bytes.
    client.read_bytes_until(count, kEndOfPieces);
    client.close(count % 2 == 1);
    ASSERT_TRUE(worker_.engine.wait_ended(++ended)) << count;
  }
  EXPECT_EQ(worker_.engine.cancelled(), ended);
  EXPECT_TRUE(answers());
}

}  // namespace
}  // namespace rbee::testing
