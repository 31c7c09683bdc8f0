// curl's requests to the worker over TLS, and heartbeats over TLS.

#include <gmock/gmock.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "rbee/core/cat.h"
#include "tests/server/certificate.h"
#include "tests/server/hive.h"
#include "tests/server/process.h"
#include "tests/server/raw_client.h"

namespace rbee::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

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
  worker.read_until("the certificate is read again");
  EXPECT_EQ(curl(worker.port(), certificate_.file(), "/health").status, 0);
  EXPECT_NE(curl(worker.port(), old, "/health").status, 0);
  std::ofstream(certificate_.file()) << "nothing";
  worker.signal(SIGHUP);
  worker.read_until("stays as it was");
  EXPECT_EQ(ask(worker.port(), request("GET", "/health")).status, 0);
}

TEST_F(Tls, AHalfRenewedCertificateDoesNotKeepAKey) {
  const std::string keys = (certificate_.folder() / "keys.txt").string();
  std::ofstream(keys) << "ann first-key\n";
  Process worker(FAKE_WORKER, {"--model", "m", "--port", "0", "--tls-cert", certificate_.file(),
                               "--tls-key", certificate_.key(), "--api-keys", keys});
  const uint16_t port = worker.port();
  const auto answer = [&](const char* key) {
    return curl(port, certificate_.file(), "/info", {"-H", cat("Authorization: Bearer ", key)})
        .text;
  };
  EXPECT_THAT(answer("first-key"), Not(HasSubstr("API_KEY")));
  std::ofstream(certificate_.key()) << "nothing";
  std::ofstream(keys) << "ann second-key\n";
  worker.signal(SIGHUP);
  worker.read_until("the certificate stays as it was");
  EXPECT_THAT(answer("first-key"), HasSubstr("INVALID_API_KEY"));
  EXPECT_THAT(answer("second-key"), Not(HasSubstr("API_KEY")));
}

// The certificate expired a minute ago; openssl's command cannot make one like this.
void expire(const Certificate& certificate) {
  FILE* file = std::fopen(certificate.key().c_str(), "r");
  EVP_PKEY* key = PEM_read_PrivateKey(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  file = std::fopen(certificate.file().c_str(), "r+");
  X509* old = PEM_read_X509(file, nullptr, nullptr, nullptr);
  std::rewind(file);
  X509_gmtime_adj(X509_getm_notBefore(old), -120);
  X509_gmtime_adj(X509_getm_notAfter(old), -60);
  EXPECT_GT(X509_sign(old, key, EVP_sha256()), 0);
  EXPECT_EQ(PEM_write_X509(file, old), 1);
  EXPECT_EQ(ftruncate(fileno(file), std::ftell(file)), 0);
  std::fclose(file);
  X509_free(old);
  EVP_PKEY_free(key);
}

TEST_F(Tls, AnExpiredCertificateIsLogged) {
  Process fresh(start());
  fresh.port();
  EXPECT_THAT(fresh.text(), Not(HasSubstr("has expired")));
  expire(certificate_);
  Process worker(start());
  worker.port();
  EXPECT_THAT(worker.text(), HasSubstr("the certificate has expired"));
}

// A worker's heartbeats to an https hive with `certificate_`; the worker trusts the file
// `trusted`.
class TlsHeartbeat : public Tls {
 protected:
  Process start_trusting(Hive& hive, const std::string& trusted) {
    return Process(FAKE_WORKER, {"--model", "m", "--port", "0", "--hive-url", hive.url()},
                   {"SSL_CERT_FILE=" + trusted, "SSL_CERT_DIR=/nowhere"});
  }
  // The worker logs why the heartbeats fail, goes on, and ends as usual.
  void expect_refused(Hive& hive, const std::string& trusted, const char* why) {
    Process worker(start_trusting(hive, trusted));
    const uint16_t port = worker.port();
    worker.read_until("the hive takes no heartbeat");
    EXPECT_THAT(worker.read_until(why), HasSubstr(why));
    EXPECT_EQ(ask(port, request("GET", "/health")).status, 200);
    EXPECT_EQ(ask(port, request("POST", "/v1/infer", R"({"prompt":"Hi"})")).status, 200);
    worker.signal(SIGTERM);
    EXPECT_EQ(worker.wait(), 0) << worker.text();
    EXPECT_TRUE(hive.messages().empty());
  }
  HiveOptions shown() const {
    return {.certificate = certificate_.file(), .key = certificate_.key()};
  }
};

TEST_F(TlsHeartbeat, GoesToAHiveThatAFileVouchesFor) {
  Hive hive(shown());
  Process worker(start_trusting(hive, certificate_.file()));
  worker.port();
  EXPECT_TRUE(hive.wait_messages(2));  // starting, ready
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.text();
  EXPECT_THAT(hive.messages().back(), HasSubstr("stopped"));
  EXPECT_THAT(worker.text(), Not(HasSubstr("the hive takes no heartbeat")));
}

TEST_F(TlsHeartbeat, GoesToNobodyWhomNoFileVouchesFor) {
  Hive hive(shown());
  const Certificate other;
  expect_refused(hive, other.file(), "self-signed certificate");
  expect_refused(hive, "/nowhere/ca.pem", "self-signed certificate");
}

TEST_F(TlsHeartbeat, GoesToNobodyWithACertificateOutOfTimeOrForAnotherName) {
  {
    Hive hive(shown());
    const std::string url = cat("https://127.0.0.1:", hive.port(), "/base");
    Process worker(FAKE_WORKER, {"--model", "m", "--port", "0", "--hive-url", url},
                   {"SSL_CERT_FILE=" + certificate_.file()});
    worker.port();
    EXPECT_THAT(worker.read_until("mismatch"), HasSubstr("IP address mismatch"));
    EXPECT_TRUE(hive.messages().empty());
  }
  expire(certificate_);
  Hive hive(shown());
  expect_refused(hive, certificate_.file(), "certificate has expired");
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
