#include "server/apis/error_forms.h"

#include <span>

#include "server/apis/chat_routes.h"
#include "server/apis/embeddings/routes.h"
#include "server/apis/image_routes.h"
#include "server/apis/ollama/embedding.h"
#include "server/http/router.h"

namespace rbee::server {
namespace {

// Rows of tables whose service is not there.
class Forms {
 public:
  Forms() {
    router_.set_fallback({.handler = {}, .judge = {}, .error_form = [](std::string_view) {
                            return ErrorForm::by_version;
                          }});
  }

  template <typename Service>
  Forms& add(std::span<const ServiceRoute<Service>> routes) {
    for (const ServiceRoute<Service>& route : routes) {
      router_.add({.method = std::string(route.method),
                   .pattern = std::string(route.pattern),
                   .handler = {},
                   .errors = route.errors});
    }
    return *this;
  }
  ErrorForm of(std::string_view path) const { return router_.error_form(path); }

 private:
  Router router_;
};

}  // namespace

ErrorForm text_error_form(std::string_view path) {
  static const Forms forms = Forms()
                                 .add(std::span<const ChatRoute>(chat_route_list()))
                                 .add(embedding_route_list())
                                 .add(ranking_route_list())
                                 .add(pooling_route_list())
                                 .add(ollama_embedding_routes());
  return forms.of(path);
}

ErrorForm image_error_form(std::string_view path) {
  static const Forms forms = Forms().add(std::span<const ImageRoute>(image_route_list()));
  return forms.of(path);
}

}  // namespace rbee::server
