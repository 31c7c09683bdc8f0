#pragma once
// The tiny image models of tests/models/image/data. A part's folder holds tensors.json, {file:
// {name: shape}}, instead of weights. The values depend on name and shape alone;
// tools/goldens/make_image_goldens.py computes the same.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rbee/core/dtype.h"
#include "rbee/core/shape.h"

namespace rbee::test {

// Uniform around 0 (norms: around 1), rounded to f16.
std::vector<float> made_weights(const std::string& name, const Shape& shape);

struct MadeTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

// The tensors of one part, in no particular order.
std::vector<MadeTensor> made_part(const std::filesystem::path& part);

// metadata: keys and texts of the header
void write_safetensors(const std::filesystem::path& file, const std::vector<MadeTensor>& tensors,
                       DType dtype = DType::f16,
                       const std::map<std::string, std::string>& metadata = {});

// tests/models/image/data/<name>
std::filesystem::path image_data(const std::string& name);

// A copy of a case's model with its weights; the destructor removes its folder.
class ImageFolder {
 public:
  explicit ImageFolder(const std::string& case_name);
  ~ImageFolder();
  ImageFolder(const ImageFolder&) = delete;
  ImageFolder& operator=(const ImageFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Replaces the text `from` in a file; the file must contain it.
  void edit(const std::string& file, const std::string& from, const std::string& to) const;

 private:
  std::filesystem::path root_, path_;
};

}  // namespace rbee::test
