#pragma once
// The folder of adapters that requests to an image model name, by AUTOMATIC1111's rule
// (extensions-builtin/Lora/networks.py): a file's own name, whatever sub-folder it is in, or the
// name that kohya's trainer wrote into it (ss_output_name).

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rbee/engine/api/image.h"

namespace rbee::engine {

class LoraFolder {
 public:
  // A folder that is not there has no adapters.
  explicit LoraFolder(std::filesystem::path folder = {});
  ~LoraFolder();
  LoraFolder(LoraFolder&&) noexcept;
  LoraFolder& operator=(LoraFolder&&) noexcept;

  // Places below the folder, without their ending; in the order of the alphabet.
  std::vector<std::string> names() const;

  // The same, each with its ss_output_name where find() takes that for it.
  std::vector<LoraName> list() const;

  // The file that a request names. In this order: its place below the folder, with or without
  // ".safetensors"; its name without the sub-folders, of several files the last in the order of
  // names(); its ss_output_name, which has to be one file's alone; its name in another case of
  // letters. May be called from any thread.
  // Throws invalid_argument for names that leave the folder, for control characters and for a
  // name that several files have inside; not_found.
  std::filesystem::path find(const std::string& name) const;

  // A text without the folder in front of its files: what clients may read.
  std::string without_folder(std::string text) const;

 private:
  struct Titles;

  std::filesystem::path find_title(const std::string& title) const;  // empty: none has it

  std::filesystem::path folder_;
  std::unique_ptr<Titles> titles_;  // ss_output_name of files that have been read
};

}  // namespace rbee::engine
