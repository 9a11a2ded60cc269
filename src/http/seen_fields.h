#pragma once

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/fields.hpp>
#include <cstdint>
#include <string_view>

#include "http/request_ids.h"

// Private to this room: the fields that the server itself asks for, found in one pass over a
// header. Each search by name costs a tenth of what the server adds to a trivial request.
namespace tacit::http {

struct SeenFields {
  // The value of the first field of a name, and how many fields have that name.
  struct Field {
    std::string_view value = {};
    uint32_t count = 0;

    void See(std::string_view text) {
      if (count++ == 0) value = text;
    }
  };

  Field host, content_length, transfer_encoding, content_encoding, authorization, origin,
      fetch_site, id, trace;
};

// The values are views into `fields`.
inline SeenFields LookAt(const boost::beast::http::fields& fields) {
  namespace http = boost::beast::http;
  SeenFields seen;
  for (const auto& field : fields) {
    const std::string_view value(field.value().data(), field.value().size());
    const auto is = [&](std::string_view name) {
      return boost::beast::iequals(field.name_string(), {name.data(), name.size()});
    };
    switch (field.name()) {
      case http::field::host:
        seen.host.See(value);
        break;
      case http::field::content_length:
        seen.content_length.See(value);
        break;
      case http::field::transfer_encoding:
        seen.transfer_encoding.See(value);
        break;
      case http::field::content_encoding:
        seen.content_encoding.See(value);
        break;
      case http::field::authorization:
        seen.authorization.See(value);
        break;
      case http::field::origin:
        seen.origin.See(value);
        break;
      case http::field::sec_fetch_site:
        seen.fetch_site.See(value);
        break;
      case http::field::unknown:
        if (is(kIdField)) seen.id.See(value);
        if (is(kTraceField)) seen.trace.See(value);
        break;
      default:
        break;
    }
  }
  return seen;
}

}  // namespace tacit::http
