#include "serve/request_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;

constexpr size_t kEchoMax = 64;  // bytes of a name that are worth repeating

}  // namespace

tl::unexpected<Error> BadRequest(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::string UnknownName(std::string_view what, std::string_view name,
                        std::span<const std::string_view> known) {
  if (name.size() > kEchoMax) return fmt::format("unknown {}, {} bytes long", what, name.size());
  return fmt::format("unknown {} '{}'{}", what, name, DidYouMean(name, known));
}

Result<json::object> ParseBody(std::string_view text, size_t max_depth,
                               json::memory_resource* memory) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::parser parser(memory, options);
  json::error_code error;
  const size_t parsed = parser.write({text.data(), text.size()}, error);
  if (error == json::error::incomplete)
    return BadRequest(fmt::format("not JSON: it ends too early, at byte {}", text.size()));
  if (error) return BadRequest(fmt::format("not JSON: {} at byte {}", error.message(), parsed));
  json::value value = parser.release();
  if (!value.is_object()) return BadRequest("the request must be a JSON object");
  return std::move(value.get_object());
}

Status CheckKeys(const json::object& request, std::span<const std::string_view> known) {
  for (const auto& member : request)
    if (std::ranges::find(known, View(member.key())) == known.end())
      return BadRequest(UnknownName("key", View(member.key()), known));
  return {};
}

Result<size_t> FindLearner(const json::object& request,
                           std::span<const std::string_view> learners) {
  const json::value* const learner = request.if_contains("learner");
  if (learner == nullptr && learners.size() == 1) return size_t{0};
  if (learner == nullptr) return BadRequest("\"learner\" is missing");
  if (!learner->is_string()) return BadRequest("\"learner\" must be a string");
  const std::string_view name = View(learner->get_string());
  const auto at = std::ranges::find(learners, name);
  if (at == learners.end())
    return Fail(ErrorCode::kNotFound, UnknownName("learner", name, learners));
  return static_cast<size_t>(at - learners.begin());
}

}  // namespace tacit::serve
