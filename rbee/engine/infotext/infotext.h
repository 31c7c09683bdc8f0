#pragma once
// Reads from a picture's file how it was made, in AUTOMATIC1111's form, for files of any program.

#include <optional>
#include <string>
#include <string_view>

namespace rbee::engine {

// For parse_parameters(). Returns AUTOMATIC1111's and stable-diffusion.cpp's text as it is.
// Converts other programs' data: ComfyUI's graph (PNG text "prompt"), InvokeAI's metadata
// ("invokeai_metadata", "sd-metadata", "Dream"), NovelAI's comment, Fooocus' and SwarmUI's JSON in
// "parameters" or Exif, Easy Diffusion's texts, and Draw Things' XMP in PNG files. If a PNG or WebP
// file has none of these, it decodes the pixels, in which NovelAI and A1111 may hide the data.
// Nothing for other and damaged files.
std::optional<std::string> read_infotext(std::string_view file);

}  // namespace rbee::engine
