#include "config/secret.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/secret_name.h"
#include "config/text_file.h"

namespace tacit::config {
namespace {

constexpr char kCredentialsDirectory[] = "CREDENTIALS_DIRECTORY";

tl::unexpected<Error> Refuse(const Secret& secret, std::string_view message) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", secret.place, message));
}

Result<std::string> PathOf(const Secret& secret) {
  if (secret.kind == Secret::Kind::kFile) return secret.text;
  if (secret.text.starts_with('.') || secret.text.find('/') != std::string::npos) {
    return Refuse(secret, fmt::format("'{}' is no credential's name", secret.text));
  }
  const char* directory = std::getenv(kCredentialsDirectory);
  if (directory == nullptr || *directory == '\0') {
    return Refuse(secret,
                  fmt::format("credential '{}': ${} is not set; systemd sets it for a unit with "
                              "LoadCredential={}:PATH",
                              secret.text, kCredentialsDirectory, secret.text));
  }
  return fmt::format("{}/{}", directory, secret.text);
}

}  // namespace

bool IsSecret(std::string_view key) { return IsSecretName(key); }

// A section may be written as a whole, with a secret inside.
bool MayHoldSecret(std::string_view path) {
  static constexpr std::string_view kSections[] = {"source", "source.registry", "kafka"};
  return IsSecret(path) || std::ranges::find(kSections, path) != std::end(kSections);
}

Result<std::string> ReadSecret(const Secret& secret) {
  if (secret.kind == Secret::Kind::kText) return secret.text;
  TACIT_ASSIGN(const std::string path, PathOf(secret));
  Result<std::string> text = ReadTextFile(path, /*mib_most=*/1);
  if (!text) return Fail(std::move(text.error()).Context(secret.place));
  if (text->ends_with('\n')) text->pop_back();
  if (text->empty()) return Refuse(secret, path + " is empty");
  if (text->find('\0') != std::string::npos) return Refuse(secret, path + " holds a zero byte");
  return text;
}

std::vector<std::string> SecretsInTheOpen(const Config& config) {
  std::vector<std::string> places;
  const auto look = [&](std::string_view key, const Secret& secret) {
    const bool open = secret.kind == Secret::Kind::kText && !secret.text.empty();
    if (open && IsSecret(key)) places.push_back(secret.place);
  };
  look("password", config.source.registry.password);
  for (const Property& property : config.kafka.properties) look(property.name, property.value);
  return places;
}

}  // namespace tacit::config
