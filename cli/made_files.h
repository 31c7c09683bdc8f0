#pragma once
// The files of models that clients made, as workers open them: folders of links to blobs.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/blob_store.h"
#include "server/apis/ollama/record.h"

namespace rbee::tools {

// A folder with a link to a blob for each of these names. Throws invalid_argument naming `field` if
// a blob is not there, and io.
void link_files(const BlobStore& blobs, const server::OllamaRecord::Files& files,
                const std::string& field, const std::filesystem::path& folder);
// The name of such a folder, the same for the same files.
std::string folder_name(const server::OllamaRecord::Files& files);

// Workers know GGUF files by their names' endings: adds ".gguf" to names of such files that lack
// it. Files that are not here stay as they are.
server::OllamaRecord::Files with_endings(const BlobStore& blobs,
                                         const server::OllamaRecord::Files& files);

// What a folder of `files` holds. Paths are below it.
struct MadeModelFiles {
  std::filesystem::path model;   // a GGUF file, or the folder
  std::filesystem::path mmproj;  // empty: none
};
// Throws invalid_argument if that is no one model.
MadeModelFiles model_in(const std::filesystem::path& folder,
                        const server::OllamaRecord::Files& files);
// The adapters in a folder of `adapters`: each GGUF file, or the folder. Throws invalid_argument.
std::vector<std::filesystem::path> adapters_in(const std::filesystem::path& folder,
                                               const server::OllamaRecord::Files& adapters);

}  // namespace rbee::tools
