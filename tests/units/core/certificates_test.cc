#include "rbee/core/certificates.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rbee {
namespace {

namespace fs = std::filesystem;

class CertificateFile : public testing::Test {
 protected:
  CertificateFile() {
    std::string name = (fs::temp_directory_path() / "rbee-certificates-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    ::unsetenv("SSL_CERT_FILE");
  }
  ~CertificateFile() override {
    ::unsetenv("SSL_CERT_FILE");
    fs::remove_all(root_);
  }

  void write(const std::string& path) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << "certificates";
  }

  std::string root_;
};

TEST_F(CertificateFile, IsTheOneThatTheSystemHas) {
  EXPECT_EQ(certificate_file(root_), "");
  // A folder is none.
  fs::create_directories(root_ + "/etc/ssl/certs/ca-certificates.crt");
  EXPECT_EQ(certificate_file(root_), "");
  const std::string red_hat = "/etc/pki/tls/certs/ca-bundle.crt";
  write(red_hat);
  EXPECT_EQ(certificate_file(root_), root_ + red_hat);
  fs::remove(root_ + "/etc/ssl/certs/ca-certificates.crt");
  const std::string debian = "/etc/ssl/certs/ca-certificates.crt";
  write(debian);
  EXPECT_EQ(certificate_file(root_), root_ + debian);
}

TEST_F(CertificateFile, IsTheOneThatTheEnvironmentNames) {
  write("/etc/ssl/certs/ca-certificates.crt");
  ::setenv("SSL_CERT_FILE", "/own/authorities.pem", 1);
  EXPECT_EQ(certificate_file(root_), "/own/authorities.pem");
  ::setenv("SSL_CERT_FILE", "", 1);
  EXPECT_EQ(certificate_file(root_), root_ + "/etc/ssl/certs/ca-certificates.crt");
}

}  // namespace
}  // namespace rbee
