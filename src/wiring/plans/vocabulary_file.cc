#include "wiring/plans/vocabulary_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/files/regular_file.h"
#include "event/feature_transform.h"
#include "wiring/plans/codec.h"

namespace tacit::wiring {
namespace {

Result<NamedValue> NamedIn(std::string_view line, const event::FeatureTransform& transform) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos)
    return Fail(ErrorCode::kInvalidArgument, "expected feature<TAB>value, found no tab");
  TACIT_ASSIGN(const uint32_t table, transform.row_space().FindTable(line.substr(0, tab)));
  const std::string_view value = line.substr(tab + 1);
  const uint64_t first = transform.row_space().tables()[table].first;
  return NamedValue{
      .table = table, .bucket = transform.Row(table, value) - first, .value = std::string(value)};
}

// Calls each(value) for the lines in order, until it returns false.
template <class Each>
Status ForNamedValues(const std::string& path, const event::FeatureTransform& transform,
                      const Each& each) {
  TACIT_ASSIGN(const std::string text, ReadRegularFile(path));
  std::string_view rest = text;
  for (uint64_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    auto value = NamedIn(line, transform);
    if (!value) return Fail(std::move(value.error()).Context(fmt::format("{}:{}", path, number)));
    if (!each(*std::move(value))) return {};
  }
  return {};
}

}  // namespace

Result<std::vector<NamedValue>> ReadNamedValues(const std::string& path,
                                                const event::FeatureTransform& transform) {
  std::vector<NamedValue> values;
  TACIT_RETURN_IF_ERROR(ForNamedValues(path, transform, [&](NamedValue&& value) {
    values.push_back(std::move(value));
    return true;
  }));
  return values;
}

Result<std::vector<uint64_t>> ReadVocabularyFile(const std::string& path,
                                                 const std::vector<config::Feature>& features,
                                                 uint64_t keep) {
  const event::FeatureTransform transform(MakeSchema(features));
  std::set<uint64_t> rows;
  TACIT_RETURN_IF_ERROR(ForNamedValues(path, transform, [&](NamedValue&& value) {
    rows.insert(transform.row_space().tables()[value.table].first + value.bucket);
    return keep == 0 || rows.size() < keep;
  }));
  if (rows.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: a vocabulary without a single value", path));
  return std::vector<uint64_t>(rows.begin(), rows.end());
}

}  // namespace tacit::wiring
