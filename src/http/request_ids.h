#pragma once

#include <chrono>
#include <string_view>

#include "http/http.h"

// Private to this room: the fields of a request that its answer and its line of the access log
// repeat, so that callers find the two together.
namespace tacit::http {

inline constexpr std::string_view kIdField = "X-Request-Id", kTraceField = "traceparent";

// An id, and the place in a W3C trace. Empty if none came, or one that header and line of the log
// may not hold as it is. Views into the request.
struct RequestIds {
  std::string_view id, trace;

  void AddTo(Reply* reply) const;
};

// The ids are in these two fields, as they came.
RequestIds IdsOf(std::string_view id, std::string_view trace);

// Finds the ids in lines of a header that no parser has read: a refused request has them too. A
// last line without an end may be cut off and is passed over.
RequestIds IdsInLines(std::string_view header);

// Logs an answer. A path may name a user, so the route stands for it.
void LogAccess(const Request& request, const Reply& reply, const RequestIds& ids,
               std::chrono::duration<double, std::milli> took);

}  // namespace tacit::http
