#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <cstdint>

#include "http/body_buffer.h"

// Private to this room: how a parser of Beast fills a body.
namespace tacit::http {

// Lets the parser fill a BodyBuffer with the bytes that come, ignoring the announced length.
struct HeldBody {
  using value_type = BodyBuffer;
  class reader {
   public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>&, BodyBuffer& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>&, boost::system::error_code& error) {
      error = {};
    }
    template <class Buffers>
    size_t put(const Buffers& buffers, boost::system::error_code& error) {
      size_t taken = 0;
      error = {};
      for (const boost::asio::const_buffer piece : boost::beast::buffers_range_ref(buffers)) {
        if (!body_.Append(static_cast<const char*>(piece.data()), piece.size())) {
          error = boost::beast::http::error::buffer_overflow;
          return taken;
        }
        taken += piece.size();
      }
      return taken;
    }
    void finish(boost::system::error_code& error) { error = {}; }

   private:
    BodyBuffer& body_;
  };
};

}  // namespace tacit::http
