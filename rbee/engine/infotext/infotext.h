#pragma once
// How a picture was made, by what its file says: in AUTOMATIC1111's form, whichever program wrote
// it.

#include <optional>
#include <string>
#include <string_view>

namespace rbee::engine {

// For parse_parameters(). AUTOMATIC1111's and stable-diffusion.cpp's text is as it stands. Made
// into it is what other programs write: ComfyUI's graph (PNG text "prompt"), InvokeAI's metadata
// ("invokeai_metadata", "sd-metadata", "Dream"), NovelAI's comment, Fooocus' and SwarmUI's JSON in
// "parameters" or Exif, Easy Diffusion's texts, and Draw Things' XMP in PNG files. Of PNG and WebP
// files without any of these the pixels are decoded, where NovelAI's and A1111's may be hidden.
// Nothing for other files, also damaged ones.
std::optional<std::string> read_infotext(std::string_view file);

}  // namespace rbee::engine
