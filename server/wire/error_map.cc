#include "server/wire/error_map.h"

namespace rbee::server {

WireError wire_error(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return {400, "INVALID_REQUEST", false};
    case Code::unsupported:
      return {422, "UNSUPPORTED", false};
    case Code::not_found:
      return {404, "NOT_FOUND", false};
    case Code::out_of_memory:
      return {503, "VRAM_OOM", true};
    case Code::device:
      return {503, "WORKER_UNHEALTHY", true};
    case Code::io:
      return {500, "IO_ERROR", true};
    case Code::cancelled:
      return {499, "CANCELLED", false};
    case Code::internal:
      return {500, "INFERENCE_FAILED", true};
  }
  return {500, "INFERENCE_FAILED", true};
}

WireError stopping_error() {
  return {503, "STOPPING", true};
}

}  // namespace rbee::server
