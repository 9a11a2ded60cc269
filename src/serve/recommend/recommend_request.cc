#include "serve/recommend/recommend_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "serve/request_json.h"

namespace tacit::serve {
namespace {

constexpr size_t kDepthMost = 8;
constexpr std::string_view kKeys[] = {"learner", "user", "sequence", "k", "exclude_seen"};
enum KeyPlace : size_t { kLearner, kUser, kSequence, kCount, kExcludeSeen, kNoKey };

// The text of a string, or the digits of an integer, as records have them; nothing for other kinds.
std::optional<std::string> TextOf(const JsonScalar& value) {
  if (value.kind == JsonScalar::Kind::kString) return std::string(value.text);
  if (value.kind == JsonScalar::Kind::kInt64) return std::to_string(value.int64);
  if (value.kind == JsonScalar::Kind::kUint64) return std::to_string(value.uint64);
  return std::nullopt;
}

// Reads a request as it streams by. Items can be looked up only once the catalogue is known: if the
// learner is named after them, they are skipped, and the body is read a second time.
class RecommendSink final : public JsonSink {
 public:
  RecommendSink(std::span<const RecommendModel> models, std::span<const std::string_view> learners,
                const RecommendRequestParser::Limits& limits, RecommendRequest* request)
      : models_(models), learners_(learners), limits_(limits), request_(request) {}

  void SetModel(size_t model) { model_ = &models_[model]; }
  const std::optional<std::string>& learner() const { return learner_; }
  bool has(KeyPlace key) const { return has_[key]; }
  bool passed_over() const { return passed_over_; }
  bool is_object() const { return is_object_; }

  bool BeginObject() override;
  bool EndObject() override { return End(); }
  bool BeginArray() override;
  bool EndArray() override { return End(); }
  bool Key(std::string_view key) override;
  bool Scalar(const JsonScalar& value) override;

 private:
  enum class At : uint8_t { kStart, kRequest, kSequence, kSkipped };

  bool End();
  bool ReadValue(const JsonScalar& value);
  bool ReadLearner(const JsonScalar& value);
  bool ReadCount(const JsonScalar& value);
  bool AddItem(const JsonScalar& value);
  bool RefuseKind();
  bool RefuseItem() {
    return Refuse(fmt::format("\"sequence\" {}: must be a string or an integer", items_));
  }

  const std::span<const RecommendModel> models_;
  const std::span<const std::string_view> learners_;
  const RecommendRequestParser::Limits limits_;
  RecommendRequest* const request_;
  const RecommendModel* model_ = nullptr;
  At at_ = At::kStart, back_ = At::kStart;
  size_t depth_ = 0;  // nesting of the skipped value
  KeyPlace key_ = kNoKey;
  bool has_[std::size(kKeys)] = {};
  bool is_object_ = true, passed_over_ = false;
  std::optional<std::string> learner_;
  size_t items_ = 0;
};

bool RecommendSink::BeginObject() {
  if (at_ == At::kSequence) return RefuseItem();
  if (at_ == At::kRequest) return RefuseKind();
  if (at_ == At::kSkipped) ++depth_;
  if (at_ == At::kStart) at_ = At::kRequest;
  return true;
}

bool RecommendSink::BeginArray() {
  if (at_ == At::kSequence) return RefuseItem();
  if (at_ == At::kSkipped) {
    ++depth_;
    return true;
  }
  if (at_ == At::kRequest) {
    if (key_ != kSequence) return RefuseKind();
    if (model_ == nullptr && learners_.size() == 1) model_ = &models_[0];
    if (model_ != nullptr) {
      at_ = At::kSequence;
      return true;
    }
    passed_over_ = true;
  }
  is_object_ = at_ != At::kStart;
  back_ = at_;
  depth_ = 1;
  at_ = At::kSkipped;
  return true;
}

bool RecommendSink::End() {
  if (at_ == At::kSequence)
    at_ = At::kRequest;
  else if (at_ == At::kRequest)
    at_ = At::kStart;
  else if (--depth_ == 0)
    at_ = back_;
  return true;
}

bool RecommendSink::Key(std::string_view key) {
  if (at_ == At::kSkipped) return true;
  const auto at = std::find(std::begin(kKeys), std::end(kKeys), key);
  if (at == std::end(kKeys)) return Refuse(UnknownName("key", key, kKeys));
  key_ = static_cast<KeyPlace>(at - std::begin(kKeys));
  if (has_[key_]) return Refuse(fmt::format("\"{}\" is there twice", key));
  has_[key_] = true;
  return true;
}

bool RecommendSink::Scalar(const JsonScalar& value) {
  switch (at_) {
    case At::kStart:
      is_object_ = false;
      return true;
    case At::kRequest:
      return ReadValue(value);
    case At::kSequence:
      return AddItem(value);
    case At::kSkipped:
      return true;
  }
  return true;
}

bool RecommendSink::ReadValue(const JsonScalar& value) {
  switch (key_) {
    case kLearner:
      return ReadLearner(value);
    case kUser:
      request_->user = TextOf(value);
      if (!request_->user) return RefuseKind();
      return request_->user->empty() ? Refuse("\"user\" is empty") : true;
    case kCount:
      return ReadCount(value);
    case kExcludeSeen:
      if (value.kind != JsonScalar::Kind::kBool) return RefuseKind();
      request_->exclude_seen = value.flag;
      return true;
    default:
      return RefuseKind();
  }
}

bool RecommendSink::ReadLearner(const JsonScalar& value) {
  if (value.kind != JsonScalar::Kind::kString) return RefuseKind();
  learner_ = value.text;
  const auto model = FindLearner(learner_, learners_);
  if (!model) return Refuse(model.error());
  SetModel(*model);
  return true;
}

bool RecommendSink::ReadCount(const JsonScalar& value) {
  const bool in_range = value.kind == JsonScalar::Kind::kInt64 && value.int64 >= 1 &&
                        value.int64 <= limits_.count_most;
  if (!in_range) return RefuseKind();
  request_->count = static_cast<uint32_t>(value.int64);
  return true;
}

// An item outside the catalogue tells a model nothing, like one that came out yesterday. It is
// skipped, and the answer says so. Ids have no control characters, so repeating them takes at most
// twice the room that they took in the request.
bool RecommendSink::AddItem(const JsonScalar& value) {
  if (items_ == limits_.sequence_most)
    return Refuse(fmt::format("\"sequence\" has more than {} items", limits_.sequence_most));
  std::optional<std::string> id = TextOf(value);
  if (!id) return RefuseItem();
  const uint32_t item = model_->items->Find(*id);
  if (item != event::kNoItem) {
    request_->sequence.push_back(item);
  } else {
    const auto is_control = [](char c) { return static_cast<uint8_t>(c) < 0x20; };
    if (std::ranges::any_of(*id, is_control))
      return Refuse(fmt::format("\"sequence\" {}: an id has no control characters", items_));
    if (id->size() > limits_.unknown_bytes_most)
      return Refuse(
          fmt::format("\"sequence\" {}: an unknown id of {} bytes, at most {} are allowed", items_,
                      id->size(), limits_.unknown_bytes_most));
    request_->unknown_items.push_back(std::move(*id));
  }
  ++items_;
  return true;
}

bool RecommendSink::RefuseKind() {
  switch (key_) {
    case kLearner:
      return Refuse("\"learner\" must be a string");
    case kUser:
      return Refuse("\"user\" must be a string or an integer");
    case kSequence:
      return Refuse("\"sequence\" must be an array");
    case kCount:
      return Refuse(fmt::format("\"k\" must be a whole number from 1 to {}", limits_.count_most));
    default:
      return Refuse("\"exclude_seen\" must be true or false");
  }
}

}  // namespace

RecommendRequestParser::RecommendRequestParser(std::span<const RecommendModel> models,
                                               Limits limits)
    : models_(models), limits_(limits) {
  for (const RecommendModel& model : models_) learners_.push_back(model.promise.learner);
}

Status RecommendRequestParser::Parse(std::string_view text, RecommendRequest* request) const {
  *request = {};
  RecommendSink sink(models_, learners_, limits_, request);
  TACIT_RETURN_IF_ERROR(ReadJson(text, kDepthMost, &sink));
  if (!sink.is_object()) return BadRequest("the request must be a JSON object");
  TACIT_ASSIGN(request->model, FindLearner(sink.learner(), learners_));
  if (sink.has(kUser) == sink.has(kSequence))
    return BadRequest("give either \"user\" or \"sequence\"");
  if (!sink.passed_over()) return {};
  RecommendSink again(models_, learners_, limits_, request);
  again.SetModel(request->model);
  return ReadJson(text, kDepthMost, &again);
}

}  // namespace tacit::serve
