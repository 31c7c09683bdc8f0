#include "rbee/hub/digest.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "rbee/core/error.h"
#include "rbee/core/hex.h"
#include "rbee/core/input_file.h"

namespace rbee::hub {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

std::string digest(const EVP_MD* kind, std::string_view before, const InputFile& file,
                   const std::filesystem::path& path) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  bool good = context && EVP_DigestInit_ex(context.get(), kind, nullptr) == 1 &&
              EVP_DigestUpdate(context.get(), before.data(), before.size()) == 1;
  std::vector<char> part(kReadBytes);
  while (good) {
    const ssize_t count = read(file.descriptor(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(Code::io, path.string(), "it cannot be read: ", std::strerror(errno));
    if (count == 0) break;
    good = EVP_DigestUpdate(context.get(), part.data(), static_cast<size_t>(count)) == 1;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned size = 0;
  good = good && EVP_DigestFinal_ex(context.get(), sum.data(), &size) == 1;
  if (!good) fail(Code::io, path.string(), "OpenSSL cannot make its sum");
  return hex({sum.data(), size});
}

}  // namespace

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
