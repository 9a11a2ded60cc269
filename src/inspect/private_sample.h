#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "inspect/sample.h"
#include "privacy/charge.h"

namespace tacit::inspect {

// The way in which records are looked at privately. All of it is chosen by a person, or known to
// all; nothing of it follows from records.
struct PrivateLook {
  std::shared_ptr<const Records> records = nullptr;
  Format format = Format::kJson;
  // The places of the fields, as JSON pointers or columns' names. Empty, with JSON: they are found
  // by noised counts.
  std::vector<std::string> fields = {};
  // Further places that a person has named: the label, the user, the item.
  std::vector<std::string> named = {};
  uint64_t rows_most = 200'000;  // lines that are looked at, the first ones
  privacy::Unit unit = privacy::Unit::kEvent;
  std::string user = {};      // unit user: the place that names the user of a record
  uint32_t user_records = 0;  // unit user: a user's records that are looked at, the first ones
  // A unit moves a count of records by so much at most.
  double bound() const { return unit == privacy::Unit::kUser ? user_records : 1; }
};

// The lines that are looked at, before any noise. A line's place among all lines is known to all,
// by the promise (zero-out): how many records there are, and where.
struct PrivateSample {
  Sample sample;                  // rows in order; its counts are raw
  std::vector<uint64_t> line_of;  // per row: the line, counted over all files from 0
  std::vector<uint8_t> is_kept;   // per line looked at: it counts, readable or not
  // Unit user, per row: the user's number, from 1 on. It is of the whole name and not of its code:
  // a name with the code of another user would move that user's counts too.
  std::vector<uint32_t> user_of;
  uint64_t lines = 0, all_lines = 0;      // looked at, and in all
  uint64_t kept = 0, distinct_lines = 0;  // of lines that count

  // The half of the lines that a row is in: 0 or 1.
  size_t HalfOf(size_t row) const { return line_of[row] * 2 < lines ? 0 : 1; }
};

// Values of a list or set that are looked at, at most.
inline constexpr size_t kElementsOfRecordMost = 4;
// Fields that one record may name, where they are to be found; further ones do not count.
inline constexpr size_t kFieldsOfRecordMost = 64;
// Records of a user that may be looked at, and fields, so that all counts fit the noise's grid: a
// user moves them by less than kUserRecordsMost * sqrt(15 * kPrivateFieldsMost + 2) < 2^20.
inline constexpr uint32_t kUserRecordsMost = 4096;
inline constexpr size_t kPrivateFieldsMost = 4096;

// The shape that a person says the lines have, with the columns that the header of CSV files names.
// No record is looked at. Fails where a file is missing, or its first line is no header with these
// fields.
Result<Shape> ShapeAsSaid(const PrivateLook& look);

// For each place that occurs in the JSON records, the number of records that count and have it
// among their first kFieldsOfRecordMost. Raw.
Result<std::vector<std::pair<std::string, double>>> CountFields(const PrivateLook& look);

// Reads the lines that are looked at, and of them only `places`. REQUIRES a shape as said.
Result<PrivateSample> ReadPrivately(const PrivateLook& look, const Shape& shape,
                                    const std::vector<std::string>& places);

}  // namespace tacit::inspect
