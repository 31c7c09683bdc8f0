#include "rbee/text/json_components.h"

#include <algorithm>
#include <array>

#include "rbee/core/error.h"
#include "rbee/text/utf8.h"

namespace rbee::text {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581
constexpr int64_t kMaxStrip = 1024;

[[noreturn]] void unknown_type(const JsonField& field, const std::string& type) {
  fail(Code::unsupported, field.path(), "type \"", type, "\" is not known");
}

// {"String": "..."} or {"Regex": "..."}.
struct Pattern {
  bool regex;
  std::string text, path;
};
Pattern pattern_of(const JsonField& field) {
  const JsonField pattern = field.at("pattern");
  if (pattern.is_string()) return {false, pattern.text(), pattern.path()};
  const bool regex = pattern.has("Regex");
  const JsonField value = pattern.at(regex ? "Regex" : "String");
  return {regex, value.text(), value.path()};
}

// Standard base64 (RFC 4648, section 4) with padding.
std::string from_base64(std::string_view text, const std::string& where) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    check(digit >= 0, where, "is not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> count & 0xFF));
  }
  return out;
}

NormalizerPtr bert_normalizer_from(const JsonField& field) {
  BertCleaning options;
  options.clean_text = field.flag_or("clean_text", true);
  options.handle_chinese_chars = field.flag_or("handle_chinese_chars", true);
  options.lowercase = field.flag_or("lowercase", true);
  options.strip_accents = field.flag_or("strip_accents", options.lowercase);
  return bert_normalizer(options);
}

NormalizerPtr replace_from(const JsonField& field) {
  const Pattern pattern = pattern_of(field);
  std::string content = field.text("content");
  if (!pattern.regex) return replace_normalizer(pattern.text, std::move(content));
  return replace_normalizer(Regex(pattern.text, pattern.path), std::move(content));
}

SplitBehavior behavior_of(const JsonField& field) {
  const JsonField behavior = field.at("behavior");
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kNames{{
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous},
  }};
  for (const auto& [name, value] : kNames) {
    if (behavior.text() == name) return value;
  }
  fail(Code::unsupported, behavior.path(), "\"", behavior.text(), "\" is not known");
}

PreTokenizerPtr split_from(const JsonField& field) {
  const Pattern pattern = pattern_of(field);
  const SplitBehavior behavior = behavior_of(field);
  const bool invert = field.flag_or("invert", false);
  if (!pattern.regex) return split_pre_tokenizer(pattern.text, behavior, invert);
  return regex_pre_tokenizer(pattern.text, behavior, invert, pattern.path);
}

// Newer files say prepend_scheme, older ones add_prefix_space.
PrependScheme prepend_scheme_of(const JsonField& field) {
  if (!field.has("prepend_scheme")) {
    return field.flag_or("add_prefix_space", true) ? PrependScheme::always : PrependScheme::never;
  }
  const JsonField scheme = field.at("prepend_scheme");
  if (scheme.text() == "always") return PrependScheme::always;
  if (scheme.text() == "first") return PrependScheme::first;
  if (scheme.text() == "never") return PrependScheme::never;
  fail(Code::unsupported, scheme.path(), "\"", scheme.text(), "\" is not known");
}

std::string mark_of(const JsonField& field) {
  std::string mark = field.text_or("replacement", kMark);
  check(!mark.empty() && utf8_length(mark[0]) == mark.size(), field.path(), "replacement \"", mark,
        "\" is not one character");
  return mark;
}

std::vector<TokenId> ids_of_special(const JsonField& processor, const JsonField& special) {
  const std::string name = special.text("id");
  const auto ids = processor.at("special_tokens").at(name.c_str()).at("ids").items();
  std::vector<TokenId> out;
  out.reserve(ids.size());
  for (const JsonField& id : ids) {
    out.push_back(static_cast<TokenId>(id.integer(0, INT32_MAX)));
  }
  return out;
}

SpecialFrame template_from(const JsonField& field) {
  SpecialFrame frame;
  bool after = false;
  for (const JsonField& item : field.at("single").items()) {
    if (item.has("Sequence")) {
      check(!after, item.path(), "the text comes twice");
      after = true;
      continue;
    }
    std::vector<TokenId>& side = after ? frame.suffix : frame.prefix;
    const std::vector<TokenId> ids = ids_of_special(field, item.at("SpecialToken"));
    side.insert(side.end(), ids.begin(), ids.end());
  }
  check(after, field.path(), "single has no place for the text");
  return frame;
}

// ["[CLS]", 101]
TokenId named_id(const JsonField& field) {
  const auto items = field.items();
  check(items.size() == 2, field.path(), "is not a token and its id");
  return static_cast<TokenId>(items[1].integer(0, INT32_MAX));
}

// What a whole text loses at its start and end comes after "Fuse"; before it, every token does.
void add_strip(const JsonField& field, bool fused, PieceDecoder& decoder) {
  const std::string content = field.text("content");
  const auto start = static_cast<int>(field.integer_or("start", 0, 0, kMaxStrip));
  const auto stop = static_cast<int>(field.integer_or("stop", 0, 0, kMaxStrip));
  if (!fused) return decoder.add(strip_piece(content, start, stop));
  const bool streamable = (content == " " || start == 0) && stop == 0;
  if (!streamable) {
    fail(Code::unsupported, field.path(), "stripping \"", content,
         "\" from a whole text cannot be done while it grows");
  }
  decoder.drop_leading_spaces(start);
}

void add_decoder_step(const JsonField& field, bool& fused, PieceDecoder& decoder) {
  const std::string type = field.type();
  if (type == "Sequence") {
    for (const JsonField& part : field.at("decoders").items()) {
      add_decoder_step(part, fused, decoder);
    }
  } else if (type == "ByteLevel") {
    decoder.add(letters_to_bytes());
  } else if (type == "ByteFallback") {
    decoder.add(byte_fallback());
  } else if (type == "Fuse") {
    fused = true;
  } else if (type == "Strip") {
    add_strip(field, fused, decoder);
  } else if (type == "Metaspace") {
    decoder.add(replace_in_piece(mark_of(field), " "));
    if (prepend_scheme_of(field) != PrependScheme::never) {
      decoder.drop_leading_spaces(PieceDecoder::kAllOfFirstToken);
    }
  } else if (type == "WordPiece") {
    decoder.add(join_word_pieces(field.text_or("prefix", "##"), field.flag_or("cleanup", true)));
    decoder.drop_leading_spaces(1);
  } else if (type == "Replace") {
    const Pattern pattern = pattern_of(field);
    const std::string content = field.text("content");
    decoder.add(pattern.regex ? replace_in_piece(Regex(pattern.text, pattern.path), content)
                              : replace_in_piece(pattern.text, content));
  } else {
    unknown_type(field, type);
  }
}

}  // namespace

std::string charsmap_bytes(const JsonField& field) {
  const JsonField map = field.at("precompiled_charsmap");
  return from_base64(map.text(), map.path());
}

NormalizerPtr normalizer_from(const JsonField& field) {
  const std::string type = field.type();
  if (type == "Sequence") {
    const auto items = field.at("normalizers").items();
    std::vector<NormalizerPtr> parts;
    parts.reserve(items.size());
    for (const JsonField& part : items) parts.push_back(normalizer_from(part));
    return sequence_normalizer(std::move(parts));
  }
  if (type == "NFC") return unicode_normalizer(UnicodeForm::nfc);
  if (type == "NFD") return unicode_normalizer(UnicodeForm::nfd);
  if (type == "NFKC") return unicode_normalizer(UnicodeForm::nfkc);
  if (type == "NFKD") return unicode_normalizer(UnicodeForm::nfkd);
  if (type == "Lowercase") return lowercase_normalizer();
  if (type == "Prepend") return prepend_normalizer(field.text("prepend"));
  if (type == "Replace") return replace_from(field);
  if (type == "StripAccents") return strip_accents_normalizer();
  if (type == "Nmt") return nmt_normalizer();
  if (type == "ByteLevel") return byte_level_normalizer();
  if (type == "BertNormalizer") return bert_normalizer_from(field);
  if (type == "Strip") {
    return strip_normalizer(field.flag_or("strip_left", true), field.flag_or("strip_right", true));
  }
  if (type == "Precompiled") {
    return charsmap_normalizer(
        Charsmap(charsmap_bytes(field), field.at("precompiled_charsmap").path()));
  }
  unknown_type(field, type);
}

PreTokenizerPtr pre_tokenizer_from(const JsonField& field, bool raw_bytes) {
  const std::string type = field.type();
  if (type == "Sequence") {
    const auto items = field.at("pretokenizers").items();
    std::vector<PreTokenizerPtr> parts;
    parts.reserve(items.size());
    for (const JsonField& part : items) {
      const bool last = parts.size() + 1 == items.size();
      parts.push_back(pre_tokenizer_from(part, raw_bytes && last));
    }
    return sequence_pre_tokenizer(std::move(parts));
  }
  if (type == "ByteLevel") {
    return byte_level_pre_tokenizer({.add_prefix_space = field.flag_or("add_prefix_space", true),
                                     .use_regex = field.flag_or("use_regex", true),
                                     .to_letters = !raw_bytes});
  }
  if (type == "Split") return split_from(field);
  if (type == "Digits") return digits_pre_tokenizer(field.flag_or("individual_digits", false));
  if (type == "Punctuation") {
    return punctuation_pre_tokenizer(field.has("behavior") ? behavior_of(field)
                                                           : SplitBehavior::isolated);
  }
  if (type == "Whitespace") return whitespace_pre_tokenizer();
  if (type == "WhitespaceSplit") return whitespace_split_pre_tokenizer();
  if (type == "BertPreTokenizer") return bert_pre_tokenizer();
  if (type == "CharDelimiterSplit") {
    return split_pre_tokenizer(field.text("delimiter"), SplitBehavior::removed, false);
  }
  if (type == "Metaspace") {
    return metaspace_pre_tokenizer(mark_of(field), prepend_scheme_of(field),
                                   field.flag_or("split", true));
  }
  unknown_type(field, type);
}

bool ends_with_byte_level(const JsonField& field) {
  const std::string type = field.type();
  if (type != "Sequence") return type == "ByteLevel";
  const auto parts = field.at("pretokenizers").items();
  return !parts.empty() && ends_with_byte_level(parts.back());
}

void add_decoder(const JsonField& field, PieceDecoder& decoder) {
  bool fused = false;
  add_decoder_step(field, fused, decoder);
}

SpecialFrame post_processor_from(const JsonField& field) {
  const std::string type = field.type();
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return template_from(field);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return {{named_id(field.at("cls"))}, {named_id(field.at("sep"))}};
  }
  if (type != "Sequence") unknown_type(field, type);
  SpecialFrame frame;
  for (const JsonField& part : field.at("processors").items()) {
    const SpecialFrame outer = post_processor_from(part);
    frame.prefix.insert(frame.prefix.begin(), outer.prefix.begin(), outer.prefix.end());
    frame.suffix.insert(frame.suffix.end(), outer.suffix.begin(), outer.suffix.end());
  }
  return frame;
}

}  // namespace rbee::text
