#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "inspect/sample.h"

namespace tacit::inspect {

// Lines at the beginning of a file by which its form is told.
inline constexpr size_t kLinesLookedAt = 200;

// Tells the form of a file by its first lines. Fails where there is none that is known; the message
// says what the file seems to be.
Result<Shape> ShapeOfLines(const std::string& file, const std::vector<std::string>& lines,
                           std::optional<Format> asked);

// Splits lines of one shape into the columns of a sample. Not thread-safe.
class Splitter {
 public:
  // `sample->shape` is set. Adds its columns, as far as the shape names them. Of JSON records it
  // adds those at `places` alone, each whether a record has it or not; if null, all that occur.
  explicit Splitter(Sample* sample, const std::vector<std::string>* places = nullptr);
  // Looks at the first `most` values of a list or set.
  void BoundElements(size_t most) { elements_most_ = most; }
  // Takes times without a zone for texts.
  void PassOverDatetimes() { finds_datetimes_ = false; }
  // Appends a row, or returns the reason why the line is none.
  std::optional<std::string> Append(std::string_view line);
  // Makes all columns equally long.
  void Finish();

 private:
  struct Filler;

  std::optional<std::string> AppendJson(std::string_view line);
  std::optional<std::string> AppendValues(std::string_view line);

  Sample& sample_;
  std::unordered_map<std::string, size_t> by_place_;
  bool places_given_ = false;
  bool finds_datetimes_ = true;
  size_t elements_most_ = SIZE_MAX;
  std::string text_;
  std::vector<std::string_view> values_;
  bool left_out_ = false;  // a column beyond the most that are looked at
};

// The code of a value's text, as columns have it.
uint32_t CodeOfValue(std::string_view text);

// Returns the text of the value at a place of a line; nothing where there is none, or no text,
// number or flag.
std::optional<std::string> TextAt(const Shape& shape, std::string_view line,
                                  const std::string& place);

// Columns that are looked at, at most.
inline constexpr size_t kColumnsMost = 2000;

}  // namespace tacit::inspect
