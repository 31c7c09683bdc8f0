#include "rbee/text/gguf_pre.h"

#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::text {
namespace {

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBloom = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4})"
                                    R"(\x{60c})]+)";
// Code points are spelt as numbers to keep this file ASCII: the CJK block, and hiragana with
// katakana.
constexpr std::string_view kHanKana = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr std::string_view kHanHangul = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";

// Letters with case, as the family lists them.
constexpr std::string_view kDeepseekWord =
    R"(\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf})"
    R"(\x{1c4}-\x{293}\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d})"
    R"(\x{37f}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5})"
    R"(\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5})"
    R"(\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b})"
    R"(\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d})"
    R"(\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d})"
    R"(\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4})"
    R"(\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec})"
    R"(\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115})"
    R"(\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134})"
    R"(\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184})"
    R"(\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3})"
    R"(\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787})"
    R"(\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17})"
    R"(\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3})"
    R"(\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df})"
    R"(\x{1e900}-\x{1e943}]+)";
constexpr std::string_view kDeepseekSymbols =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";

constexpr std::string_view kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kUfakzeka =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kMinicpm5 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kJais2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S))"
    R"(|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr std::string_view kExaoneMoe =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kYoutu =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kYoutuScripts =
    R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+|[\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019})"
    R"(\x{2014}\x{ff1a}\x{ff1b}\x{ff0c}\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|[\x{3105}-\x{312f}]+)"
    R"(|[\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr std::string_view kSpark =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kAfmoeScripts =
    R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{8c48}-\x{d7ff}\x{e000}-\x{faff}\x{3040}-\x{309f})"
    R"(\x{30a0}-\x{30ff}\x{ff65}-\x{ff9f}\x{2f00}-\x{2fdf}\x{e40}-\x{e7f}\x{e80}-\x{eff})"
    R"(\x{1780}-\x{17ff}\x{1000}-\x{109f}\x{1100}-\x{11ff}]+)";
// Han by itself, then words as GPT-4o's without Han.
constexpr std::string_view kKimiK2 =
    R"(\p{Han}+|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*)"
    R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+)"
    R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Digits by threes from the end of a number.
constexpr std::string_view kThousands = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr std::string_view kThousandsOfAny = R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))";
constexpr std::string_view kThousandsInRun = R"(\d{1,3}(?=(?:\d{3})*(?!\d)))";
constexpr std::string_view kLines = R"([^\n]+|[\n]+)";

struct Family {
  std::vector<std::string_view> names;
  GgufPre pre;
};

const std::vector<Family>& families() {
  static const std::vector<Family> list{
      {{"default"},
       {.patterns = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Pattern, R"(\p{N}+)", "[0-9][0-9][0-9]"}}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano"},
       {.patterns = {kLlama3}, .ignore_merges = true, .add_bos = true}},
      {{"dbrx", "smaug-bpe", "chatglm-bpe"}, {.patterns = {kLlama3}}},
      {{"glm4", "glm5"}, {.patterns = {kLlama3}, .ignore_merges = true}},
      {{"gpt-2", "phi-2", "jais", "trillion", "granite-docling", "gigachat", "roberta-bpe",
        "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code", "a.x-4.0",
        "mellum", "exaone4"},
       {.patterns = {kGpt2Pattern}}},
      {{"mpt", "olmo", "modern-bert"}, {.patterns = {kGpt2Pattern}, .nfc = true}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
        "mellum2"},
       {.patterns = {R"(\p{N})", kGpt2Pattern}}},
      {{"qwen2", "deepseek-r1-qwen", "megrez", "f2llmv2"}, {.patterns = {kQwen2}, .nfc = true}},
      // Qwen's own tokenizer puts letters and marks together first (Qwen3_5Tokenizer in
      // transformers); llama.cpp does not.
      {{"qwen35"}, {.patterns = {kQwen35}, .nfc = true}},
      {{"stablelm2", "hunyuan", "solar-open", "grok-2", "kormo"}, {.patterns = {kQwen2}}},
      {{"gpt-4o", "llama4", "minimax-m2", "kanana2", "talkie"}, {.patterns = {kGpt4o}}},
      {{"granite-embed-multi-97m"}, {.patterns = {kGpt4o}, .ignore_merges = true}},
      {{"tekken"}, {.patterns = {kTekken}, .ignore_merges = true, .add_bos = true}},
      {{"falcon"}, {.patterns = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Pattern, "[0-9][0-9][0-9]"}}},
      {{"deepseek-llm"},
       {.patterns = {"[\r\n]", kDeepseekWord, kDeepseekSymbols, R"(\s+$)", kHanHangul,
                     R"(\p{N}+)"}}},
      {{"deepseek-coder"},
       {.patterns = {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kHanHangul, R"(\p{N})"}}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       {.patterns = {R"(\p{N}{1,3})", kHanKana, kDeepseek3}}},
      {{"poro-chat", "bloom", "gpt3-finnish"}, {.patterns = {kBloom}}},
      {{"viking"}, {.patterns = {kBloom, R"(\p{N})"}}},
      {{"bailingmoe", "bailingmoe2", "llada-moe"}, {.patterns = {kBailing}}},
      {{"seed-coder"}, {.patterns = {kSeedCoder}}},
      {{"ufakzeka"}, {.patterns = {kUfakzeka}}},
      {{"minicpm5"}, {.patterns = {R"(\p{N}{1,3})", kMinicpm5}, .ignore_merges = true}},
      {{"jais-2"}, {.patterns = {kJais2}}},
      {{"exaone-moe"}, {.patterns = {kExaoneMoe}}},
      {{"youtu"}, {.patterns = {kYoutuScripts, kYoutu}, .ignore_merges = true}},
      {{"spark2_5"}, {.patterns = {R"(\p{N}{1,3})", kHanKana, kSpark, R"(\p{N})"}}},
      {{"tiny_aya", "cohere2moe"}, {.patterns = {kThousands, kGpt4o}}},
      {{"superbpe"}, {.patterns = {R"(\p{N}+)", kThousandsInRun}}},
      {{"afmoe"}, {.patterns = {kThousandsOfAny, kAfmoeScripts, kDeepseek3}}},
      {{"laguna"}, {.patterns = {kLines, kQwen2}}},
      {{"kimi-k2"}, {.patterns = {kKimiK2}}},
      {{"chameleon"},
       {.patterns = {"<sentinel:[0-9]+>", "(?:IMGIMG)[A-I]{1,4}Z", R"([\t\n]|    |  )", R"(\p{N})",
                     R"([\p{P}!-/:-@\[-`{-~])", kGpt2Pattern},
        .add_bos = true}},
      {{"gemma4"}, {.patterns = {kLines}, .add_bos = true, .plain_text = true}},
      {{"granite-embed-multi-311m", "sarvam-moe"}, {.patterns = {kLines}, .plain_text = true}},
  };
  return list;
}

}  // namespace

const GgufPre& gguf_pre(std::string_view name) {
  if (name.empty()) {
    log(LogLevel::warn, "the file does not say how it cuts text; \"default\" stands in",
        {{"key", "tokenizer.ggml.pre"}});
    return families().front().pre;
  }
  for (const Family& family : families()) {
    for (const std::string_view known : family.names) {
      if (known == name) return family.pre;
    }
  }
  fail(Code::unsupported, "tokenizer.ggml.pre", "\"", name, "\" is not known");
}

std::optional<std::string_view> gguf_pre_name(const GgufPre& pre) {
  for (const Family& family : families()) {
    const GgufPre& known = family.pre;
    if (known.patterns == pre.patterns && known.nfc == pre.nfc &&
        known.ignore_merges == pre.ignore_merges && known.plain_text == pre.plain_text) {
      return family.names.front();
    }
  }
  return std::nullopt;
}

}  // namespace rbee::text
