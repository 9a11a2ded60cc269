#include "inspect/private_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "base/text.h"
#include "event/csv_codec.h"
#include "inspect/shape.h"

namespace tacit::inspect {
namespace {

// The published form of Criteo's lines.
constexpr size_t kCriteoDense = 13, kCriteoCategorical = 26;

tl::unexpected<Error> NotAsSaid(const std::string& file, std::string what) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", file, std::move(what)));
}

// The names of a file's first line, if all fields are among them with this separator.
std::optional<std::vector<std::string>> HeaderWith(std::string_view line, char separator,
                                                   const std::vector<std::string>& fields) {
  std::string text;
  std::vector<std::string_view> values;
  if (event::SplitCsvLine(line, separator, &text, &values)) return std::nullopt;
  std::vector<std::string> names(values.begin(), values.end());
  for (const std::string& field : fields)
    if (std::ranges::count(names, field) != 1) return std::nullopt;
  return names;
}

Result<Shape> CsvAsSaid(const Records& records, size_t part,
                        const std::vector<std::string>& fields) {
  const std::string& file = records.parts()[part];
  std::string first;
  TACIT_RETURN_IF_ERROR(records.ForEach(part, [&](const Record& record) {
    first = record.text;
    return false;
  }));
  if (first.ends_with('\r')) first.pop_back();
  for (const char separator : {',', ';', '\t', '|'})
    if (auto names = HeaderWith(first, separator, fields))
      return Shape{.format = Format::kCsv,
                   .separator = separator,
                   .header = true,
                   .columns = std::move(*names)};
  return NotAsSaid(file, fmt::format("its first line is no header that names {}, each once (comma, "
                                     "semicolon, tab or bar between names)",
                                     fmt::join(fields, ", ")));
}

// Counts lines over all files, says which are looked at, and bounds how many a user has of them.
class Walk {
 public:
  Walk(const PrivateLook& look, const Shape& shape) : look_(look), shape_(shape) {}

  // Calls use(line, text, user) for each line that counts; `text` is empty where the line cannot be
  // read, and `user` is the number of its user, 0 of unit event.
  // A blank line is no record, and neither is a topic's null. They count nothing, as a record that
  // was nulled would.
  template <class Use>
  Status ForEach(const Use& use) {
    for (size_t part = 0; part < look_.records->parts().size(); ++part) {
      if (look_.records->topic() == nullptr) offsets_of_file_.push_back(0);
      TACIT_RETURN_IF_ERROR(look_.records->ForEach(part, [&](const Record& record) {
        if (!offsets_of_file_.empty()) offsets_of_file_.back() = static_cast<double>(record.number);
        if (shape_.format == Format::kCsv && record.number == 1) return true;
        const uint64_t place = all_lines_++;
        if (place >= look_.rows_most) return true;
        const bool blank =
            record.is_null ||
            (record.fault.empty() && record.text.find_first_not_of(" \t\r\n") == record.text.npos);
        const std::string_view text = record.fault.empty() ? record.text : std::string_view();
        if (blank) return true;
        if (const auto user = UserOf(text)) use(place, text, *user);
        return true;
      }));
    }
    all_lines_ += look_.records->places_beyond();
    return {};
  }
  uint64_t all_lines() const { return all_lines_; }
  const std::vector<double>& offsets_of_file() const { return offsets_of_file_; }

 private:
  struct User {
    uint32_t number = 0;
    uint64_t records = 0;
  };

  // Returns the user's number if the record counts: one of unit user does while its user has not
  // had all of theirs, and never without a user.
  std::optional<uint32_t> UserOf(std::string_view text) {
    if (look_.unit == privacy::Unit::kEvent) return 0;
    const auto name = TextAt(shape_, text, look_.user);
    if (!name || name->empty()) return std::nullopt;
    User& user = users_.try_emplace(*name, User{.number = static_cast<uint32_t>(users_.size() + 1)})
                     .first->second;
    if (user.records++ >= look_.user_records) return std::nullopt;
    return user.number;
  }

  const PrivateLook& look_;
  const Shape& shape_;
  uint64_t all_lines_ = 0;
  std::vector<double> offsets_of_file_;
  std::unordered_map<std::string, User> users_;
};

}  // namespace

Result<Shape> ShapeAsSaid(const PrivateLook& look) {
  switch (look.format) {
    case Format::kJson:
      return Shape{.format = Format::kJson};
    case Format::kCriteoTsv:
      return Shape{.format = Format::kCriteoTsv,
                   .separator = '\t',
                   .header = false,
                   .dense = kCriteoDense,
                   .categorical = kCriteoCategorical};
    case Format::kCsv:
      break;
  }
  Shape shape;
  const std::vector<std::string>& files = look.records->parts();
  for (size_t part = 0; part < files.size(); ++part) {
    TACIT_ASSIGN(Shape own, CsvAsSaid(*look.records, part, look.fields));
    if (part == 0)
      shape = std::move(own);
    else if (own.columns != shape.columns || own.separator != shape.separator)
      return NotAsSaid(files[part],
                       fmt::format("its header is another one than that of {}", files.front()));
  }
  return shape;
}

Result<std::vector<std::pair<std::string, double>>> CountFields(const PrivateLook& look) {
  std::map<std::string, double> counts;
  const Shape shape{.format = Format::kJson};
  Walk walk(look, shape);
  TACIT_RETURN_IF_ERROR(walk.ForEach([&](uint64_t, std::string_view text, uint32_t) {
    Sample one;
    one.shape = shape;
    Splitter splitter(&one);
    if (splitter.Append(text)) return;
    const size_t fields = std::min(one.columns.size(), kFieldsOfRecordMost);
    for (size_t i = 0; i < fields; ++i) counts[one.columns[i].place] += 1;
  }));
  return std::vector<std::pair<std::string, double>>(counts.begin(), counts.end());
}

Result<PrivateSample> ReadPrivately(const PrivateLook& look, const Shape& shape,
                                    const std::vector<std::string>& places) {
  PrivateSample read;
  Sample& sample = read.sample;
  sample.records = look.records;
  sample.files = look.records->origins();
  sample.shape = shape;
  Splitter splitter(&sample, &places);
  splitter.BoundElements(kElementsOfRecordMost);
  splitter.PassOverDatetimes();  // no noised count tells them from times with a zone
  std::unordered_set<uint64_t> distinct;
  Walk walk(look, shape);
  TACIT_RETURN_IF_ERROR(walk.ForEach([&](uint64_t place, std::string_view text, uint32_t user) {
    read.is_kept.resize(place, 0);
    read.is_kept.push_back(1);
    ++read.kept;
    if (text.empty()) return;
    distinct.insert(BucketHash(text, 0));
    if (splitter.Append(text)) return;
    read.line_of.push_back(place);
    if (look.unit == privacy::Unit::kUser) read.user_of.push_back(user);
    ++sample.rows;
  }));
  splitter.Finish();
  read.all_lines = walk.all_lines();
  sample.offsets_of_file = walk.offsets_of_file();
  read.lines = std::min(read.all_lines, look.rows_most);
  read.is_kept.resize(read.lines, 0);
  read.distinct_lines = distinct.size();
  // Columns that nobody named are not looked at.
  if (shape.format == Format::kCsv)
    std::erase_if(sample.columns, [&](const Column& column) {
      return std::ranges::find(places, column.place) == places.end();
    });
  return read;
}

}  // namespace tacit::inspect
