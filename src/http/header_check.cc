#include "http/header_check.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>

namespace tacit::http {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Lowered(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), Lower);
  return lower;
}

// Accepts exactly four numbers, or an IPv6 address in brackets.
bool IsAddress(const std::string& host) {
  in6_addr address{};
  if (!host.starts_with('[')) return ::inet_pton(AF_INET, host.c_str(), &address) == 1;
  if (!host.ends_with(']')) return false;
  return ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &address) == 1;
}

// Accepts one or more labels with a dot between them.
bool IsName(std::string_view text) {
  const auto in_label = [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
  };
  return !text.empty() && !text.starts_with('.') && !text.ends_with('.') &&
         text.find("..") == text.npos &&
         std::ranges::all_of(text, [&](char c) { return c == '.' || in_label(c); });
}

}  // namespace

std::string HostName(std::string_view field) {
  const size_t bracket = field.rfind(']');
  const size_t colon = field.rfind(':');
  // A colon within brackets belongs to the address.
  const bool has_port = colon != field.npos && (bracket == field.npos || colon > bracket);
  if (has_port &&
      std::all_of(field.begin() + static_cast<ptrdiff_t>(colon) + 1, field.end(), IsDigit))
    field = field.substr(0, colon);
  if (field.size() > 1 && field.ends_with('.')) field.remove_suffix(1);
  return Lowered(field);
}

Hosts::Hosts(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == "any") all_ = true;
    (name.starts_with('.') ? suffixes_ : names_).push_back(HostName(name));
  }
}

bool Hosts::Answers(std::string_view field) const {
  if (all_) return true;
  const std::string host = HostName(field);
  return host == "localhost" || host.ends_with(".localhost") || IsAddress(host) ||
         std::ranges::find(names_, host) != names_.end() ||
         std::ranges::any_of(suffixes_, [&](const std::string& suffix) {
           return host.ends_with(suffix) &&
                  IsName(std::string_view(host).substr(0, host.size() - suffix.size()));
         });
}

bool IsCrossSite(std::string_view host, std::string_view origin, std::string_view fetch_site) {
  if (!fetch_site.empty() && fetch_site != "same-origin" && fetch_site != "none") return true;
  if (origin.empty()) return false;
  const size_t scheme = origin.find("://");
  if (scheme == origin.npos) return true;  // "null"
  return Lowered(origin.substr(scheme + 3)) != Lowered(host);
}

bool HasFoldedLine(std::string_view header) {
  for (size_t end = header.find('\n'); end != header.npos; end = header.find('\n', end + 1))
    if (end + 1 < header.size() && (header[end + 1] == ' ' || header[end + 1] == '\t')) return true;
  return false;
}

bool IsPlainLength(std::string_view content_length) {
  return !content_length.empty() && std::ranges::all_of(content_length, IsDigit);
}

size_t ChunkFraming(size_t chunk_bytes) {
  const size_t digits = chunk_bytes == 0 ? 1 : (std::bit_width(chunk_bytes) + 3) / 4;
  return digits + 4;
}

}  // namespace tacit::http
