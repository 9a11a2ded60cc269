#include <fmt/format.h>
#include <glob.h>

#include <memory>
#include <set>

#include "config/sections.h"

namespace tacit::config {
namespace {

struct GlobDeleter {
  void operator()(glob_t* found) const {
    globfree(found);
    delete found;
  }
};

// The files a pattern stands for, sorted. A backslash takes away a character's meaning.
Result<std::vector<std::string>> Expand(const Place& place, const std::string& pattern) {
  std::unique_ptr<glob_t, GlobDeleter> found(new glob_t{});
  const int outcome = glob(pattern.c_str(), 0, nullptr, found.get());
  if (outcome == GLOB_NOMATCH) return place.Fail(fmt::format("no file matches '{}'", pattern));
  if (outcome != 0) return place.Fail(fmt::format("cannot look for '{}'", pattern));
  return std::vector<std::string>(found->gl_pathv, found->gl_pathv + found->gl_pathc);
}

}  // namespace

void DescribeSource(Fields& fields, Source& source) {
  static constexpr std::array<std::string_view, 2> kKinds = {"log", "generator"};
  static constexpr std::array<std::string_view, 1> kFormats = {"criteo_tsv"};
  fields.Enum("kind", &source.kind, kKinds, Use::kRequired);
  const bool log = source.kind == Source::Kind::kLog;
  fields.OneOf("format", &source.format, kFormats, UsedIf(log));
  fields.Texts("files", &source.files, RequiredIf(log));
  fields.Integer("passes", &source.passes, 1, 1'000'000, UsedIf(log));
  fields.Integer("max_record_bytes", &source.max_record_bytes, 64, 256 << 20);
  fields.Section("generator", [&](Fields& below) {
    Generator& generator = source.generator;
    below.Integer("days", &generator.days, 1, 100'000, UsedIf(!log));
    below.Integer("rows_per_day", &generator.rows_per_day, 1, 1'000'000'000'000, UsedIf(!log));
    below.Integer("seed", &generator.seed, 0, UINT64_MAX, UsedIf(!log));
  });
}

Status CheckSource(const Place& place, Source* source) {
  if (source->kind != Source::Kind::kLog) {
    source->files.clear();
    return {};
  }
  const Place files = place.Key("files");
  std::vector<std::string> expanded;
  std::set<std::string> seen;
  for (size_t i = 0; i < source->files.size(); ++i) {
    const bool list = files.tree() != nullptr && files.tree()->kind == Tree::Kind::kList;
    const Place item = list ? files.Item(i) : files;
    TACIT_ASSIGN(const std::vector<std::string> found, Expand(item, source->files[i]));
    for (const std::string& file : found) {
      // Its records would be learnt from twice but charged as if they were different ones.
      if (!seen.insert(file).second) return item.Fail(fmt::format("names '{}' again", file));
      expanded.push_back(file);
    }
  }
  source->files = std::move(expanded);
  return {};
}

}  // namespace tacit::config
