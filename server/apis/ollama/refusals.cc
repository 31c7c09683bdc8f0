#include "server/apis/ollama/refusals.h"

#include "rbee/core/cat.h"
#include "server/http/error_form.h"

namespace rbee::server {

Response refuse_ollama(const Request& request) {
  return error_response(request, 501,
                        {"NOT_IMPLEMENTED", cat(request.method, " ", request.path,
                                                " is not supported: this server serves the models "
                                                "that it was started with")});
}

}  // namespace rbee::server
