#pragma once

#include <string>
#include <string_view>

#include "http/http.h"

// Private to this room.
namespace tacit::http {

// Sets `out` to the status line and the fields of an answer, with the empty line behind them.
void RenderHead(const Reply& reply, std::string_view reason, std::string_view date, bool keep_alive,
                bool is_http10, std::string* out);

}  // namespace tacit::http
