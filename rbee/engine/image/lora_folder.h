#pragma once
// The folder of adapters that requests to an image model name, by AUTOMATIC1111's rule
// (extensions-builtin/Lora/networks.py): a file's own name in any sub-folder, or the name that
// kohya's trainer wrote into it (ss_output_name).

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rbee/engine/api/image.h"

namespace rbee::engine {

class LoraFolder {
 public:
  // A missing folder has no adapters.
  explicit LoraFolder(std::filesystem::path folder = {});
  ~LoraFolder();
  LoraFolder(LoraFolder&&) noexcept;
  LoraFolder& operator=(LoraFolder&&) noexcept;

  // Places below the folder, without their ending, in alphabetical order.
  std::vector<std::string> names() const;

  // The same, each with its ss_output_name if find() accepts that for it.
  std::vector<LoraName> list() const;

  // Finds the file for a name, in this order: its place below the folder, with or without
  // ".safetensors"; its name without sub-folders (of several, the last in the order of names());
  // its ss_output_name, which must belong to one file only; its name ignoring case. Thread-safe.
  // Throws invalid_argument for names that leave the folder, for control characters, and for an
  // ss_output_name of several files; not_found.
  std::filesystem::path find(const std::string& name) const;

  // A text for clients: without the folder before its files' names.
  std::string without_folder(std::string text) const;

 private:
  struct Titles;

  std::filesystem::path find_title(const std::string& title) const;  // empty: none has it

  std::filesystem::path folder_;
  std::unique_ptr<Titles> titles_;  // ss_output_name of files that have been read
};

}  // namespace rbee::engine
