// The worker over TLS, asked by curl.

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "rbee/core/cat.h"
#include "tests/server/certificate.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Answer {
  int status;  // curl's
  std::string text;
};

Answer curl(uint16_t port, const std::string& certificate, std::string_view path,
            std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--silent", "--show-error", "--include", "--max-time", "60", "--cacert",
                           certificate, cat("https://localhost:", port, path)});
  Process process("/usr/bin/curl", more);
  const int status = process.wait();
  return {status, process.text()};
}

class Tls : public ::testing::Test {
 protected:
  Process start(const char* model = "m") {
    return Process(FAKE_WORKER, {"--model", model, "--port", "0", "--tls-cert", certificate_.file(),
                                 "--tls-key", certificate_.key()});
  }
  Certificate certificate_;
};

TEST_F(Tls, AnswersAndStreams) {
  Process worker(start());
  const Answer health = curl(worker.port(), certificate_.file(), "/health");
  EXPECT_EQ(health.status, 0) << health.text;
  EXPECT_THAT(health.text, HasSubstr("200 OK"));
  const Answer twice = curl(worker.port(), certificate_.file(), "/health",
                            {cat("https://localhost:", worker.port(), "/v1/models")});
  EXPECT_THAT(twice.text, HasSubstr("\"owned_by\""));
  EXPECT_THAT(twice.text, HasSubstr("healthy"));
  const Answer stream =
      curl(worker.port(), certificate_.file(), "/v1/infer",
           {"--json", R"({"prompt":"Hi","stream":true})", "--header", "Connection: close"});
  EXPECT_EQ(stream.status, 0) << stream.text;
  EXPECT_THAT(stream.text, HasSubstr("[DONE]"));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0);
}

TEST_F(Tls, LargeBodiesArriveWhole) {
  Process worker(start("echo"));
  const std::string text(200'000, 'x');
  const std::string body = cat(R"({"prompt":")", text, R"(","max_tokens":3})");
  const fs::path file = certificate_.folder() / "body.json";
  std::ofstream(file) << body;
  const Answer answer =
      curl(worker.port(), certificate_.file(), "/v1/infer", {"--json", cat("@", file.string())});
  EXPECT_THAT(answer.text, HasSubstr("xxxxxxxxxxxx"));
}

TEST_F(Tls, OldVersionsAndPlainTextAreRefused) {
  Process worker(start());
  EXPECT_NE(curl(worker.port(), certificate_.file(), "/health", {"--tls-max", "1.1"}).status, 0);
  EXPECT_EQ(curl(worker.port(), certificate_.file(), "/health", {"--tlsv1.3"}).status, 0);
  EXPECT_EQ(ask(worker.port(), request("GET", "/health")).status, 0);
  EXPECT_EQ(curl(worker.port(), certificate_.file(), "/health").status, 0);
}

TEST_F(Tls, ARenewedCertificateIsReadAgain) {
  Process worker(start());
  const std::string old = (certificate_.folder() / "old.pem").string();
  fs::copy_file(certificate_.file(), old);
  EXPECT_EQ(curl(worker.port(), old, "/health").status, 0);
  certificate_.renew();
  worker.signal(SIGHUP);
  worker.read_until("files are read again");
  EXPECT_EQ(curl(worker.port(), certificate_.file(), "/health").status, 0);
  EXPECT_NE(curl(worker.port(), old, "/health").status, 0);
  std::ofstream(certificate_.file()) << "nothing";
  worker.signal(SIGHUP);
  worker.read_until("stay as they were");
  EXPECT_EQ(ask(worker.port(), request("GET", "/health")).status, 0);
}

TEST_F(Tls, FilesThatAreNoneAreNamed) {
  std::ofstream(certificate_.key()) << "nothing";
  Process worker(start());
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_THAT(worker.text(), HasSubstr(certificate_.key() + " is no private key"));
  certificate_.renew();
  const Certificate other;
  Process mixed(FAKE_WORKER, {"--model", "m", "--port", "0", "--tls-cert", certificate_.file(),
                              "--tls-key", other.key()});
  EXPECT_EQ(mixed.wait(), 1);
  EXPECT_THAT(mixed.text(), HasSubstr("is no private key of " + certificate_.file()));
  Process absent(FAKE_WORKER, {"--model", "m", "--tls-cert", "/nowhere/cert.pem", "--tls-key",
                               certificate_.key()});
  EXPECT_EQ(absent.wait(), 2);
  EXPECT_THAT(absent.text(), HasSubstr("--tls-cert"));
  Process alone(FAKE_WORKER, {"--model", "m", "--tls-cert", certificate_.file()});
  EXPECT_EQ(alone.wait(), 2);
  EXPECT_THAT(alone.text(), HasSubstr("--tls-key"));
}

}  // namespace
}  // namespace rbee::testing
