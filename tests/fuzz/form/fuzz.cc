// multipart/form-data bodies: parts are read whole, or the error says what is wrong.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/core/error.h"
#include "server/apis/openai/image_request.h"
#include "server/http/multipart.h"
#include "server/wire/generate_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rbee;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t split = bytes.find('\n');  // the first line is the Content-Type
  if (split == std::string_view::npos) return 0;
  try {
    std::vector<std::pair<std::string, std::string>> fields, files;
    for (server::FormPart& part :
         server::parse_form(bytes.substr(0, split), bytes.substr(split + 1))) {
      (part.filename.empty() ? fields : files)
          .emplace_back(std::move(part.name), std::move(part.data));
    }
    server::parse_openai_edit(fields, files);
  } catch (const Error&) {
  } catch (const server::InvalidBody&) {
  }
  return 0;
}
