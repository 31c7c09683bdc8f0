#include "rbee/text/normalizer.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/text/byte_alphabet.h"
#include "rbee/text/char_class.h"
#include "rbee/text/growth.h"
#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

// A normalizer made from `void operator()(std::string&) const`.
template <typename Function>
class Made final : public Normalizer {
 public:
  explicit Made(Function function) : function_(std::move(function)) {}
  void apply(std::string& text) const override { function_(text); }

 private:
  Function function_;
};
template <typename Function>
NormalizerPtr make(Function function) {
  return std::make_unique<Made<Function>>(std::move(function));
}

// Rewrites each character through edit(code, out).
template <typename Edit>
void edit_characters(std::string& text, const Edit& edit) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); at += utf8_length(text[at])) edit(utf8_at(text, at), out);
  text = std::move(out);
}

void to_lower(std::string& text) {
  edit_characters(text, [](char32_t code, std::string& out) {
    append_utf8(out, static_cast<char32_t>(u_tolower(static_cast<UChar32>(code))));
    // The only character whose lower case is two: i and a dot above.
    if (code == 0x130) append_utf8(out, 0x307);
  });
}

void drop(std::string& text, CategoryMask mask) {
  const CharClasses& classes = CharClasses::get();
  edit_characters(text, [&](char32_t code, std::string& out) {
    if ((classes[code] & mask) == 0) append_utf8(out, code);
  });
}

const icu::Normalizer2& normalizer2(UnicodeForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found =
      form == UnicodeForm::nfc    ? icu::Normalizer2::getNFCInstance(status)
      : form == UnicodeForm::nfd  ? icu::Normalizer2::getNFDInstance(status)
      : form == UnicodeForm::nfkc ? icu::Normalizer2::getNFKCInstance(status)
                                  : icu::Normalizer2::getNFKDInstance(status);
  if (U_FAILURE(status)) fail(Code::internal, "normalizer", u_errorName(status));
  return *found;
}

void to_form(const icu::Normalizer2& normalizer, std::string& text) {
  if (is_ascii(text)) return;
  std::string out;
  icu::StringByteSink<std::string> sink(&out, static_cast<int32_t>(text.size()));
  UErrorCode status = U_ZERO_ERROR;
  normalizer.normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())),
                           sink, nullptr, status);
  if (U_FAILURE(status)) fail(Code::internal, "normalizer", u_errorName(status));
  text = std::move(out);
}

void replace_all(std::string& text, std::string_view pattern, std::string_view content) {
  if (pattern.empty() || text.find(pattern) == text.npos) return;
  std::string out;
  size_t from = 0;
  for (size_t at = text.find(pattern); at != text.npos; at = text.find(pattern, from)) {
    out.append(text, from, at - from).append(content);
    from = at + pattern.size();
    check_growth(text.size(), out.size());
  }
  text = out.append(text, from);
}

void strip(std::string& text, bool left, bool right) {
  const CharClasses& classes = CharClasses::get();
  size_t begin = 0, end = text.size();
  while (left && begin < end && (classes[utf8_at(text, begin)] & kSpaceBit)) {
    begin += utf8_length(text[begin]);
  }
  while (right && end > begin) {
    const size_t last = utf8_previous(text, end);
    if ((classes[utf8_at(text, last)] & kSpaceBit) == 0) break;
    end = last;
  }
  text = text.substr(begin, end - begin);
}

// Rules of Google's NMT, as SentencePiece's "nmt" normalizers have them.
bool nmt_drops(char32_t c) {
  return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
         c == 0x9F;
}
bool nmt_spaces(char32_t c) {
  return c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

// The blocks that BERT calls Chinese; the gap below U+2B920 is Hugging Face's.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void bert_clean(std::string& text) {
  const CharClasses& classes = CharClasses::get();
  edit_characters(text, [&](char32_t code, std::string& out) {
    const bool line = code == '\t' || code == '\n' || code == '\r';
    const bool control = code == 0 || code == kReplacement || (classes[code] & kControl) != 0;
    if (control && !line) return;
    if (line || (classes[code] & kSpaceBit)) {
      out.push_back(' ');
    } else {
      append_utf8(out, code);
    }
  });
}

}  // namespace

NormalizerPtr unicode_normalizer(UnicodeForm form) {
  return make([&normalizer = normalizer2(form)](std::string& text) { to_form(normalizer, text); });
}

NormalizerPtr lowercase_normalizer() {
  return make(to_lower);
}

NormalizerPtr replace_normalizer(std::string pattern, std::string content) {
  return make([pattern = std::move(pattern), content = std::move(content)](std::string& text) {
    replace_all(text, pattern, content);
  });
}

NormalizerPtr replace_normalizer(Regex pattern, std::string content) {
  return make([pattern = std::move(pattern), content = std::move(content)](std::string& text) {
    std::string out;
    size_t from = 0;
    pattern.each_match(text, [&](size_t begin, size_t end) {
      out.append(text, from, begin - from).append(content);
      from = end;
      check_growth(text.size(), out.size());
    });
    if (from > 0) text = out.append(text, from);
  });
}

NormalizerPtr prepend_normalizer(std::string prefix) {
  return make([prefix = std::move(prefix)](std::string& text) {
    if (text.empty()) return;
    check_growth(text.size(), text.size() + prefix.size());
    text.insert(0, prefix);
  });
}

NormalizerPtr strip_normalizer(bool left, bool right) {
  return make([left, right](std::string& text) { strip(text, left, right); });
}

NormalizerPtr strip_accents_normalizer() {
  return make([](std::string& text) { drop(text, kMark); });
}

NormalizerPtr nmt_normalizer() {
  return make([](std::string& text) {
    edit_characters(text, [](char32_t code, std::string& out) {
      if (!nmt_drops(code)) append_utf8(out, nmt_spaces(code) ? ' ' : code);
    });
  });
}

NormalizerPtr charsmap_normalizer(Charsmap map) {
  return make([map = std::move(map)](std::string& text) { text = map.apply(text); });
}

NormalizerPtr byte_level_normalizer() {
  return make([](std::string& text) { text = to_alphabet(text); });
}

NormalizerPtr sequence_normalizer(std::vector<NormalizerPtr> parts) {
  return make([parts = std::move(parts)](std::string& text) {
    const size_t before = text.size();
    for (const NormalizerPtr& part : parts) {
      part->apply(text);
      check_growth(before, text.size());
    }
  });
}

NormalizerPtr bert_normalizer(BertCleaning options) {
  return make([options, &nfd = normalizer2(UnicodeForm::nfd)](std::string& text) {
    if (options.clean_text) bert_clean(text);
    if (options.handle_chinese_chars) {
      edit_characters(text, [](char32_t code, std::string& out) {
        const bool chinese = is_chinese(code);
        if (chinese) out.push_back(' ');
        append_utf8(out, code);
        if (chinese) out.push_back(' ');
      });
    }
    if (options.strip_accents) {
      to_form(nfd, text);
      drop(text, U_GC_MN_MASK);
    }
    if (options.lowercase) to_lower(text);
  });
}

}  // namespace rbee::text
