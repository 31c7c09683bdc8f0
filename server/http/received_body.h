#pragma once
// A request's body as Beast's parser hands it over: whole, or in pieces that are taken as they
// come. Internal to server/http. Form: Beast's BodyReader.

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional.hpp>
#include <cstdint>
#include <string>

namespace rbee::server {

struct ReceivedBody {
  struct value_type {
    std::string bytes;       // not taken yet
    bool in_pieces = false;  // set it before the body: no memory is taken for the whole of it
  };

  class reader {
   public:
    template <bool isRequest, typename Fields>
    reader(boost::beast::http::header<isRequest, Fields>&, value_type& body) : body_(body) {}

    // length: at most the parser's limit.
    void init(const boost::optional<uint64_t>& length, boost::beast::error_code& error) {
      error = {};
      if (length && !body_.in_pieces) body_.bytes.reserve(static_cast<size_t>(*length));
    }

    template <typename Buffers>
    size_t put(const Buffers& buffers, boost::beast::error_code& error) {
      error = {};
      size_t count = 0;
      for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
        body_.bytes.append(static_cast<const char*>(buffer.data()), buffer.size());
        count += buffer.size();
      }
      return count;
    }

    void finish(boost::beast::error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

}  // namespace rbee::server
