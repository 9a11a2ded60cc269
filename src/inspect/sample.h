#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "inspect/records.h"

// A sample of log files or of a topic, column by column, as `tacit inspect` looks at it. All of it
// is raw.
namespace tacit::inspect {

enum class Format : uint8_t { kCriteoTsv, kJson, kCsv };
// The names are those of source.format.
std::string_view NameOf(Format format);

// Records that cannot be read for one reason: how many there are, and the first of them.
struct Complaint {
  uint64_t count = 0;
  std::string file, reason;
  uint64_t line = 0;
};

// Complaints by their reason. Two reasons that differ in a quoted value or in a number are one.
class Complaints {
 public:
  void Add(std::string_view file, uint64_t line, std::string_view reason);
  uint64_t total() const { return total_; }
  // The most frequent first.
  std::vector<Complaint> List() const;

 private:
  std::map<std::string, Complaint> by_kind_;
  uint64_t total_ = 0;
};

// One field of the records. A value is known by a hash of 32 bits, which keeps a sample small:
// among 200,000 values some five share theirs with another.
struct Column {
  std::string name;   // for people: the last key of a JSON pointer, or a column's name
  std::string place;  // the JSON pointer, or the column's name
  std::vector<uint32_t> code = {};  // per record; 0: missing
  std::vector<double> number = {};  // per record, NaN where it is none; if empty, none is
  // Values by the form in which they are written.
  uint64_t integers = 0, fractions = 0, words = 0, flags = 0, lists = 0, nested = 0;
  uint64_t quoted = 0;     // numbers that JSON has in quotes, among the above
  uint64_t thousands = 0;  // fractions of three digits behind one to three, as in 1.234
  uint64_t zeros = 0;      // fractions of JSON that are 12.0, say
  uint64_t times = 0;      // words that are times by RFC 3339; their number is in milliseconds
  uint64_t datetimes = 0;  // words that are times without a zone; the same, as if in UTC
  uint64_t barred = 0;     // words with a set's separator between their parts
  size_t list_most = 0;    // values of the longest list, or set
  std::unordered_set<uint32_t> elements = {};  // of lists and sets, up to kElementsMost
  std::vector<std::pair<uint32_t, uint32_t>> element_of_row = {};  // row, element; kPairsMost
  // The first kTextsMost different values, and the later ones that stand for none; each is cut
  // after kTextBytesMost.
  std::map<uint32_t, std::string> texts = {};

  uint64_t present() const { return integers + fractions + words + flags + lists + nested; }
  uint64_t numbers() const { return integers + fractions; }
  // Returns the column's text of a value, as far as it was kept; "" otherwise.
  std::string TextOf(uint32_t value) const;
};
inline constexpr size_t kElementsMost = 1 << 16, kPairsMost = 1 << 22, kTextsMost = 64,
                        kTextBytesMost = 200;

// The form of the lines.
struct Shape {
  Format format = Format::kJson;
  char separator = ',';                   // csv
  bool header = true;                     // csv: the first line of each file names the columns
  std::vector<std::string> columns = {};  // csv
  std::string first = {};                 // csv without a header: the first line
  size_t dense = 0, categorical = 0;      // criteo_tsv: columns behind the label
};

struct Sample {
  std::shared_ptr<const Records> records;  // null in tests, which make the columns themselves
  std::vector<std::string> files;          // the records' origins
  Shape shape;
  std::vector<Column> columns;        // all of `rows` values
  uint64_t lines = 0;                 // looked at, headers not among them
  uint64_t rows = 0;                  // those that could be split into fields
  std::vector<uint64_t> line_of_row;  // or the offset
  std::vector<uint32_t> file_of_row;  // its place in `files`
  std::vector<uint32_t> key_of_row;   // of a topic: the key's code, 0 where there is none
  Complaints complaints;              // about lines that could not be split
  uint64_t repeats = 0;               // lines that are there before, byte for byte
  bool whole = false;                 // there are no more lines
  double lines_in_all = 0;            // of all files, by their sizes
  // Lines of each file, headers among them, by its size where it was not read whole; none of a
  // topic. tacitd counts periods in these.
  std::vector<double> offsets_of_file = {};
  std::vector<std::string> notes;
  double now_ms = 0;  // when it was read; 0: not known
  // The noise on the counts, for people; if empty, the sample is raw.
  std::string noised = {};

  // The column of this place; nothing if there is none.
  std::optional<size_t> ColumnAt(std::string_view place) const;
  // "FILE:LINE" of a row.
  std::string PlaceOf(uint64_t row) const;
  // As source.format has it.
  std::string_view format_name() const;
  const TopicFound* topic() const { return records == nullptr ? nullptr : records->topic(); }
};

struct SampleOptions {
  std::optional<Format> format;  // nothing if it follows from the first lines
  uint64_t rows_most = 200'000;
  double now_ms = 0;  // of the caller's clock; 0: no time is judged by it
};

// Fails where a file is missing, or is there twice under two names: its records would count twice.
Status CheckFiles(const std::vector<std::string>& files);

// Reads the first records, in their order; the first lines of each file are looked at in any case.
// Fails where a file is missing, there twice or a copy, empty, binary, of no format that is known,
// or of another format than the first, and where a topic's values are; the message names which.
Result<Sample> ReadSample(std::shared_ptr<const Records> records, const SampleOptions& options);
// The same of files.
Result<Sample> ReadSample(const std::vector<std::string>& files, const SampleOptions& options);

}  // namespace tacit::inspect
