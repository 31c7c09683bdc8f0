#pragma once
// What the weights of a language model cost a token: bytes to read and operations, by device.

#include <string>

#include "rbee/models/language_model.h"

namespace rbee::tools {

class TokenWork {
 public:
  // Of a model with layers or experts on the host, what each device has to do.
  struct Parts {
    double device = 0, host = 0;
    double all() const { return device + host; }
  };

  // Reads the headers of the model's files. Throws as io::Checkpoint::open() does.
  TokenWork(const std::string& path, const models::LanguageModel& model);

  // Bytes that a step with one token of each sequence reads: all weights except the unused rows of
  // the token table, and those of the experts that are likely to be taken by at least one token.
  Parts bytes(int sequences) const;
  // Operations of one token, two for each weight that it is multiplied by, without the logits,
  // which a prompt computes only for its last token.
  Parts operations() const;

 private:
  struct Load {
    Parts all_take, experts;  // experts: of all of them
  };
  static Parts with_experts(const Load& load, double share);

  Load bytes_, operations_;
  double share_ = 1;  // of the experts that a token takes
};

}  // namespace rbee::tools
