#pragma once

#include <string>
#include <string_view>

#include "base/hash.h"

namespace tacit::http {

// A new token: "tacit_" and 32 bytes of the system's randomness in base64url, so that it can be
// told from other texts. It is shown once, and only its digest is kept.
std::string NewToken();

// The digest by which a token is known. A token is random, and so needs no salt.
Digest DigestOfToken(std::string_view token);

// The line of serve.callers for a token's digest; `user` is for role user alone.
std::string CallerLine(std::string_view role, std::string_view name, const Digest& digest,
                       std::string_view user);

// The token of an Authorization field, "Bearer TOKEN" (RFC 6750, 2.1: the scheme in any case, one
// space or more, a token68). If empty, the field has another form.
std::string_view BearerToken(std::string_view field);

}  // namespace tacit::http
