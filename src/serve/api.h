#pragma once

#include "http/http.h"
#include "serve/routes/services.h"

namespace tacit::serve {

// The routes of route_table.h, for Server::Start. The builder of recommendation states lives as
// long as the factory or any handler it made.
http::HandlerFactory MakeApi(Services services);

}  // namespace tacit::serve
