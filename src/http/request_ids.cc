#include "http/request_ids.h"

#include <algorithm>

#include "base/files/log.h"
#include "http/caller.h"

namespace tacit::http {
namespace {

constexpr size_t kIdBytesMost = 128;

std::string_view IfPlain(std::string_view id) {
  const bool is_plain = id.size() <= kIdBytesMost && std::ranges::all_of(id, [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                 (c >= '0' && c <= '9') ||
                                 std::string_view("-_.:/+=@").find(c) != std::string_view::npos;
                        });
  return is_plain ? id : std::string_view();
}

bool IsFieldName(std::string_view text, std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(text, name, {}, lower, lower);
}

// Removes the spaces and tabs around a field's value, and a carriage return behind it.
std::string_view Stripped(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

}  // namespace

RequestIds IdsOf(std::string_view id, std::string_view trace) {
  return {IfPlain(id), IfPlain(trace)};
}

void RequestIds::AddTo(Reply* reply) const {
  if (!id.empty()) reply->headers.emplace_back(kIdField, id);
  if (!trace.empty()) reply->headers.emplace_back(kTraceField, trace);
}

void LogAccess(const Request& request, const Reply& reply, const RequestIds& ids,
               std::chrono::duration<double, std::milli> took) {
  const auto or_none = [](std::string_view id) { return id.empty() ? std::string_view("-") : id; };
  spdlog::info("access: {} {} {} {} {} bytes in, {} bytes out, {:.3f} ms, id {}, trace {}",
               request.caller != nullptr         ? NameOf(request.caller->role)
               : request.role == Role::kOperator ? std::string_view("operator")
                                                 : std::string_view("public"),
               reply.route.empty() ? "-" : request.method, or_none(reply.route), reply.status,
               request.body.size(), reply.body.size(), took.count(), or_none(ids.id),
               or_none(ids.trace));
}

RequestIds IdsInLines(std::string_view header) {
  RequestIds ids;
  for (size_t end = header.find('\n'); end != header.npos; end = header.find('\n')) {
    const std::string_view line = header.substr(0, end);
    header.remove_prefix(end + 1);
    if (Stripped(line).empty()) return ids;  // the header's end
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string_view name = line.substr(0, colon), value = Stripped(line.substr(colon + 1));
    // The first field of a name counts, as in a header that is read.
    if (ids.id.empty() && IsFieldName(name, kIdField)) ids.id = IfPlain(value);
    if (ids.trace.empty() && IsFieldName(name, kTraceField)) ids.trace = IfPlain(value);
  }
  return ids;
}

}  // namespace tacit::http
