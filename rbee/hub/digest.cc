#include "rbee/hub/digest.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "rbee/core/cancel.h"
#include "rbee/core/error.h"
#include "rbee/core/hex.h"
#include "rbee/core/input_file.h"

namespace rbee::hub {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

// Of OpenSSL, which fails only where its library does.
class Sum {
 public:
  explicit Sum(const EVP_MD* kind) : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    check(context_ && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1);
  }
  void add(std::string_view bytes) {
    check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }
  std::string end() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
    unsigned size = 0;
    check(EVP_DigestFinal_ex(context_.get(), sum.data(), &size) == 1);
    return hex({sum.data(), size});
  }

 private:
  static void check(bool good) {
    if (!good) fail(Code::io, "digest", "OpenSSL cannot make the sum");
  }

  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

std::string digest(const EVP_MD* kind, std::string_view before, const InputFile& file,
                   const std::filesystem::path& path) {
  Sum sum(kind);
  sum.add(before);
  std::vector<char> part(kReadBytes);
  while (true) {
    check_cancelled("digest");
    const ssize_t count = read(file.descriptor(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(Code::io, path.string(), "it cannot be read: ", std::strerror(errno));
    if (count == 0) return sum.end();
    sum.add({part.data(), static_cast<size_t>(count)});
  }
}

}  // namespace

class Sha256::Context : public Sum {
 public:
  Context() : Sum(EVP_sha256()) {}
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  context_->add(bytes);
}

std::string Sha256::end() {
  return context_->end();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  return digest(EVP_sha256(), {}, InputFile(path), path);
}

std::string git_blob_of_file(const std::filesystem::path& path) {
  const InputFile file(path);
  std::string before = cat("blob ", file.size());
  before += '\0';
  return digest(EVP_sha1(), before, file, path);
}

}  // namespace rbee::hub
