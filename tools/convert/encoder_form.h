#pragma once
// Encoders of the BERT kind in the form of GGUF files: settings, names and order of rows, as
// llama.cpp's converter writes them. Those that rank keep their head.

#include <vector>

#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"
#include "rbee/models/language_model.h"
#include "tools/convert/keys.h"
#include "tools/convert/source_tensor.h"

namespace rbee::tools {

struct ModelTensors {
  models::ModelConfig config;
  std::vector<SourceTensor> tensors;  // the token table first
};

// Sets general.architecture and the keys of the architecture. Logs what of sentence-transformers'
// files a GGUF file cannot hold and only users of single texts need (prompts, the longest text);
// throws unsupported naming what changes every vector (Dense modules, activations and settings that
// readers do not know), not_found for missing tensors.
ModelTensors encoder_to_gguf(const io::Checkpoint& checkpoint, io::GgufWriter& writer);

// Sets pooling_type where sentence-transformers' files say that a decoder is for embeddings. Logs
// and throws as above.
void set_decoder_pooling(const io::Checkpoint& checkpoint, Keys& keys);

}  // namespace rbee::tools
