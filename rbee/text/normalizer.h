#pragma once
// Normalizers rewrite a text before it is split into words (the "normalizer" of tokenizer.json).

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/charsmap.h"
#include "rbee/text/regex.h"

namespace rbee::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(std::string& text) const = 0;  // valid UTF-8 in and out
};

using NormalizerPtr = std::unique_ptr<Normalizer>;

enum class UnicodeForm : uint8_t { nfc, nfd, nfkc, nfkd };
NormalizerPtr unicode_normalizer(UnicodeForm form);
NormalizerPtr lowercase_normalizer();
NormalizerPtr replace_normalizer(std::string pattern, std::string content);
NormalizerPtr replace_normalizer(Regex pattern, std::string content);
NormalizerPtr prepend_normalizer(std::string prefix);   // unless the text is empty
NormalizerPtr strip_normalizer(bool left, bool right);  // white space
NormalizerPtr strip_accents_normalizer();               // every mark
NormalizerPtr nmt_normalizer();
NormalizerPtr charsmap_normalizer(Charsmap map);
NormalizerPtr byte_level_normalizer();  // bytes to GPT-2's alphabet
NormalizerPtr sequence_normalizer(std::vector<NormalizerPtr> parts);

struct BertCleaning {
  bool clean_text = true;            // no control characters, plain spaces
  bool handle_chinese_chars = true;  // spaces around ideographs
  bool strip_accents = true;
  bool lowercase = true;
};
NormalizerPtr bert_normalizer(BertCleaning options);

}  // namespace rbee::text
