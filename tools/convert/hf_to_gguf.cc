#include "tools/convert/hf_to_gguf.h"

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/text/tokenizer.h"
#include "tools/convert/gguf_form.h"
#include "tools/convert/gguf_names.h"
#include "tools/convert/vocab_keys.h"

namespace rbee::tools {
namespace {

// Readers know Phi-3's special tokens by the model's name.
std::string name_for(std::string name, bool special_takes_space) {
  if (text::is_named_phi3(name) == special_takes_space) return name;
  if (special_takes_space) return cat("Phi-3 ", name);
  log(LogLevel::warn, "readers will take the white space after special tokens, as in Phi-3",
      {{"name", name}});
  return name;
}

}  // namespace

std::vector<SourceTensor> hf_to_gguf(const io::Checkpoint& checkpoint,
                                     const HfToGgufOptions& options, io::GgufWriter& writer) {
  const GgufForm form = read_gguf_form(checkpoint);
  std::vector<SourceTensor> tensors = gguf_tensors(checkpoint, form);
  const io::TensorEntry& table = tensors.front().stored;
  check(table.shape == Shape{form.config.vocab_size, form.config.dim}, "convert",
        "the token table is (", table.shape, "), config.json wants (", form.config.vocab_size, ", ",
        form.config.dim, ")");
  set_model_keys(form, writer);
  std::ranges::move(set_rope_keys(form, writer), std::back_inserter(tensors));
  std::string name = form.config.name.empty() ? options.name : form.config.name;
  if (options.vocabulary) {
    name = name_for(std::move(name), set_vocab_keys(checkpoint, form.config.vocab_size, writer));
  }
  writer.set_string("general.type", "model");
  writer.set_string("general.name", name);
  return tensors;
}

}  // namespace rbee::tools
