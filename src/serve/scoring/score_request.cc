#include "serve/scoring/score_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "http/request_json.h"
#include "serve/scoring/row_reader.h"

namespace tacit::serve {
namespace {

constexpr std::string_view kRequestKeys[] = {"learner", "rows"};
constexpr std::string_view kRowKeys[] = {"dense", "categorical", "features"};

// Reads a request as it streams by. Rows can be read only once the schema is known: if the learner
// is named after them, they are skipped, and the body is read a second time.
class ScoreSink final : public http::JsonSink {
 public:
  ScoreSink(std::span<RowReader> readers, std::span<const std::string_view> learners,
            std::span<const http::LearnerElsewhere> elsewhere, size_t max_rows, event::Batch* batch)
      : readers_(readers),
        learners_(learners),
        elsewhere_(elsewhere),
        max_rows_(max_rows),
        batch_(batch) {}

  // Sets the learner for a second reading.
  void SetTarget(size_t target) { reader_ = &readers_[target]; }
  const std::optional<std::string>& learner() const { return learner_; }
  bool has_rows() const { return has_rows_; }
  bool passed_over() const { return passed_over_; }
  // False if the document is JSON but not an object.
  bool is_object() const { return is_object_; }

  bool BeginObject() override;
  bool EndObject() override;
  bool BeginArray() override;
  bool EndArray() override;
  bool Key(std::string_view key) override;
  bool Scalar(const http::JsonScalar& scalar) override;

 private:
  enum class At : uint8_t { kStart, kRequest, kRows, kRow, kColumns, kFeatures, kList, kSkipped };

  bool RequestKey(std::string_view key);
  bool RowKey(std::string_view key);
  bool BeginRows();
  bool BeginRow();
  bool CheckWidth();
  // Refuses the current row.
  bool RefuseRow(Error error) {
    return Refuse(std::move(error).Context(fmt::format("row {}", rows_ - 1)));
  }
  bool RefuseRow(std::string message) {
    return RefuseRow(Error{ErrorCode::kInvalidArgument, std::move(message)});
  }
  bool CheckRow(const Status& status) { return status ? true : RefuseRow(status.error()); }
  bool SkipFrom(At back) {
    back_ = back;
    depth_ = 1;
    at_ = At::kSkipped;
    return true;
  }
  // Refuses a value that is nested at a place of a row where none may be.
  bool RefuseNested();

  const std::span<RowReader> readers_;
  const std::span<const std::string_view> learners_;
  const std::span<const http::LearnerElsewhere> elsewhere_;
  const size_t max_rows_;
  event::Batch* const batch_;
  RowReader* reader_ = nullptr;

  At at_ = At::kStart, back_ = At::kStart;
  size_t depth_ = 0;  // nesting of the skipped value
  bool is_object_ = true, has_rows_ = false, passed_over_ = false;
  bool key_is_learner_ = false;
  std::optional<std::string> learner_;
  // State of the current row.
  size_t rows_ = 0, columns_seen_ = 0;
  bool has_key_[3] = {};
  std::string_view row_key_;
  RowReader::Column column_;
};

bool ScoreSink::BeginObject() {
  switch (at_) {
    case At::kStart:
      at_ = At::kRequest;
      return true;
    case At::kRequest:
      return Refuse(key_is_learner_ ? "\"learner\" must be a string" : "\"rows\" must be an array");
    case At::kRows:
      return BeginRow();
    case At::kRow:
      if (row_key_ != "features") return RefuseNested();
      at_ = At::kFeatures;
      return true;
    case At::kSkipped:
      ++depth_;
      return true;
    default:
      return RefuseNested();
  }
}

bool ScoreSink::EndObject() {
  switch (at_) {
    case At::kFeatures:
      at_ = At::kRow;
      return true;
    case At::kRow:
      reader_->End(batch_);
      at_ = At::kRows;
      return true;
    case At::kSkipped:
      return EndArray();
    default:
      at_ = At::kStart;
      return true;
  }
}

bool ScoreSink::BeginArray() {
  switch (at_) {
    case At::kStart:
      is_object_ = false;
      return SkipFrom(At::kStart);
    case At::kRequest:
      return key_is_learner_ ? Refuse("\"learner\" must be a string") : BeginRows();
    case At::kRows:
      ++rows_;
      return RefuseRow("must be an object");
    case At::kRow:
      if (row_key_ == "features") return RefuseRow("\"features\" must be an object");
      column_ = {row_key_ == "dense", 0};
      columns_seen_ = 0;
      at_ = At::kColumns;
      return true;
    case At::kColumns:
    case At::kFeatures:
      if (at_ == At::kColumns) {
        column_.index = columns_seen_++;
        if (column_.index >= reader_->width(column_.is_dense)) return SkipFrom(At::kColumns);
      }
      if (!CheckRow(reader_->BeginList(column_))) return false;
      back_ = at_;
      at_ = At::kList;
      return true;
    case At::kSkipped:
      ++depth_;
      return true;
    default:
      return RefuseNested();
  }
}

bool ScoreSink::EndArray() {
  switch (at_) {
    case At::kList:
      reader_->EndList();
      at_ = back_;
      return true;
    case At::kColumns:
      at_ = At::kRow;
      return CheckWidth();
    case At::kRows:
      at_ = At::kRequest;
      return true;
    default:
      if (--depth_ == 0) at_ = back_;
      return true;
  }
}

bool ScoreSink::BeginRows() {
  has_rows_ = true;
  if (reader_ == nullptr && learners_.size() == 1) reader_ = &readers_[0];
  if (reader_ == nullptr) {
    passed_over_ = true;
    return SkipFrom(At::kRequest);
  }
  at_ = At::kRows;
  return true;
}

bool ScoreSink::BeginRow() {
  if (++rows_ > max_rows_)
    return Refuse(fmt::format("more than {} rows in one request", max_rows_));
  for (bool& has : has_key_) has = false;
  reader_->Begin();
  at_ = At::kRow;
  return true;
}

bool ScoreSink::CheckWidth() {
  const size_t width = reader_->width(column_.is_dense);
  if (columns_seen_ == width) return true;
  return RefuseRow(
      fmt::format("\"{}\" has {} values, the schema {}", row_key_, columns_seen_, width));
}

bool ScoreSink::RefuseNested() {
  if (at_ == At::kRow) return RefuseRow(fmt::format("\"{}\" must be an array", row_key_));
  if (at_ == At::kList)
    return RefuseRow(fmt::format("{} must hold strings only", reader_->Name(column_)));
  if (at_ == At::kColumns) {
    column_.index = columns_seen_;
    if (column_.index >= reader_->width(column_.is_dense)) return CheckWidth();
  }
  return RefuseRow(fmt::format("{} must be a {} or null", reader_->Name(column_),
                               column_.is_dense ? "number" : "string"));
}

bool ScoreSink::Key(std::string_view key) {
  if (at_ == At::kSkipped) return true;
  if (at_ == At::kRequest) return RequestKey(key);
  if (at_ == At::kRow) return RowKey(key);
  Result<RowReader::Column> column = reader_->Find(key);
  if (!column) return RefuseRow(std::move(column.error()));
  column_ = *column;
  return true;
}

bool ScoreSink::RequestKey(std::string_view key) {
  key_is_learner_ = key == "learner";
  if (!key_is_learner_ && key != "rows") return Refuse(http::UnknownName("key", key, kRequestKeys));
  if (key_is_learner_ ? learner_.has_value() : has_rows_)
    return Refuse(fmt::format("\"{}\" is there twice", key));
  return true;
}

bool ScoreSink::RowKey(std::string_view key) {
  const auto at = std::find(std::begin(kRowKeys), std::end(kRowKeys), key);
  if (at == std::end(kRowKeys)) return RefuseRow(http::UnknownName("key", key, kRowKeys));
  bool& has = has_key_[at - std::begin(kRowKeys)];
  if (has) return RefuseRow(fmt::format("\"{}\" is there twice", key));
  has = true;
  row_key_ = *at;
  if (has_key_[2] && (has_key_[0] || has_key_[1]))
    return RefuseRow("\"features\" stands alone in its row");
  return true;
}

bool ScoreSink::Scalar(const http::JsonScalar& scalar) {
  switch (at_) {
    case At::kStart:
      is_object_ = false;
      return true;
    case At::kRequest:
      if (!key_is_learner_) return Refuse("\"rows\" must be an array");
      if (scalar.kind != http::JsonScalar::Kind::kString)
        return Refuse("\"learner\" must be a string");
      learner_ = scalar.text;
      if (const auto target = http::FindLearner(learner_, learners_, elsewhere_)) {
        reader_ = &readers_[*target];
        return true;
      } else {
        return Refuse(target.error());
      }
    case At::kRows:
      ++rows_;
      return RefuseRow("must be an object");
    case At::kRow:
      return RefuseRow(fmt::format("\"{}\" must be an {}", row_key_,
                                   row_key_ == "features" ? "object" : "array"));
    case At::kColumns:
      column_.index = columns_seen_++;
      if (column_.index >= reader_->width(column_.is_dense)) return true;  // reported at the end
      return CheckRow(reader_->Set(column_, scalar));
    case At::kFeatures:
      return CheckRow(reader_->Set(column_, scalar));
    case At::kList:
      return CheckRow(reader_->AddToList(scalar));
    case At::kSkipped:
      return true;
  }
  return true;
}

}  // namespace

struct ScoreRequestParser::Impl {
  std::vector<Target> targets;
  Limits limits;
  std::vector<RowReader> readers;
  std::vector<std::string_view> learners;  // names of the targets
  std::vector<http::LearnerElsewhere> elsewhere;
};

ScoreRequestParser::ScoreRequestParser(std::vector<Target> targets, Limits limits,
                                       std::vector<http::LearnerElsewhere> elsewhere)
    : ScoreRequestParser(std::move(targets), limits) {
  impl_->elsewhere = std::move(elsewhere);
}

ScoreRequestParser::ScoreRequestParser(std::vector<Target> targets, Limits limits)
    : impl_(std::make_unique<Impl>()) {
  impl_->targets = std::move(targets);
  impl_->limits = limits;
  for (const Target& target : impl_->targets) {
    impl_->readers.emplace_back(*target.transform);
    impl_->learners.push_back(target.learner);
  }
}
ScoreRequestParser::~ScoreRequestParser() = default;

Result<size_t> ScoreRequestParser::Parse(std::string_view text, event::Batch* batch) {
  const Limits& limits = impl_->limits;
  batch->Clear();
  ScoreSink sink(impl_->readers, impl_->learners, impl_->elsewhere, limits.max_rows, batch);
  TACIT_RETURN_IF_ERROR(http::ReadJson(text, limits.max_depth, &sink));
  if (!sink.is_object()) return http::BadRequest("the request must be a JSON object");
  TACIT_ASSIGN(const size_t target, http::FindLearner(sink.learner(), impl_->learners));
  if (!sink.has_rows()) return http::BadRequest("\"rows\" is missing");
  if (sink.passed_over()) {
    ScoreSink again(impl_->readers, impl_->learners, impl_->elsewhere, limits.max_rows, batch);
    again.SetTarget(target);
    TACIT_RETURN_IF_ERROR(http::ReadJson(text, limits.max_depth, &again));
  }
  const event::FeatureSchema& schema = impl_->targets[target].transform->schema();
  batch->dense_width = schema.dense.size();
  batch->slots = schema.categorical.size();
  return target;
}

}  // namespace tacit::serve
