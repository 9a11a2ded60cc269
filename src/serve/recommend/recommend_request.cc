#include "serve/recommend/recommend_request.h"

#include <fmt/format.h>

#include <utility>

#include "serve/request_json.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;

constexpr size_t kDepthMost = 8;

// A text, or an integer as its digits, as records have them; nothing for anything else.
std::optional<std::string> TextOf(const json::value& value) {
  if (value.is_string()) return std::string(View(value.get_string()));
  if (value.is_int64()) return std::to_string(value.get_int64());
  if (value.is_uint64()) return std::to_string(value.get_uint64());
  return std::nullopt;
}

Status ReadCount(const json::value* value, uint32_t most, uint32_t* count) {
  if (value == nullptr) return {};
  const bool in_range = value->is_int64() && value->get_int64() >= 1 && value->get_int64() <= most;
  if (!in_range) return BadRequest(fmt::format("\"k\" must be a whole number from 1 to {}", most));
  *count = static_cast<uint32_t>(value->get_int64());
  return {};
}

Status ReadUser(const json::value& value, std::optional<std::string>* user) {
  *user = TextOf(value);
  if (!*user) return BadRequest("\"user\" must be a string or an integer");
  if ((*user)->empty()) return BadRequest("\"user\" is empty");
  return {};
}

// An item that the catalogue lacks tells a model nothing, as one that came yesterday would: it is
// passed over, and the answer says so.
Status ReadSequence(const json::value& value, const event::ItemCatalogue& items, size_t most,
                    RecommendRequest* request) {
  const json::array* const array = value.if_array();
  if (array == nullptr) return BadRequest("\"sequence\" must be an array");
  if (array->size() > most)
    return BadRequest(
        fmt::format("\"sequence\" has {} items, at most {} are read", array->size(), most));
  for (size_t i = 0; i < array->size(); ++i) {
    std::optional<std::string> id = TextOf((*array)[i]);
    if (!id) return BadRequest(fmt::format("\"sequence\" {}: must be a string or an integer", i));
    const uint32_t item = items.Find(*id);
    if (item != event::kNoItem)
      request->sequence.push_back(item);
    else
      request->unknown_items.push_back(std::move(*id));
  }
  return {};
}

}  // namespace

RecommendRequestParser::RecommendRequestParser(std::span<const RecommendModel> models,
                                               Limits limits)
    : models_(models), limits_(limits) {
  for (const RecommendModel& model : models_) learners_.push_back(model.promise.learner);
}

Status RecommendRequestParser::Parse(std::string_view text, RecommendRequest* request) const {
  static constexpr std::string_view kKeys[] = {"learner", "user", "sequence", "k", "exclude_seen"};
  *request = {};
  json::monotonic_resource memory;
  TACIT_ASSIGN(const json::object body, ParseBody(text, kDepthMost, &memory));
  TACIT_RETURN_IF_ERROR(CheckKeys(body, kKeys));
  TACIT_ASSIGN(request->model, FindLearner(body, learners_));
  TACIT_RETURN_IF_ERROR(ReadCount(body.if_contains("k"), limits_.count_most, &request->count));
  if (const json::value* const exclude = body.if_contains("exclude_seen")) {
    if (!exclude->is_bool()) return BadRequest("\"exclude_seen\" must be true or false");
    request->exclude_seen = exclude->get_bool();
  }
  const json::value* const user = body.if_contains("user");
  const json::value* const sequence = body.if_contains("sequence");
  if ((user == nullptr) == (sequence == nullptr))
    return BadRequest("either \"user\" or \"sequence\" says whom it is for");
  if (user != nullptr) return ReadUser(*user, &request->user);
  return ReadSequence(*sequence, *models_[request->model].items, limits_.sequence_most, request);
}

}  // namespace tacit::serve
