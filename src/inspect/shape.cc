#include "inspect/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "event/csv_codec.h"
#include "event/run_codec.h"
#include "event/shape_rules.h"
#include "inspect/names.h"

namespace tacit::inspect {
namespace {

namespace json = boost::json;

constexpr size_t kJsonDepthMost = 8;
constexpr char kSetSeparator = '|';  // as source.csv.set_separator has it by default

std::string_view TrimmedLine(std::string_view line) {
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  while (!line.empty() && static_cast<unsigned char>(line.back()) <= ' ') line.remove_suffix(1);
  return line;
}

bool IsWhole(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.size() < 20 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// True for 1.234, and not for 0.123 or 12.50.
bool MayBeThousands(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const size_t point = text.find('.');
  return point >= 1 && point <= 3 && text.size() == point + 4 && text[0] != '0' &&
         IsWhole(text.substr(0, point)) && IsWhole(text.substr(point + 1));
}

tl::unexpected<Error> NoShape(const std::string& file, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", file, what));
}

std::vector<std::string> ValuesOf(std::string_view line, char separator) {
  std::string text;
  std::vector<std::string_view> values;
  if (event::SplitCsvLine(line, separator, &text, &values)) return {};
  return {values.begin(), values.end()};
}

// The number of values that most lines have with this separator; 0 where a tenth have another.
size_t ValuesAMost(const std::vector<std::string>& lines, char separator) {
  std::map<size_t, size_t> counts;
  size_t all = 0;
  for (const std::string& line : lines) {
    if (TrimmedLine(line).empty()) continue;
    ++counts[ValuesOf(line, separator).size()];
    ++all;
  }
  for (const auto& [values, count] : counts)
    if (values >= 2 && count * 10 >= all * 9) return values;
  return 0;
}

bool IsTime(std::string_view text) {
  return event::ReadRfc3339(text) || event::ReadDatetime(text, /*zone_minutes=*/0);
}

bool IsNumber(const std::string& value) { return event::ReadNumber(value).has_value(); }

// Returns true if a line is the header of the lines below it. Its values are names, and one column
// with values may have none. A value that its column has again, or a time above times, belongs to a
// record. So does a number, unless a name stands above numbers alone.
bool IsHeader(const std::vector<std::string>& values, std::span<const std::string> lines,
              char separator) {
  std::vector<uint8_t> filled(values.size()), has_words(values.size());
  for (const std::string& line : lines) {
    const std::vector<std::string> below = ValuesOf(line, separator);
    if (below.size() != values.size() || below == values) continue;
    for (size_t i = 0; i < values.size(); ++i) {
      if (below[i].empty()) continue;
      if (below[i] == values[i] || (IsTime(values[i]) && IsTime(below[i]))) return false;
      filled[i] = 1;
      if (!IsNumber(below[i])) has_words[i] = 1;
    }
  }
  size_t unnamed = 0, numbers = 0, above_numbers = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].empty())
      unnamed += filled[i];
    else if (IsNumber(values[i]))
      ++numbers;
    else if (filled[i] != 0 && has_words[i] == 0 && !StandsForNone(values[i]))
      ++above_numbers;
  }
  return unnamed <= 1 && (numbers == 0 || above_numbers > 0);
}

// Criteo's lines have no header: a label between tabs, whole numbers, and anything.
std::optional<Shape> CriteoShape(const std::vector<std::string>& lines, bool asked) {
  constexpr size_t kDense = 13, kCategorical = 26;
  size_t good = 0, its_own = 0, all = 0, columns = 0, dense = SIZE_MAX;
  for (const std::string& line : lines) {
    std::string_view rest = line;
    if (rest.ends_with('\r')) rest.remove_suffix(1);
    if (rest.empty()) continue;
    std::vector<std::string_view> values;
    for (size_t begin = 0; begin <= rest.size();) {
      const size_t end = std::min(rest.find('\t', begin), rest.size());
      values.push_back(rest.substr(begin, end - begin));
      begin = end + 1;
    }
    ++all;
    if (columns == 0 && values.size() > 1 && (values[0] == "0" || values[0] == "1"))
      columns = values.size();
    if (values.size() != columns || (values[0] != "0" && values[0] != "1")) continue;
    ++good;
    size_t whole = 0;
    while (1 + whole < columns && (values[1 + whole].empty() || IsWhole(values[1 + whole])))
      ++whole;
    dense = std::min(dense, whole);
    its_own += columns == 1 + kDense + kCategorical && whole >= kDense;
  }
  if (columns < 2 || good * 10 < all * 9) return std::nullopt;
  const bool criteos = its_own * 10 >= all * 9;
  if (!asked && !criteos) return std::nullopt;  // a flag may come first in any log
  Shape shape{.format = Format::kCriteoTsv, .separator = '\t', .header = false};
  // Hashed categories may be digits alone in a few lines.
  shape.dense = criteos ? kDense : dense;
  shape.categorical = columns - 1 - shape.dense;
  return shape;
}

Result<Shape> CsvShapeOf(const std::string& file, const std::vector<std::string>& lines) {
  Shape shape{.format = Format::kCsv, .separator = ',', .header = true};
  // A comma within numbers may divide the lines evenly too, but not the names above them.
  size_t most = 0;
  bool divides_first = false;
  for (const char separator : {',', ';', '\t', '|'}) {
    const size_t values = ValuesAMost(lines, separator);
    const bool first = values > 0 && ValuesOf(lines.front(), separator).size() == values;
    if (std::pair(first, values) <= std::pair(divides_first, most)) continue;
    most = values;
    divides_first = first;
    shape.separator = separator;
  }
  if (most == 0)
    return NoShape(file,
                   "has neither JSON lines nor lines of values: no separator (comma, semicolon, "
                   "tab, bar) divides nine lines in ten into equally many values");
  const auto first = std::ranges::find_if(lines, [&](const std::string& line) {
    return ValuesOf(line, shape.separator).size() == most;
  });
  // R writes the names of rows into a column that its header does not name.
  std::vector<std::string> names = ValuesOf(lines.front(), shape.separator);
  names.insert(names.begin(), "");
  if (first == lines.begin() + 1 && names.size() == most &&
      IsHeader(names, {first, lines.end()}, shape.separator))
    return NoShape(file, fmt::format("its first line has {} names, and the lines below have {} "
                                     "values: name each (in R: col.names = NA)",
                                     most - 1, most));
  shape.columns = ValuesOf(*first, shape.separator);
  shape.header = IsHeader(shape.columns, {first + 1, lines.end()}, shape.separator);
  if (shape.header && first != lines.begin())
    return NoShape(file, fmt::format("its line {} names the columns: remove the lines above it",
                                     first - lines.begin() + 1));
  if (shape.header) {
    for (const std::string& name : shape.columns) {
      if (!IsUtf8(name))
        return NoShape(file,
                       "its first line is not UTF-8; write the file as UTF-8 (iconv does it)");
      if (!name.empty() && std::ranges::count(shape.columns, name) > 1)
        return NoShape(
            file,
            fmt::format("its first line names '{}' twice; columns need different names", name));
    }
    return shape;
  }
  shape.first = lines.front().substr(0, kTextBytesMost);
  shape.columns.clear();
  for (size_t i = 1; i <= most; ++i) shape.columns.push_back(fmt::format("c{}", i));
  return shape;
}

}  // namespace

Result<Shape> ShapeOfLines(const std::string& file, const std::vector<std::string>& lines,
                           std::optional<Format> asked) {
  size_t objects = 0, arrays = 0, all = 0;
  for (const std::string& line : lines) {
    const std::string_view text = TrimmedLine(line);
    if (text.empty()) continue;
    ++all;
    objects += text.starts_with('{') ? 1 : 0;
    arrays += text.starts_with('[') ? 1 : 0;
  }
  if (all == 0) return NoShape(file, "has empty lines only");
  if (asked == Format::kJson || (!asked && objects * 2 > all))
    return Shape{.format = Format::kJson};
  if (!asked && arrays > 0 && TrimmedLine(lines.front()).starts_with('['))
    return NoShape(file, "is one JSON array; a log has an object a line");
  if (!asked && TrimmedLine(lines.front()) == "{")
    return NoShape(file, "is JSON that goes over several lines; a log has an object a line");
  if (asked != Format::kCsv)
    if (auto criteo = CriteoShape(lines, asked == Format::kCriteoTsv)) {
      const std::vector<std::string> first = ValuesOf(lines[0], '\t');
      if (first.size() != 1 + criteo->dense + criteo->categorical ||
          !IsHeader(first, {lines.begin() + 1, lines.end()}, '\t'))
        return *criteo;
      if (asked)
        return NoShape(file,
                       "its first line names the columns, and Criteo's form has no such line: "
                       "remove it, or ask for --format csv");
    }
  if (asked == Format::kCriteoTsv)
    return NoShape(file,
                   "is not of Criteo's form: a label of 0 or 1, whole numbers and categories, with "
                   "tabs between them and equally many in each line");
  return CsvShapeOf(file, lines);
}

// Puts one value into a column, at the row that is being read.
struct Splitter::Filler {
  Splitter& splitter;
  Sample& sample;

  // Returns null where no further column is looked at.
  Column* At(const std::string& place, std::string_view name) {
    const auto known = splitter.by_place_.find(place);
    if (known != splitter.by_place_.end()) return &sample.columns[known->second];
    if (splitter.places_given_) return nullptr;
    if (sample.columns.size() == kColumnsMost) {
      if (!std::exchange(splitter.left_out_, true))
        sample.notes.push_back(
            fmt::format("only the first {} different fields are looked at; are values used as "
                        "keys?",
                        WithThousands(kColumnsMost)));
      return nullptr;
    }
    splitter.by_place_.emplace(place, sample.columns.size());
    sample.columns.push_back({.name = std::string(name), .place = place});
    return &sample.columns.back();
  }

  static void Keep(Column* column, uint64_t row, uint32_t code, std::string_view text) {
    column->code.resize(row, 0);
    column->code.push_back(code);
    if (!column->texts.contains(code) && (column->texts.size() < kTextsMost || StandsForNone(text)))
      column->texts.emplace(code, text.substr(0, kTextBytesMost));
  }
  static void KeepNumber(Column* column, uint64_t row, double number) {
    column->number.resize(row, NAN);
    column->number.push_back(number);
  }
  void KeepElement(Column* column, std::string_view text) const {
    const uint32_t code = CodeOfValue(text);
    if (column->elements.size() < kElementsMost) column->elements.insert(code);
    if (column->element_of_row.size() < kPairsMost)
      column->element_of_row.emplace_back(static_cast<uint32_t>(sample.rows), code);
  }

  // Takes a text: a number in quotes, a time, a set or a word.
  void Text(Column* column, uint64_t row, std::string_view text, bool quotes) {
    if (text.empty()) return;
    if (const auto number = event::ReadNumber(text)) {
      // Tables of floats write 123 as 123.0 and 1e+05.
      const bool whole = *number == std::floor(*number) && std::abs(*number) < 0x1p63;
      ++(whole ? column->integers : column->fractions);
      column->quoted += quotes ? 1 : 0;
      column->thousands += !whole && MayBeThousands(text) ? 1 : 0;
      KeepNumber(column, row, *number);
    } else if (!quotes &&
               (text == "true" || text == "false" || text == "True" || text == "False")) {
      ++column->flags;
      KeepNumber(column, row, text[0] == 't' || text[0] == 'T' ? 1 : 0);
    } else {
      ++column->words;
      if (const auto time = event::ReadRfc3339(text)) {
        ++column->times;
        KeepNumber(column, row, static_cast<double>(*time));
      } else if (const auto local = DatetimeOf(text)) {
        ++column->datetimes;
        KeepNumber(column, row, static_cast<double>(*local));
      } else if (text.find(kSetSeparator) != text.npos) {
        Set(column, text);
      }
    }
    Keep(column, row, CodeOfValue(text), text);
  }

  std::optional<int64_t> DatetimeOf(std::string_view text) const {
    if (!splitter.finds_datetimes_) return std::nullopt;
    return event::ReadDatetime(text, /*zone_minutes=*/0);
  }

  void Set(Column* column, std::string_view text) {
    ++column->barred;
    size_t size = 0;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(kSetSeparator, begin), text.size());
      if (end > begin && size < splitter.elements_most_) {
        KeepElement(column, text.substr(begin, end - begin));
        ++size;
      }
      begin = end + 1;
    }
    column->list_most = std::max(column->list_most, size);
  }

  void Scalar(Column* column, uint64_t row, const json::value& value) {
    if (value.is_string()) return Text(column, row, value.get_string(), /*quotes=*/true);
    if (value.is_bool()) {
      ++column->flags;
      KeepNumber(column, row, value.get_bool() ? 1 : 0);
      return Keep(column, row, value.get_bool() ? 2 : 1, value.get_bool() ? "true" : "false");
    }
    const auto number = value.to_number<double>();
    ++(value.is_double() ? column->fractions : column->integers);
    KeepNumber(column, row, number);
    const bool zero = value.is_double() && number == std::floor(number) && std::abs(number) < 1e15;
    column->zeros += zero ? 1 : 0;
    const std::string text = zero                ? fmt::format("{:.1f}", number)  // "12.0"
                             : value.is_double() ? fmt::format("{}", number)
                                                 : json::serialize(value);
    Keep(column, row, CodeOfValue(text), text);
  }

  void List(Column* column, uint64_t row, const json::array& array) {
    std::string all;
    size_t size = 0;
    for (const json::value& element : array) {
      if (element.is_object() || element.is_array()) {
        ++column->nested;
        return Keep(column, row, 1, "");
      }
      const std::string text =
          element.is_string() ? std::string(element.get_string()) : json::serialize(element);
      if (size++ < splitter.elements_most_) KeepElement(column, text);
      all += text + '\n';
    }
    ++column->lists;
    column->list_most = std::max(column->list_most, array.size());
    Keep(column, row, CodeOfValue(all), "");
  }

  void Object(const json::object& object, const std::string& place, size_t depth) {
    const uint64_t row = sample.rows;
    for (const auto& [key, value] : object) {
      if (value.is_null()) continue;
      std::string below = place + '/';
      for (const char c : std::string_view(key))
        below += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
      if (value.is_object() && depth < kJsonDepthMost && !value.get_object().empty()) {
        Object(value.get_object(), below, depth + 1);
        continue;
      }
      Column* column = At(below, key);
      if (column == nullptr || column->code.size() > row) continue;
      if (value.is_array()) {
        List(column, row, value.get_array());
      } else if (value.is_object()) {
        ++column->nested;
        Keep(column, row, 1, "");
      } else {
        Scalar(column, row, value);
      }
    }
  }
};

uint32_t CodeOfValue(std::string_view text) {
  const auto code = static_cast<uint32_t>(BucketHash(text, 0) >> 32);
  return code == 0 ? 1 : code;
}

Splitter::Splitter(Sample* sample, const std::vector<std::string>* places) : sample_(*sample) {
  const Shape& shape = sample_.shape;
  if (places != nullptr && shape.format == Format::kJson) {
    places_given_ = true;
    for (const std::string& place : *places) {
      by_place_.emplace(place, sample_.columns.size());
      sample_.columns.push_back({.name = place.substr(place.rfind('/') + 1), .place = place});
    }
  }
  if (shape.format == Format::kCriteoTsv) {
    sample_.columns.push_back({.name = "label", .place = "label"});
    for (size_t i = 1; i <= shape.dense; ++i)
      sample_.columns.push_back({.name = fmt::format("I{}", i), .place = fmt::format("I{}", i)});
    for (size_t i = 1; i <= shape.categorical; ++i)
      sample_.columns.push_back({.name = fmt::format("C{}", i), .place = fmt::format("C{}", i)});
  }
  if (shape.format == Format::kCsv)
    for (const std::string& name : shape.columns)
      sample_.columns.push_back({.name = name, .place = name});
}

std::optional<std::string> Splitter::Append(std::string_view line) {
  if (TrimmedLine(line).empty()) return "the record is empty";
  return sample_.shape.format == Format::kJson ? AppendJson(line) : AppendValues(line);
}

std::optional<std::string> Splitter::AppendJson(std::string_view line) {
  json::error_code error;
  const json::value value = json::parse(TrimmedLine(line), error);
  if (error) return fmt::format("no valid JSON: {}", error.message());
  if (!value.is_object()) return "no JSON object";
  Filler{*this, sample_}.Object(value.get_object(), "", 0);
  return std::nullopt;
}

std::optional<std::string> Splitter::AppendValues(std::string_view line) {
  values_.clear();
  if (sample_.shape.format == Format::kCsv) {
    if (const auto bad = event::SplitCsvLine(line, sample_.shape.separator, &text_, &values_))
      return bad->reason;
  } else {
    if (line.ends_with('\r')) line.remove_suffix(1);
    for (size_t begin = 0; begin <= line.size();) {
      const size_t end = std::min(line.find('\t', begin), line.size());
      values_.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  if (values_.size() != sample_.columns.size())
    return fmt::format("{} instead of {}", Counted(values_.size(), "value"),
                       sample_.columns.size());
  Filler walk{*this, sample_};
  for (size_t i = 0; i < values_.size(); ++i)
    walk.Text(&sample_.columns[i], sample_.rows, values_[i], /*quotes=*/false);
  return std::nullopt;
}

std::optional<std::string> TextAt(const Shape& shape, std::string_view line,
                                  const std::string& place) {
  if (shape.format == Format::kJson) {
    json::error_code error;
    const json::value value = json::parse(TrimmedLine(line), error);
    if (error || !value.is_object()) return std::nullopt;
    const json::value* found = value.find_pointer(place, error);
    if (error || found == nullptr || found->is_null() || found->is_structured())
      return std::nullopt;
    return found->is_string() ? std::string(found->get_string()) : json::serialize(*found);
  }
  if (shape.format != Format::kCsv) return std::nullopt;
  const auto column = std::ranges::find(shape.columns, place);
  const std::vector<std::string> values = ValuesOf(line, shape.separator);
  if (values.size() != shape.columns.size() || column == shape.columns.end()) return std::nullopt;
  return values[static_cast<size_t>(column - shape.columns.begin())];
}

void Splitter::Finish() {
  for (Column& column : sample_.columns) {
    column.code.resize(sample_.rows, 0);
    if (!column.number.empty()) column.number.resize(sample_.rows, NAN);
  }
}

}  // namespace tacit::inspect
