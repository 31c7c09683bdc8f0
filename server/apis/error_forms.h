#pragma once
// The forms of errors of workers that have not loaded their model, and so do not serve their routes
// yet. See Router::error_form(); paths that no route is near get ErrorForm::by_version.

#include <string_view>

#include "server/http/message.h"

namespace rbee::server {

ErrorForm text_error_form(std::string_view path);  // of workers for chats, embeddings or ranking
ErrorForm image_error_form(std::string_view path);

}  // namespace rbee::server
