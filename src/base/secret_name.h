#pragma once

#include <string_view>

namespace tacit {

// Checks whether the name of a key, one of ours or of librdkafka's, marks its value as a secret.
// This is the only list of such names; it decides what is hidden, not logged and not dumped.
bool IsSecretName(std::string_view name);

}  // namespace tacit
