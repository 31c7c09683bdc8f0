#include "rbee/engine/image/tokenizers.h"

#include "rbee/core/error.h"
#include "rbee/engine/common/gguf_vocab.h"
#include "rbee/io/checkpoint.h"
#include "rbee/models/image/model_files.h"
#include "rbee/text/clip_tokenizer.h"
#include "rbee/text/sentencepiece.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;
using models::TokenizerFiles;

bool is_empty(const TokenizerFiles& files) {
  return files.tokenizer_json.empty() && files.merges.empty() && files.spiece_model.empty() &&
         files.gguf.empty();
}

// A single file has none but its settings: those of a folder beside it.
TokenizerFiles files_of(const TokenizerFiles& own, const fs::path& folder) {
  if (!is_empty(own)) return own;
  TokenizerFiles found = models::read_tokenizer_folder(folder);
  found.kind = own.kind;
  if (found.tokenizer_config_json.empty()) found.tokenizer_config_json = own.tokenizer_config_json;
  return found;
}

PromptTokenizer clip_tokenizer(const TokenizerFiles& files) {
  text::ClipTokenizer clip =
      text::clip_tokenizer({.tokenizer_json = files.tokenizer_json,
                            .vocab_json = files.vocab_json,
                            .merges = files.merges,
                            .tokenizer_config_json = files.tokenizer_config_json,
                            .special_tokens_map = files.special_tokens_map});
  return {std::move(clip.tokenizer), clip.bos, clip.eos, clip.pad};
}

std::unique_ptr<text::Tokenizer> t5_reader(const TokenizerFiles& files, const fs::path& folder) {
  if (!files.tokenizer_json.empty()) {
    return text::tokenizer_from_json(files.tokenizer_json, files.tokenizer_config_json,
                                     files.special_tokens_map);
  }
  if (!files.spiece_model.empty()) {
    return text::tokenizer_from_gguf(text::vocab_from_sentencepiece(files.spiece_model));
  }
  if (!files.gguf.empty()) {
    return text::tokenizer_from_gguf(gguf_vocab(io::Checkpoint::open(files.gguf).metadata()));
  }
  fail(Code::not_found, folder.string(),
       "T5 has no tokenizer: put tokenizer.json or spiece.model of the model's folder there; "
       "tools/get_t5_vocabulary.sh puts the published one beside a model's file");
}

PromptTokenizer t5_tokenizer(const TokenizerFiles& files, const fs::path& folder) {
  PromptTokenizer out;
  out.tokenizer = t5_reader(files, folder);
  const auto end = out.tokenizer->eos() ? out.tokenizer->eos() : out.tokenizer->find("</s>");
  check(end.has_value(), "T5's tokenizer", "it has no </s> to end a prompt with");
  out.end = *end;
  out.pad = out.tokenizer->find("<pad>").value_or(0);
  out.single = true;
  return out;
}

// Qwen3's: a prompt is a user's turn, and the answer begins after it.
PromptTokenizer language_tokenizer(const TokenizerFiles& files, const fs::path& folder) {
  PromptTokenizer out;
  if (!files.tokenizer_json.empty()) {
    out.tokenizer = text::tokenizer_from_json(files.tokenizer_json, files.tokenizer_config_json,
                                              files.special_tokens_map);
  } else if (!files.gguf.empty()) {
    out.tokenizer =
        text::tokenizer_from_gguf(gguf_vocab(io::Checkpoint::open(files.gguf).metadata()));
  } else {
    fail(Code::not_found, folder.string(),
         "the language model has no tokenizer: put tokenizer.json of its folder there, or give it "
         "as a GGUF file, which has one");
  }
  const auto start = out.tokenizer->find("<|im_start|>"), end = out.tokenizer->find("<|im_end|>");
  if (!start || !end) {
    fail(Code::unsupported, folder.string(),
         "the language model's tokenizer has no <|im_start|> and <|im_end|>: it is not Qwen's");
  }
  out.start = start;
  out.end = out.pad = *end;
  out.single = true;
  out.opens = "user\n";
  out.closes = out.tokenizer->encode("<|im_end|>\n<|im_start|>assistant\n",
                                     {.add_special = false, .parse_special = true});
  return out;
}

}  // namespace

PromptTokenizer load_tokenizer(const TokenizerFiles& own, const fs::path& beside) {
  if (own.kind == TokenizerFiles::Kind::clip) return clip_tokenizer(files_of(own, beside));
  if (own.kind == TokenizerFiles::Kind::language) {
    return language_tokenizer(files_of(own, beside), beside);
  }
  const fs::path folder = beside.parent_path() / (beside.filename().string() + "_t5");
  return t5_tokenizer(files_of(own, folder), folder);
}

}  // namespace rbee::engine
