#pragma once
// The tokenizer of CLIP's text encoders (Radford et al. 2021, section 2.4): lower-cased, byte-level
// BPE whose last piece of a word ends in "</w>". Read from tokenizer.json, or from the older pair
// vocab.json and merges.txt, with the ids of Hugging Face's CLIPTokenizer.

#include "rbee/text/tokenizer.h"

namespace rbee::text {

// The texts of the files; empty for missing files.
struct ClipTokenizerFiles {
  std::string_view tokenizer_json;
  // Used with merges if there is no tokenizer.json. If this is missing too, it is derived from
  // merges.
  std::string_view vocab_json;
  std::string_view merges;
  std::string_view tokenizer_config_json;
  std::string_view special_tokens_map;
};

struct ClipTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  // Around a prompt and after it. They come from the files, so they may have any value.
  TokenId bos = 0, eos = 0, pad = 0;
  int64_t max_tokens = 77;  // bos and eos included
};

// Throws not_found if neither form is complete, invalid_argument naming file and field, and
// unsupported naming the component.
ClipTokenizer clip_tokenizer(const ClipTokenizerFiles& files);

}  // namespace rbee::text
