#include "serve/answers/recommend_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "http/request_json.h"

namespace tacit::serve {
namespace {

constexpr size_t kDepthMost = 8;
// Years are those of titles, of four digits.
constexpr int64_t kYearMost = 9999;
constexpr std::string_view kArrayOfArrays = "must be an array of arrays";
constexpr std::string_view kArrayOfTexts = "must be an array of strings";

// Reads a request as it streams by. Items can be looked up only once the catalogue is known: if the
// learner is named after them, they are skipped, and the body is read a second time.
struct RecommendReading {
  const std::span<const RecommendModel> models;
  const std::span<const std::string_view> learners;
  const std::span<const http::LearnerElsewhere> elsewhere;
  const RecommendLimits& limits;
  RecommendRequest* const request;

  const RecommendModel* model = nullptr;
  std::optional<std::string> learner = {};
  bool passed_over = false;
  int asked_by = 0;           // "user", "sequence" and "sequences" that are there
  std::string_view key = {};  // of the items that are read
  size_t place = 0;           // of an item in its array
  size_t sequence_items = 0;  // of all sequences

  Status Read(std::string_view text);
  Status TakeLearner(const http::JsonValue& name);
  Status TakeUser(const http::JsonValue& id);
  // Returns false if the items are to be skipped, as their catalogue is not known yet.
  Result<bool> BeginItems(std::string_view name);
  // Begins one of several sequences.
  Result<bool> BeginOne();
  Status TakeItem(const http::JsonValue& value);
  bool OfSequence() const { return key.starts_with("sequence"); }
  // The item at hand, in words.
  std::string ItemText() const {
    if (key == "sequences")
      return fmt::format("\"{}\" {}, {}", key, request->sequences->size() - 1, place);
    return fmt::format("\"{}\" {}", key, place);
  }
};

Status RecommendReading::Read(std::string_view text) {
  using Kind = http::JsonPlace::Kind;
  const auto where = [this] { return ItemText(); };
  const http::JsonPlace item{.kind = Kind::kId, .take = [this](auto& id) { return TakeItem(id); }};
  const http::JsonParts sequence{
      .element = item, .begin = [this] { return BeginItems("sequence"); }, .where = where};
  const http::JsonParts one{
      .element = item, .begin = [this] { return BeginOne(); }, .where = where};
  const http::JsonParts sequences{.element = {.must = kArrayOfArrays, .array = &one},
                                  .elements_most = limits.sequences_most,
                                  .too_many = "\"sequences\" has more than {} of them",
                                  .begin = [this] { return BeginItems("sequences"); }};
  const http::JsonParts among{
      .element = item, .begin = [this] { return BeginItems("among"); }, .where = where};
  const http::JsonParts exclude{
      .element = item, .begin = [this] { return BeginItems("exclude"); }, .where = where};
  const http::JsonParts genres{.element = {.kind = Kind::kText,
                                           .must = kArrayOfTexts,
                                           .take =
                                               [this](auto& genre) {
                                                 request->filter.genres.emplace_back(genre.text);
                                                 return true;
                                               }},
                               .elements_most = limits.genres_most,
                               .too_many = "\"genres\" has more than {} of them"};
  const http::JsonKey keys[] = {
      {"learner", {.kind = Kind::kText, .take = [this](auto& name) { return TakeLearner(name); }}},
      {"user", {.kind = Kind::kId, .take = [this](auto& id) { return TakeUser(id); }}},
      {"sequence", {.array = &sequence}},
      {"sequences", {.must = kArrayOfArrays, .array = &sequences}},
      {"k", http::PlaceFor(&request->count, 1, limits.count_most)},
      {"exclude_seen", http::PlaceFor(&request->exclude_seen)},
      {"among", {.array = &among}},
      {"exclude", {.array = &exclude}},
      {"genres", {.must = kArrayOfTexts, .array = &genres}},
      {"year_from", http::PlaceFor(&request->filter.year_from, 0, kYearMost)},
      {"year_to", http::PlaceFor(&request->filter.year_to, 0, kYearMost)},
      {"reasons", http::PlaceFor(&request->reasons)}};
  return http::ReadJson(text, kDepthMost, keys);
}

Status RecommendReading::TakeLearner(const http::JsonValue& name) {
  learner = name.text;
  TACIT_ASSIGN(const size_t found, http::FindLearner(learner, learners, elsewhere));
  model = &models[found];
  return {};
}

Status RecommendReading::TakeUser(const http::JsonValue& id) {
  ++asked_by;
  std::string digits;
  request->user = id.Id(&digits);
  if (request->user->empty()) return http::BadRequest("\"user\" is empty");
  return {};
}

Result<bool> RecommendReading::BeginItems(std::string_view name) {
  key = name;
  place = 0;
  if (OfSequence()) ++asked_by;
  if (name == "sequences") request->sequences.emplace();
  if (name == "among") request->among.emplace();
  if (model == nullptr && models.size() == 1) model = &models[0];
  passed_over = passed_over || model == nullptr;
  return model != nullptr;
}

Result<bool> RecommendReading::BeginOne() {
  request->sequences->emplace_back();
  place = 0;
  return true;
}

Status RecommendReading::TakeItem(const http::JsonValue& value) {
  const size_t most = OfSequence() ? limits.sequence_most : limits.among_most;
  if ((OfSequence() ? sequence_items : place) == most)
    return http::BadRequest(fmt::format("\"{}\" has more than {} items", key, most));
  std::string digits;
  const std::string_view id = value.Id(&digits);
  if (OfSequence()) {
    ++sequence_items;
    AskedSequence* const one = key == "sequences" ? &request->sequences->back() : nullptr;
    Status added = AddItem(*model->items, limits, id, one ? &one->items : &request->sequence,
                           one ? &one->unknown_items : &request->unknown_items);
    if (!added) return Fail(std::move(added.error()).Context(ItemText()));
  } else if (const uint32_t item = model->items->Find(id); item != event::kNoItem) {
    // An item outside the catalogue is not recommended anyway.
    (key == "among" ? *request->among : request->exclude).push_back(item);
  }
  ++place;
  return {};
}

}  // namespace

// An item outside the catalogue tells a model nothing, like one that came out yesterday. It is
// skipped, and the answer says so. Ids have no control characters, so repeating them takes at most
// twice the room that they took in the request.
Status AddItem(const event::ItemCatalogue& items, const RecommendLimits& limits,
               std::string_view id, std::vector<uint32_t>* sequence,
               std::vector<std::string>* unknown_items) {
  const uint32_t item = items.Find(id);
  if (item != event::kNoItem) {
    sequence->push_back(item);
    return {};
  }
  const auto is_control = [](char c) { return static_cast<uint8_t>(c) < 0x20; };
  if (std::ranges::any_of(id, is_control))
    return http::BadRequest("an id has no control characters");
  if (id.size() > limits.unknown_bytes_most)
    return http::BadRequest(fmt::format("an unknown id of {} bytes, at most {} are allowed",
                                        id.size(), limits.unknown_bytes_most));
  unknown_items->emplace_back(id);
  return {};
}

RecommendRequestParser::RecommendRequestParser(std::span<const RecommendModel> models,
                                               Limits limits,
                                               std::vector<http::LearnerElsewhere> elsewhere)
    : models_(models), limits_(limits), elsewhere_(std::move(elsewhere)) {
  for (const RecommendModel& model : models_) learners_.push_back(model.promise.learner);
}

Status RecommendRequestParser::Parse(std::string_view text, RecommendRequest* request) const {
  *request = {};
  RecommendReading first{models_, learners_, elsewhere_, limits_, request};
  TACIT_RETURN_IF_ERROR(first.Read(text));
  TACIT_ASSIGN(const size_t model, http::FindLearner(first.learner, learners_));
  if (first.asked_by != 1)
    return http::BadRequest("give either \"user\" or \"sequence\" or \"sequences\"");
  if (first.passed_over) {
    *request = {};
    RecommendReading again{models_, learners_, elsewhere_, limits_, request, &models_[model]};
    TACIT_RETURN_IF_ERROR(again.Read(text));
  }
  request->model = model;
  return {};
}

}  // namespace tacit::serve
