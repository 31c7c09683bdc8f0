// A tokenizer.json of any bytes, then a text of any bytes encoded and decoded. Input: the file; the
// text follows its first NUL byte.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rbee/core/error.h"
#include "rbee/text/tokenizer.h"
#include "rbee/text/utf8.h"
#include "tests/fuzz/expect_reason.h"

namespace {

using rbee::text::TokenId;

constexpr size_t kMaxText = 4096;  // slow patterns have their own limits; long texts find no more

// A broken promise of the API is a finding.
void require(bool kept) {
  if (!kept) std::abort();
}

void use(const rbee::text::Tokenizer& tokenizer, std::string_view text) {
  const std::vector<TokenId> ids = tokenizer.encode(text);
  for (const TokenId id : ids) require(id >= 0 && id < tokenizer.vocab_size());
  rbee::text::DecodeStream stream(tokenizer);
  std::string joined;
  for (const TokenId id : ids) joined += stream.push(id);
  joined += stream.flush();
  require(rbee::text::utf8_valid(joined));
  require(joined == tokenizer.decode(ids));
  tokenizer.encode(text, {.add_special = false, .parse_special = false});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view file = input.substr(0, input.find('\0'));
  std::string_view text = "Hello  world <s>don't 123 caf\xC3\xA9 \xE4\xB8\xAD\xFF\n\n";
  if (file.size() < input.size()) text = input.substr(file.size() + 1, kMaxText);
  try {
    use(*rbee::text::tokenizer_from_json(file, file), text);
  } catch (const rbee::Error& error) {
    rbee::fuzz::expect_reason(error);
  }
  return 0;
}
