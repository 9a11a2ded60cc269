#include "serve/answers/recommend_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "http/request_json.h"

namespace tacit::serve {
namespace {

constexpr size_t kDepthMost = 8;
constexpr std::string_view kKeys[] = {"learner", "user",         "sequence", "sequences",
                                      "k",       "exclude_seen", "among",    "exclude",
                                      "genres",  "year_from",    "year_to",  "reasons"};
enum KeyPlace : size_t {
  kLearner,
  kUser,
  kSequence,
  kSequences,
  kCount,
  kExcludeSeen,
  kAmong,
  kExclude,
  kGenres,
  kYearFrom,
  kYearTo,
  kReasons,
  kNoKey
};
// Years are those of titles, of four digits.
constexpr int64_t kYearMost = 9999;

// The text of a string, or the digits of an integer, as records have them; nothing for other kinds.
std::optional<std::string> TextOf(const http::JsonScalar& value) {
  if (value.kind == http::JsonScalar::Kind::kString) return std::string(value.text);
  if (value.kind == http::JsonScalar::Kind::kInt64) return std::to_string(value.int64);
  if (value.kind == http::JsonScalar::Kind::kUint64) return std::to_string(value.uint64);
  return std::nullopt;
}

// Reads a request as it streams by. Items can be looked up only once the catalogue is known: if the
// learner is named after them, they are skipped, and the body is read a second time.
class RecommendSink final : public http::JsonSink {
 public:
  RecommendSink(std::span<const RecommendModel> models, std::span<const std::string_view> learners,
                std::span<const http::LearnerElsewhere> elsewhere,
                const RecommendRequestParser::Limits& limits, RecommendRequest* request)
      : models_(models),
        learners_(learners),
        elsewhere_(elsewhere),
        limits_(limits),
        request_(request) {}

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
  bool Scalar(const http::JsonScalar& value) override;

 private:
  enum class At : uint8_t { kStart, kRequest, kItems, kSequences, kGenres, kSkipped };

  bool End();
  bool ReadValue(const http::JsonScalar& value);
  bool ReadLearner(const http::JsonScalar& value);
  bool ReadCount(const http::JsonScalar& value);
  bool ReadYear(const http::JsonScalar& value, std::optional<int64_t>* year);
  bool ReadFlag(const http::JsonScalar& value, bool* flag);
  bool AddItem(const http::JsonScalar& value);
  bool AddSequenceItem(std::string_view id);
  bool AddGenre(const http::JsonScalar& value);
  bool BeginValueArray();
  bool BeginSequence();
  bool RefuseKind();
  // The item at hand, in words.
  std::string ItemText() const {
    if (key_ == kSequences)
      return fmt::format("\"sequences\" {}, {}", request_->sequences->size() - 1, place_);
    return fmt::format("\"{}\" {}", kKeys[key_], place_);
  }
  bool RefuseItem() { return Refuse(ItemText() + ": must be a string or an integer"); }

  const std::span<const RecommendModel> models_;
  const std::span<const std::string_view> learners_;
  const std::span<const http::LearnerElsewhere> elsewhere_;
  const RecommendRequestParser::Limits limits_;
  RecommendRequest* const request_;
  const RecommendModel* model_ = nullptr;
  At at_ = At::kStart, back_ = At::kStart;
  size_t depth_ = 0;  // nesting of the skipped value
  KeyPlace key_ = kNoKey;
  bool has_[std::size(kKeys)] = {};
  bool is_object_ = true, passed_over_ = false;
  std::optional<std::string> learner_;
  size_t place_ = 0;           // of an item in its array
  size_t sequence_items_ = 0;  // of all sequences
};

bool RecommendSink::BeginObject() {
  if (at_ == At::kItems) return RefuseItem();
  if (at_ == At::kSequences || at_ == At::kGenres) return RefuseKind();
  if (at_ == At::kRequest) return RefuseKind();
  if (at_ == At::kSkipped) ++depth_;
  if (at_ == At::kStart) at_ = At::kRequest;
  return true;
}

bool RecommendSink::BeginArray() {
  if (at_ == At::kItems) return RefuseItem();
  if (at_ == At::kGenres) return RefuseKind();
  if (at_ == At::kSequences) return BeginSequence();
  if (at_ == At::kSkipped) {
    ++depth_;
    return true;
  }
  if (at_ == At::kRequest && BeginValueArray()) return true;
  if (failure()) return false;
  is_object_ = at_ != At::kStart;
  back_ = at_;
  depth_ = 1;
  at_ = At::kSkipped;
  return true;
}

// Begins an array that is a key's value. Returns false if it is refused, or to be skipped as the
// catalogue of its items is not known yet.
bool RecommendSink::BeginValueArray() {
  if (key_ == kGenres) {
    at_ = At::kGenres;
    return true;
  }
  if (key_ != kSequence && key_ != kSequences && key_ != kAmong && key_ != kExclude)
    return RefuseKind();
  if (model_ == nullptr && learners_.size() == 1) model_ = &models_[0];
  if (model_ == nullptr) {
    passed_over_ = true;
    return false;
  }
  at_ = key_ == kSequences ? At::kSequences : At::kItems;
  back_ = At::kRequest;
  place_ = 0;
  if (key_ == kSequences) request_->sequences.emplace();
  if (key_ == kAmong) request_->among.emplace();
  return true;
}

bool RecommendSink::BeginSequence() {
  if (request_->sequences->size() == limits_.sequences_most)
    return Refuse(fmt::format("\"sequences\" has more than {} of them", limits_.sequences_most));
  request_->sequences->emplace_back();
  at_ = At::kItems;
  back_ = At::kSequences;
  place_ = 0;
  return true;
}

bool RecommendSink::End() {
  if (at_ == At::kItems)
    at_ = back_;
  else if (at_ == At::kSequences || at_ == At::kGenres)
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
  if (at == std::end(kKeys)) return Refuse(http::UnknownName("key", key, kKeys));
  key_ = static_cast<KeyPlace>(at - std::begin(kKeys));
  if (has_[key_]) return Refuse(fmt::format("\"{}\" is there twice", key));
  has_[key_] = true;
  return true;
}

bool RecommendSink::Scalar(const http::JsonScalar& value) {
  switch (at_) {
    case At::kStart:
      is_object_ = false;
      return true;
    case At::kRequest:
      return ReadValue(value);
    case At::kItems:
      return AddItem(value);
    case At::kSequences:
      return RefuseKind();
    case At::kGenres:
      return AddGenre(value);
    case At::kSkipped:
      return true;
  }
  return true;
}

bool RecommendSink::ReadValue(const http::JsonScalar& value) {
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
      return ReadFlag(value, &request_->exclude_seen);
    case kReasons:
      return ReadFlag(value, &request_->reasons);
    case kYearFrom:
      return ReadYear(value, &request_->filter.year_from);
    case kYearTo:
      return ReadYear(value, &request_->filter.year_to);
    default:
      return RefuseKind();
  }
}

bool RecommendSink::ReadLearner(const http::JsonScalar& value) {
  if (value.kind != http::JsonScalar::Kind::kString) return RefuseKind();
  learner_ = value.text;
  const auto model = http::FindLearner(learner_, learners_, elsewhere_);
  if (!model) return Refuse(model.error());
  SetModel(*model);
  return true;
}

bool RecommendSink::ReadCount(const http::JsonScalar& value) {
  const bool in_range = value.kind == http::JsonScalar::Kind::kInt64 && value.int64 >= 1 &&
                        value.int64 <= limits_.count_most;
  if (!in_range) return RefuseKind();
  request_->count = static_cast<uint32_t>(value.int64);
  return true;
}

bool RecommendSink::ReadYear(const http::JsonScalar& value, std::optional<int64_t>* year) {
  const bool is_year =
      value.kind == http::JsonScalar::Kind::kInt64 && value.int64 >= 0 && value.int64 <= kYearMost;
  if (!is_year) return RefuseKind();
  *year = value.int64;
  return true;
}

bool RecommendSink::ReadFlag(const http::JsonScalar& value, bool* flag) {
  if (value.kind != http::JsonScalar::Kind::kBool) return RefuseKind();
  *flag = value.flag;
  return true;
}

bool RecommendSink::AddItem(const http::JsonScalar& value) {
  const bool of_sequence = key_ == kSequence || key_ == kSequences;
  if (of_sequence && sequence_items_ == limits_.sequence_most)
    return Refuse(fmt::format("\"{}\" has more than {} items", kKeys[key_], limits_.sequence_most));
  if (!of_sequence && place_ == limits_.among_most)
    return Refuse(fmt::format("\"{}\" has more than {} items", kKeys[key_], limits_.among_most));
  const std::optional<std::string> id = TextOf(value);
  if (!id) return RefuseItem();
  if (of_sequence) {
    if (!AddSequenceItem(*id)) return false;
  } else if (const uint32_t item = model_->items->Find(*id); item != event::kNoItem) {
    // An item outside the catalogue is not recommended anyway.
    (key_ == kAmong ? *request_->among : request_->exclude).push_back(item);
  }
  ++place_;
  return true;
}

bool RecommendSink::AddSequenceItem(std::string_view id) {
  ++sequence_items_;
  AskedSequence* const one = key_ == kSequences ? &request_->sequences->back() : nullptr;
  Status added =
      serve::AddItem(*model_->items, limits_, id, one ? &one->items : &request_->sequence,
                     one ? &one->unknown_items : &request_->unknown_items);
  return added ? true : Refuse(std::move(added.error()).Context(ItemText()));
}

bool RecommendSink::AddGenre(const http::JsonScalar& value) {
  std::vector<std::string>& genres = request_->filter.genres;
  if (value.kind != http::JsonScalar::Kind::kString) return RefuseKind();
  if (genres.size() == limits_.genres_most)
    return Refuse(fmt::format("\"genres\" has more than {} of them", limits_.genres_most));
  genres.emplace_back(value.text);
  return true;
}

bool RecommendSink::RefuseKind() {
  switch (key_) {
    case kLearner:
      return Refuse("\"learner\" must be a string");
    case kUser:
      return Refuse("\"user\" must be a string or an integer");
    case kSequence:
    case kAmong:
    case kExclude:
      return Refuse(fmt::format("\"{}\" must be an array", kKeys[key_]));
    case kSequences:
      return Refuse("\"sequences\" must be an array of arrays");
    case kGenres:
      return Refuse("\"genres\" must be an array of strings");
    case kYearFrom:
    case kYearTo:
      return Refuse(
          fmt::format("\"{}\" must be a whole number from 0 to {}", kKeys[key_], kYearMost));
    case kCount:
      return Refuse(fmt::format("\"k\" must be a whole number from 1 to {}", limits_.count_most));
    default:
      return Refuse(fmt::format("\"{}\" must be true or false", kKeys[key_]));
  }
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
  RecommendSink sink(models_, learners_, elsewhere_, limits_, request);
  TACIT_RETURN_IF_ERROR(http::ReadJson(text, kDepthMost, &sink));
  if (!sink.is_object()) return http::BadRequest("the request must be a JSON object");
  TACIT_ASSIGN(request->model, http::FindLearner(sink.learner(), learners_));
  if (int{sink.has(kUser)} + int{sink.has(kSequence)} + int{sink.has(kSequences)} != 1)
    return http::BadRequest("give either \"user\" or \"sequence\" or \"sequences\"");
  if (!sink.passed_over()) return {};
  const size_t model = request->model;
  *request = {};
  request->model = model;
  RecommendSink again(models_, learners_, elsewhere_, limits_, request);
  again.SetModel(request->model);
  return http::ReadJson(text, kDepthMost, &again);
}

}  // namespace tacit::serve
