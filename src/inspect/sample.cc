#include "inspect/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "base/text.h"
#include "inspect/shape.h"
#include "inspect/topic_records.h"
#include "stream/log/copies.h"
#include "stream/log/input_file.h"

namespace tacit::inspect {
namespace {

// Bounds the sample's memory: 12 bytes a cell at most.
constexpr uint64_t kCellsMost = uint64_t{1} << 25;

// Leaves out what differs between two complaints of one kind.
std::string KindOf(std::string_view reason) {
  std::string kind;
  for (size_t i = 0; i < reason.size(); ++i) {
    const char c = reason[i];
    if (c == '\'') {
      const size_t end = reason.find('\'', i + 1);
      if (end != reason.npos) i = end;
      kind += '\'';
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      if (!kind.ends_with('#')) kind += '#';
    } else {
      kind += c;
    }
  }
  return kind;
}

std::string PartName(const Records& records, size_t part) {
  return records.topic() == nullptr ? records.parts()[part]
                                    : fmt::format("topic '{}'", records.parts()[part]);
}

// Reads the first lines of a file, or records of a topic, and refuses what is no text.
Result<std::vector<std::string>> FirstLines(const Records& records, size_t part) {
  std::vector<std::string> lines;
  size_t bytes = 0, odd = 0;
  const bool of_topic = records.topic() != nullptr;
  std::string fault;
  TACIT_RETURN_IF_ERROR(records.ForEach(part, [&](const Record& record) {
    if (!record.fault.empty()) {
      if (fault.empty()) fault = record.fault;
      return lines.size() < kLinesLookedAt;
    }
    for (const char c : record.text) {
      const auto byte = static_cast<unsigned char>(c);
      const bool space = byte == '\t' || byte == '\r' || (of_topic && byte == '\n');
      odd += byte == 0 || (byte < 0x20 && !space) ? 1 : 0;
    }
    bytes += record.text.size();
    lines.emplace_back(record.text);
    return lines.size() < kLinesLookedAt;
  }));
  const auto refuse = [&](std::string_view what) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", PartName(records, part), what));
  };
  if (of_topic && bytes == 0)
    return refuse(lines.empty() && !fault.empty()
                      ? fmt::format("no record that is looked at can be read: {}", fault)
                      : "its records are empty");
  if (of_topic && odd * 100 > bytes)
    return refuse(
        "its values are binary, of Avro or Protobuf say: JSON, Criteo's lines and lines of values "
        "are looked at, and Avro with --registry. tacitd learns from Protobuf of "
        "schemas/interaction.proto too; write its "
        "configuration by config/kafka.yaml");
  if (lines.empty() && !fault.empty())
    return refuse(fmt::format("no line that is looked at can be read: {}", fault));
  if (lines.empty() || bytes == 0) return refuse("is empty: there is no record to look at");
  const std::string& first = lines.front();
  if (first.starts_with("PAR1")) return refuse("is Parquet, which is not read; write it as CSV");
  if (first.starts_with("Obj\x01"))
    return refuse("is an Avro container file, and the first file is none: a source has one format");
  if (first.starts_with("PK\x03\x04")) return refuse("is a zip archive or a spreadsheet");
  if (first.starts_with("\xff\xfe") || first.starts_with("\xfe\xff"))
    return refuse("is UTF-16, which is not read; write it as UTF-8");
  if (!of_topic && lines.size() == 1 && first.find('\r') < first.size() - 1)
    return refuse("has lines that end in a carriage return alone; write line feeds");
  // A log has hardly any control characters, and what is packed or compiled has many.
  if (odd * 100 > bytes) return refuse("is binary: a log has a record a line, as text");
  return lines;
}

std::string Words(const Shape& shape) {
  switch (shape.format) {
    case Format::kJson:
      return "JSON lines";
    case Format::kCsv:
      return fmt::format(
          "{} values between '{}'", shape.columns.size(),
          shape.separator == '\t' ? std::string("\\t") : std::string(1, shape.separator));
    case Format::kCriteoTsv:
      return fmt::format("Criteo's columns, {} of them", 1 + shape.dense + shape.categorical);
  }
  return "";
}

// All files must have the first one's shape: a source has one format.
Status CheckSameShape(const std::string& first, const Shape& shape, const std::string& file,
                      const Shape& other) {
  const auto refuse = [&](std::string what) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", file, what));
  };
  if (Words(other) != Words(shape) || other.header != shape.header)
    return refuse(
        fmt::format("has {}{}, and {} has {}{}: a source has one format; look at them apart",
                    Words(other), other.header ? "" : " without a header", first, Words(shape),
                    shape.header ? "" : " without a header"));
  if (!shape.header || shape.format != Format::kCsv) return {};
  for (size_t i = 0; i < shape.columns.size(); ++i)
    if (shape.columns[i] != other.columns[i])
      return refuse(
          fmt::format("column {} is called '{}', and in {} it is '{}'; files of one "
                      "source begin with the same line",
                      i + 1, other.columns[i], first, shape.columns[i]));
  return {};
}

class Sampler {
 public:
  Sampler(Sample* sample, const SampleOptions& options)
      : sample_(*sample), options_(options), splitter_(sample) {}

  Status Read() {
    const Records& records = *sample_.records;
    double read = 0, left = 0;  // parts, by what was shown of them
    for (size_t part = 0; part < records.parts().size(); ++part) {
      if (full_) {
        left += 1;
        continue;
      }
      double share = 0;
      uint64_t number = 0;
      TACIT_RETURN_IF_ERROR(records.ForEach(
          part,
          [&](const Record& record) {
            number = record.number;
            return Take(record);
          },
          &share));
      if (records.topic() == nullptr)
        sample_.offsets_of_file.push_back(static_cast<double>(number) / std::max(share, 1e-9));
      read += share;
      left += 1 - share;
    }
    splitter_.Finish();
    sample_.whole = left <= 0 && !full_;
    // Files that were not begun count as long as those that were read are on the average.
    if (!sample_.offsets_of_file.empty()) {
      std::vector<double>& offsets = sample_.offsets_of_file;
      const double mean =
          std::reduce(offsets.begin(), offsets.end()) / static_cast<double>(offsets.size());
      offsets.resize(records.parts().size(), mean);
    }
    sample_.lines_in_all = static_cast<double>(sample_.lines) * (1 + left / std::max(read, 1e-9));
    return {};
  }

 private:
  bool Take(const Record& record) {
    const Shape& shape = sample_.shape;
    if (shape.format == Format::kCsv && shape.header && record.number == 1) return true;
    if (sample_.lines >= options_.rows_most || Cells() > kCellsMost) {
      if (Cells() > kCellsMost)
        sample_.notes.push_back(
            fmt::format("the sample ends after {} records: more of {} would "
                        "take too much memory",
                        WithThousands(sample_.lines), Counted(sample_.columns.size(), "field")));
      full_ = true;
      return false;
    }
    ++sample_.lines;
    if (!record.fault.empty()) {
      sample_.complaints.Add(record.origin, record.number, record.fault);
      return true;
    }
    if (!lines_.insert(BucketHash(record.text, 0)).second) ++sample_.repeats;
    if (const auto reason = splitter_.Append(record.text)) {
      sample_.complaints.Add(record.origin, record.number, *reason);
      return true;
    }
    sample_.line_of_row.push_back(record.number);
    sample_.file_of_row.push_back(record.origin_index);
    if (sample_.topic() != nullptr) sample_.key_of_row.push_back(record.key_code);
    ++sample_.rows;
    return true;
  }

  uint64_t Cells() const { return sample_.rows * sample_.columns.size(); }

  Sample& sample_;
  const SampleOptions& options_;
  Splitter splitter_;
  std::unordered_set<uint64_t> lines_;
  bool full_ = false;
};

}  // namespace

std::string_view NameOf(Format format) {
  static constexpr std::string_view kNames[] = {"criteo_tsv", "json", "csv"};
  return kNames[static_cast<size_t>(format)];
}

void Complaints::Add(std::string_view file, uint64_t line, std::string_view reason) {
  ++total_;
  Complaint& complaint = by_kind_[KindOf(reason)];
  if (++complaint.count > 1) return;
  complaint.file = file;
  complaint.line = line;
  complaint.reason = reason;
}

std::vector<Complaint> Complaints::List() const {
  std::vector<Complaint> list;
  for (const auto& [kind, complaint] : by_kind_) list.push_back(complaint);
  std::ranges::stable_sort(list, std::greater(), &Complaint::count);
  return list;
}

std::string Column::TextOf(uint32_t value) const {
  const auto text = texts.find(value);
  return text == texts.end() ? "" : text->second;
}

std::optional<size_t> Sample::ColumnAt(std::string_view place) const {
  const auto found = std::ranges::find(columns, place, &Column::place);
  if (found == columns.end()) return std::nullopt;
  return static_cast<size_t>(found - columns.begin());
}

std::string_view Sample::format_name() const {
  return records != nullptr && records->are_avro() ? "avro" : NameOf(shape.format);
}

std::string Sample::PlaceOf(uint64_t row) const {
  if (row >= line_of_row.size()) return "";
  return fmt::format("{}:{}", files[file_of_row[row]], line_of_row[row]);
}

Status CheckFiles(const std::vector<std::string>& files) {
  std::map<stream::InputFile::Inode, std::string> seen;
  for (const std::string& file : files) {
    TACIT_ASSIGN(const auto opened, stream::InputFile::Open(file));
    const auto [first, fresh] = seen.emplace(opened->inode(), file);
    if (!fresh)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: is the same file as {}", file, first->second));
  }
  return {};
}

Result<Sample> ReadSample(std::shared_ptr<const Records> records, const SampleOptions& options) {
  if (records->topic() == nullptr) {
    TACIT_RETURN_IF_ERROR(CheckFiles(records->origins()));
    TACIT_RETURN_IF_ERROR(stream::CheckNoCopies(records->origins()));
  }
  Sample sample;
  sample.now_ms = options.now_ms;
  sample.files = records->origins();
  for (size_t part = 0; part < records->parts().size(); ++part) {
    const std::string name = PartName(*records, part);
    TACIT_ASSIGN(const std::vector<std::string> lines, FirstLines(*records, part));
    TACIT_ASSIGN(Shape shape, ShapeOfLines(name, lines, options.format));
    if (part == 0)
      sample.shape = std::move(shape);
    else
      TACIT_RETURN_IF_ERROR(CheckSameShape(PartName(*records, 0), sample.shape, name, shape));
  }
  // A file that was sent to a topic line by line brings its header along, as a record.
  if (sample.shape.format == Format::kCsv && sample.shape.header && !records->may_have_headers()) {
    sample.shape.header = false;
    sample.notes.emplace_back(
        "the first record is a line of columns' names: the columns are called so, and such a "
        "record becomes a dead letter");
  }
  sample.records = std::move(records);
  Sampler sampler(&sample, options);
  TACIT_RETURN_IF_ERROR(sampler.Read());
  return sample;
}

Result<Sample> ReadSample(const std::vector<std::string>& files, const SampleOptions& options) {
  return ReadSample(RecordsOfFiles(files), options);
}

}  // namespace tacit::inspect
