#include "rbee/text/sentencepiece.h"

#include <cstring>

#include "rbee/core/error.h"

namespace rbee::text {
namespace {

constexpr const char* kName = "SentencePiece model";

// Numbers of the fields that are read.
constexpr uint64_t kPieces = 1, kTrainer = 2, kNormalizer = 3;
constexpr uint64_t kPieceText = 1, kPieceScore = 2, kPieceType = 3;
constexpr uint64_t kModelType = 3, kUnk = 40, kBos = 41, kEos = 42, kPad = 43;
constexpr uint64_t kCharsmap = 2, kDummyPrefix = 3, kTrims = 4;
constexpr uint64_t kUnigram = 1, kBpe = 2;

// One field of a message: a number or bytes, by its wire type.
struct Field {
  uint64_t id = 0;
  uint64_t number = 0;
  std::string_view bytes;

  float real() const {
    check(bytes.size() == sizeof(float), kName, "field ", id, " is no 32-bit number");
    float out;
    std::memcpy(&out, bytes.data(), sizeof(out));
    return out;
  }
  // Negative ones are stored with 64 bits.
  int32_t integer() const { return static_cast<int32_t>(static_cast<int64_t>(number)); }
};

// The fields of a message one after another.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field = {.id = tag >> 3, .number = 0, .bytes = {}};
    switch (tag & 7) {
      case 0:
        field.number = varint();
        return true;
      case 1:
        field.bytes = take(8);
        return true;
      case 2:
        field.bytes = take(varint());
        return true;
      case 5:
        field.bytes = take(4);
        return true;
      default:
        fail(Code::invalid_argument, kName, "field ", field.id, " has the wire type ", tag & 7);
    }
  }

 private:
  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1).front());
      out |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return out;
    }
    fail(Code::invalid_argument, kName, "a number has more than 64 bits");
  }

  std::string_view take(uint64_t size) {
    check(size <= rest_.size(), kName, "it ends within a field");
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

  std::string_view rest_;
};

void add_piece(std::string_view bytes, GgufVocab& vocab) {
  constexpr int32_t kNormal = 1;
  Message message(bytes);
  std::string text;
  float score = 0;
  int32_t type = kNormal;
  for (Field field; message.next(field);) {
    if (field.id == kPieceText) text = field.bytes;
    if (field.id == kPieceScore) score = field.real();
    if (field.id == kPieceType) type = field.integer();
  }
  vocab.tokens.push_back(std::move(text));
  vocab.scores.push_back(score);
  vocab.types.push_back(type);
}

// Ids below 0 say that there is no such token.
std::optional<TokenId> id_of(int32_t id) {
  return id < 0 ? std::nullopt : std::optional<TokenId>(id);
}

void read_trainer(std::string_view bytes, GgufVocab& vocab) {
  Message message(bytes);
  uint64_t type = kUnigram;
  for (Field field; message.next(field);) {
    if (field.id == kModelType) type = field.number;
    if (field.id == kUnk) vocab.unk = id_of(field.integer());
    if (field.id == kBos) vocab.bos = id_of(field.integer());
    if (field.id == kEos) vocab.eos = id_of(field.integer());
    if (field.id == kPad) vocab.pad = id_of(field.integer());
  }
  if (type != kUnigram && type != kBpe) {
    fail(Code::unsupported, kName, "its model is of the kind ", type,
         "; known are unigram (1) and BPE (2)");
  }
  vocab.model = type == kUnigram ? "t5" : "llama";
}

void read_normalizer(std::string_view bytes, GgufVocab& vocab) {
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.id == kCharsmap) vocab.precompiled_charsmap = field.bytes;
    if (field.id == kDummyPrefix) vocab.add_space_prefix = field.number != 0;
    if (field.id == kTrims) vocab.remove_extra_whitespaces = field.number != 0;
  }
}

}  // namespace

GgufVocab vocab_from_sentencepiece(std::string_view file) {
  GgufVocab vocab;
  // The meaning of a file that leaves them out.
  vocab.model = "t5";
  vocab.unk = 0;
  vocab.bos = 1;
  vocab.eos = 2;
  vocab.add_space_prefix = true;
  vocab.remove_extra_whitespaces = true;
  Message message(file);
  for (Field field; message.next(field);) {
    if (field.id == kPieces) add_piece(field.bytes, vocab);
    if (field.id == kTrainer) read_trainer(field.bytes, vocab);
    if (field.id == kNormalizer) read_normalizer(field.bytes, vocab);
  }
  check(!vocab.tokens.empty(), kName, "it has no pieces");
  return vocab;
}

}  // namespace rbee::text
