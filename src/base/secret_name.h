#pragma once

#include <string_view>

namespace tacit {

// Whether what has this name, a key of ours or of librdkafka's, is a secret by it. The one list of
// such names: what is not shown, not logged and not dumped goes by it.
bool IsSecretName(std::string_view name);

}  // namespace tacit
