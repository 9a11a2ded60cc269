#include "event/csv_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "event/example_builder.h"
#include "event/record_parts.h"
#include "event/run_codec.h"
#include "event/shape_rules.h"

namespace tacit::event {
namespace {

// A part, and the place of its column in the line.
struct CsvPart {
  ShapePart part;
  size_t index = 0;
};

// Lists what is to be read, and finds the columns. The error names the part.
Result<std::vector<CsvPart>> CsvPartsOf(const CsvShape& shape, const FeatureNames& names) {
  std::vector<ShapePart> parts =
      PartsOf(shape, names, [](const std::string& name, FeatureNames::Place) { return name; });
  const std::vector<std::string_view> columns(shape.columns.begin(), shape.columns.end());
  std::vector<CsvPart> placed;
  for (ShapePart& part : parts) {
    const auto column = std::ranges::find(shape.columns, part.where);
    if (column == shape.columns.end())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("source.csv, {}: there is no column '{}'{}", part.name, part.where,
                              DidYouMean(part.where, columns)));
    placed.push_back({std::move(part), static_cast<size_t>(column - shape.columns.begin())});
  }
  return placed;
}

MaybeBad NoLine(std::string what) { return BadRecord(std::move(what), BadPart::kSyntax); }

class CsvCodec final : public RunCodec<CsvCodec> {
 public:
  struct Scratch {
    explicit Scratch(const CsvCodec& codec)
        : example(codec.transform_, codec.names_, codec.options_.missing) {}

    ExampleBuilder example;
    std::string text;
    std::vector<std::string_view> values, set;
    RecordParts own;  // all but the features
  };

  CsvCodec(const FeatureTransform& transform, CsvShape shape, InteractionOptions options)
      : transform_(transform),
        names_(transform.schema()),
        shape_(std::move(shape)),
        options_(std::move(options)) {
    if (shape_.columns.empty()) return;
    auto parts = CsvPartsOf(shape_, names_);
    TACIT_CHECK(parts.has_value(), "a shape is checked before a codec is made");
    parts_ = *std::move(parts);
    if (scores())
      std::erase_if(parts_, [](const CsvPart& part) {
        return part.part.kind == PartKind::kLabel || part.part.kind == PartKind::kWeight;
      });
  }

  Scratch MakeScratch(const Batch& batch) const {
    TACIT_CHECK(batch.dense_width == transform_.schema().dense.size() &&
                    batch.slots == transform_.schema().categorical.size(),
                "the batch is not started");
    return Scratch(*this);
  }

  // The header of a file. Its offset is one without a record.
  bool IsNoRecord(const RawRecords& records, size_t i, Scratch* scratch) const {
    if (scores() || i != 0 || records.origin_line != 1) return false;
    if (SplitCsvLine(records[i], shape_.separator, &scratch->text, &scratch->values)) return false;
    return IsHeader(scratch->values);
  }

  MaybeBad DecodeRecord(const RawRecords& records, size_t i, Scratch* scratch, Batch* batch) const {
    const std::string_view line = records[i];
    if (line.empty()) return NoLine("the record is empty");
    if (shape_.columns.empty())
      return NoLine("the columns are not known: name them in source.csv.columns");
    if (MaybeBad reason = SplitCsvLine(line, shape_.separator, &scratch->text, &scratch->values))
      return reason;
    if (scratch->values.size() != shape_.columns.size())
      return NoLine(fmt::format("{} instead of {}", Counted(scratch->values.size(), "value"),
                                shape_.columns.size()));
    // Each line to score has an answer, and this one no score.
    if (scores() && IsHeader(scratch->values))
      return NoLine("it names the columns, and is no record");
    scratch->example.Start();
    SetConstants(shape_.constants, &scratch->example);
    scratch->own = {};
    if (shape_.label.empty()) scratch->own.label = kMetLabel;
    for (const CsvPart& part : parts_)
      if (const std::string_view value = scratch->values[part.index];
          !value.empty() && !IsMissing(shape_, part.part, value))
        if (MaybeBad reason = Set(part.part, value, scratch)) return reason;
    return AppendExample(records, i, scratch->own, scratch->example, options_, shape_.label, batch);
  }

 private:
  bool scores() const { return options_.label == LabelUse::kPassedOver; }
  bool IsHeader(const std::vector<std::string_view>& values) const {
    return shape_.header && std::ranges::equal(values, shape_.columns);
  }

  MaybeBad Set(const ShapePart& part, std::string_view value, Scratch* scratch) const {
    switch (part.kind) {
      case PartKind::kLabel:
        scratch->own.label = LabelOf(shape_.label_rule, value, NumberOf(value));
        if (scratch->own.label) return std::nullopt;
        return Wrong(part, WhyNoLabel(shape_.label_rule), BadPart::kLabel);
      case PartKind::kUser:
        scratch->own.user = value;
        return std::nullopt;
      case PartKind::kItem:
        if (options_.items) scratch->own.item = options_.items->Find(value);
        return std::nullopt;
      case PartKind::kEventId:
        scratch->own.event_id = value;
        return std::nullopt;
      case PartKind::kTime:
        scratch->own.timestamp_ms = ReadTime(value, shape_);
        if (scratch->own.timestamp_ms) return std::nullopt;
        return Wrong(part, WhyNoTime(value), BadPart::kTime);
      case PartKind::kWeight: {
        const auto weight = WeightOf(ReadNumber(value));
        if (!weight) return Wrong(part, "is no number of at least 0", BadPart::kField);
        scratch->own.weight = *weight;
        return std::nullopt;
      }
      case PartKind::kFeature:
        return SetFeature(part, value, scratch);
    }
    CheckFailed(__FILE__, __LINE__, "kind", "an unknown part");
  }

  // Programs write flags as words too.
  static std::optional<double> NumberOf(std::string_view value) {
    if (value == "true" || value == "True") return 1;
    if (value == "false" || value == "False") return 0;
    return ReadNumber(value);
  }

  MaybeBad SetFeature(const ShapePart& part, std::string_view value, Scratch* scratch) const {
    scratch->example.Tell(part.place);
    if (part.place.dense) {
      const auto number = NumberOf(value);
      if (!number) return Wrong(part, "is no number", BadPart::kField);
      scratch->example.SetNumber(part.place.index, *number);
      return std::nullopt;
    }
    if (!scratch->example.IsSet(part.place)) {
      scratch->example.SetValues(part.place.index, {&value, 1});
      return std::nullopt;
    }
    scratch->set.clear();
    for (size_t begin = 0; begin <= value.size();) {
      const size_t end = std::min(value.find(shape_.set_separator, begin), value.size());
      const std::string_view one = value.substr(begin, end - begin);
      if (!one.empty() && !IsMissing(shape_, part, one)) scratch->set.push_back(one);
      begin = end + 1;
    }
    scratch->example.SetValues(part.place.index, scratch->set);
    return std::nullopt;
  }

  static MaybeBad Wrong(const ShapePart& part, std::string_view what, BadPart of) {
    return BadRecord(fmt::format("{} (column '{}'): {}", part.name, part.where, what), of);
  }

  const FeatureTransform& transform_;
  const FeatureNames names_;
  const CsvShape shape_;
  const InteractionOptions options_;
  std::vector<CsvPart> parts_;
};

}  // namespace

MaybeBad SplitCsvLine(std::string_view line, char separator, std::string* text,
                      std::vector<std::string_view>* values) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  text->clear();
  text->reserve(line.size());  // so that the values' bytes stay where they are
  values->clear();
  for (size_t at = 0; at <= line.size();) {
    if (at == line.size() || line[at] != '"') {
      const size_t end = std::min(line.find(separator, at), line.size());
      values->push_back(line.substr(at, end - at));
      at = end + 1;
      continue;
    }
    const size_t begin = text->size();
    for (++at;; ++at) {
      const size_t quote = line.find('"', at);
      if (quote == line.npos)
        return NoLine(fmt::format("value {}: its quote is not closed (a record is one line)",
                                  values->size() + 1));
      text->append(line, at, quote - at);
      at = quote + 1;
      if (at == line.size() || line[at] != '"') break;
      text->push_back('"');
    }
    if (at < line.size() && line[at] != separator)
      return NoLine(
          fmt::format("value {}: something follows its closing quote", values->size() + 1));
    values->push_back(std::string_view(*text).substr(begin));
    ++at;
  }
  return std::nullopt;
}

Status CheckCsvShape(const CsvShape& shape, const FeatureSchema& schema) {
  for (const std::string& column : shape.columns)
    if (!column.empty() && std::ranges::count(shape.columns, column) > 1)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("source.csv.columns: '{}' is there twice", column));
  TACIT_RETURN_IF_ERROR(CheckShapeRules("source.csv", shape, schema));
  TACIT_ASSIGN([[maybe_unused]] const auto parts, CsvPartsOf(shape, FeatureNames(schema)));
  return {};
}

std::unique_ptr<Codec> MakeCsvCodec(const FeatureTransform& transform, CsvShape shape,
                                    const InteractionOptions& options) {
  return std::make_unique<CsvCodec>(transform, std::move(shape), options);
}

}  // namespace tacit::event
