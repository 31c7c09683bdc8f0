#pragma once
// Compares loaded image models with diffusers' results for the same weights.

#include <filesystem>
#include <string>
#include <vector>

#include "rbee/models/image/image_model.h"

namespace rbee::test {

// The largest f32 difference that another order of rounding can cause.
constexpr float kImageTolerance = 2e-4f;

// The stored inputs and outputs of a case.
class ImageGolden {
 public:
  explicit ImageGolden(const std::string& case_name);

  bool has(const std::string& name) const;
  Tensor tensor(const std::string& name) const;
  std::vector<int32_t> ids(const std::string& name = "ids") const;

 private:
  std::filesystem::path folder_;
};

models::ImageModel load_on_cpu(const std::filesystem::path& path,
                               models::ImageLoadOptions options = {});

void expect_close(const Tensor& found, const Tensor& wanted, float tolerance, const char* what);
// A model's results for a case's inputs.
Tensor text_states(const models::ImageModel& model, size_t encoder, const ImageGolden& golden);
Tensor denoised(const models::ImageModel& model, const ImageGolden& golden);

void expect_text(const models::ImageModel& model, const ImageGolden& golden,
                 float tolerance = kImageTolerance);
void expect_denoiser(const models::ImageModel& model, const ImageGolden& golden,
                     float tolerance = kImageTolerance);
// Both must give the same results for a case's inputs: text, a step, a picture.
void expect_alike(const models::ImageModel& found, const models::ImageModel& wanted,
                  const ImageGolden& golden);
void expect_vae(const models::Vae& vae, const ImageGolden& golden,
                float tolerance = kImageTolerance);

}  // namespace rbee::test
