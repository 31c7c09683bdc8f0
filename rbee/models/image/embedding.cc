#include "rbee/models/image/embedding.h"

#include <algorithm>
#include <array>

#include "rbee/core/error.h"
#include "rbee/io/checkpoint.h"
#include "rbee/io/diffusers_folder.h"

namespace rbee::models {
namespace {

using io::TensorEntry;

constexpr const char* kSingle = "emb_params";
// Of SDXL's two encoders; the refiner has only the second.
constexpr std::array<const char*, 2> kLarge = {"clip_l", "clip_g"};
constexpr int64_t kMostVectors = 75;  // capacity of a chunk of a prompt

class Reader {
 public:
  Reader(const std::string& source, const ImageModel& model) : source_(source), model_(model) {
    out_.vectors.resize(model.text.size());
  }

  void take(const TensorEntry& entry, size_t encoder) {
    const int64_t rank = entry.shape.rank();
    check(rank == 1 || rank == 2, source_, entry.name, " is (", entry.shape,
          "), which is no list of vectors");
    const int64_t count = rank == 1 ? 1 : entry.shape[0];
    const int64_t width = entry.shape[rank - 1];
    const int64_t wanted = model_.text[encoder].encoder->width();
    if (width != wanted) {
      fail(Code::unsupported, source_, entry.name, " has vectors of ", width, " numbers, this ",
           "model's are of ", wanted, ": it was made for another family of models");
    }
    check(count > 0 && count <= kMostVectors, source_, entry.name, " has ", count,
          " vectors, wanted 1 to ", kMostVectors);
    check(out_.count == 0 || out_.count == count, source_, "its tensors have ", out_.count, " and ",
          count, " vectors");
    out_.count = count;
    out_.vectors[encoder] = io::read_floats(entry);
  }

  TextEmbedding finish(std::string word) {
    out_.word = std::move(word);
    return std::move(out_);
  }

 private:
  const std::string& source_;
  const ImageModel& model_;
  TextEmbedding out_;
};

}  // namespace

TextEmbedding read_embedding(const std::filesystem::path& path, const ImageModel& model) {
  io::refuse_pickle(path);
  const io::Checkpoint file = io::Checkpoint::open(path);
  const std::string source = path.string();
  if (model.family == ImageFamily::z_image) {
    fail(Code::unsupported, source, "it is for CLIP, ", name(model.family),
         "'s text encoder is a language model");
  }
  Reader reader(source, model);
  if (file.find(kLarge[0]) != nullptr || file.find(kLarge[1]) != nullptr) {
    const bool both = model.family == ImageFamily::sdxl || model.family == ImageFamily::sd3;
    if (!both && model.family != ImageFamily::sdxl_refiner) {
      fail(Code::unsupported, source, "it is for Stable Diffusion XL, this model is ",
           name(model.family));
    }
    for (size_t i = both ? 0 : 1; i < kLarge.size(); ++i) {
      const TensorEntry* entry = file.find(kLarge[i]);
      if (entry != nullptr) reader.take(*entry, both ? i : 0);
    }
    return reader.finish(path.stem().string());
  }
  const TensorEntry* own = file.find(kSingle);
  if (own == nullptr && file.tensors().size() == 1) own = &file.tensors().front();
  if (own == nullptr) {
    fail(Code::unsupported, source, "it has ", file.tensors().size(), " tensors and none is ",
         kSingle, ", clip_l or clip_g: it is no file of textual inversion");
  }
  if (model.text.size() != 1) {
    fail(Code::unsupported, source, "it is for a model with one text encoder, this one has ",
         model.text.size());
  }
  reader.take(*own, 0);
  // Trainers write "*" for an open word.
  const bool named = own->name != kSingle && own->name.find('*') == std::string::npos;
  return reader.finish(named ? own->name : path.stem().string());
}

}  // namespace rbee::models
