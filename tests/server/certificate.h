#pragma once
// A self-signed certificate for localhost and its key, in a folder that the destructor removes.

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/server/process.h"

namespace rbee::testing {

class Certificate {
 public:
  Certificate() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rbee-tls-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    renew();
  }
  ~Certificate() { std::filesystem::remove_all(folder_); }
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;

  // Writes another certificate and key to the same files.
  void renew() const {
    Process openssl("/usr/bin/openssl",
                    {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                     "-nodes", "-keyout", key(), "-out", file(), "-days", "2", "-subj",
                     "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"});
    if (openssl.wait() != 0) throw std::runtime_error(openssl.text());
  }
  std::filesystem::path folder() const { return folder_; }
  std::string file() const { return (folder_ / "cert.pem").string(); }
  std::string key() const { return (folder_ / "key.pem").string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace rbee::testing
