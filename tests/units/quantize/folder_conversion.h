#pragma once
// Converts Hugging Face folders like `rbee quantize`, for tests.

#include <gmock/gmock.h>

#include "rbee/core/error.h"
#include "rbee/io/checkpoint.h"
#include "rbee/io/gguf_writer.h"
#include "tests/units/quantize/scratch.h"
#include "tools/convert/hf_to_gguf.h"
#include "tools/convert/metadata.h"
#include "tools/convert/type_plan.h"
#include "tools/convert/write_model.h"

namespace rbee::tools {

class FolderConversion : public Scratch {
 protected:
  // Converts a folder and returns the GGUF file. type: as for `rbee quantize`.
  std::filesystem::path convert(const std::filesystem::path& from, const char* type,
                                bool vocabulary) {
    const io::Checkpoint checkpoint = io::Checkpoint::open(from);
    const Recipe& recipe = find_recipe(type);
    io::GgufWriter writer;
    const auto tensors = hf_to_gguf(checkpoint, {.name = "tiny", .vocabulary = vocabulary}, writer);
    set_recipe_keys(recipe, writer);
    const std::filesystem::path to = path(cat("m", count_++, ".gguf"));
    const auto plans = plan_types(tensors, {.recipe = recipe, .gqa = gqa_of(checkpoint)});
    write_model(writer, plans, {.to = to});
    return to;
  }

  // Converting the folder must fail with this code; `part`: of the error's text.
  void expect_refused(const std::filesystem::path& from, Code code, const char* part,
                      bool vocabulary = false) {
    try {
      convert(from, "f32", vocabulary);
      ADD_FAILURE() << "nothing was thrown, wanted " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), testing::HasSubstr(part));
    }
  }

  int count_ = 0;  // folders and files so far, for names
};

}  // namespace rbee::tools
