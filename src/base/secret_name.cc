#include "base/secret_name.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace tacit {

bool IsSecretName(std::string_view name) {
  static constexpr std::string_view kParts[] = {"password",
                                                "passwd",
                                                "passphrase",
                                                "secret",
                                                "pem",
                                                "token",
                                                "private",
                                                "credential",
                                                "jaas",
                                                "oauthbearer.config",
                                                "oauthbearer.extensions"};
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(
      kParts, [&](std::string_view part) { return lower.find(part) != std::string::npos; });
}

}  // namespace tacit
