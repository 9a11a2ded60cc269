#include "cli/replay/replay_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "stream/log/line_reader.h"

namespace tacit::cli {
namespace {

constexpr uint64_t kHashedBytes = 1 << 20;
constexpr size_t kIdBytes = 8;

template <class T>
bool ParseNumber(std::string_view text, T* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// Takes off the word after the last `separator`; returns false when there is none.
bool TakeLast(std::string_view* text, char separator, std::string_view* word) {
  const size_t at = text->rfind(separator);
  if (at == std::string_view::npos) return false;
  *word = text->substr(at + 1);
  *text = text->substr(0, at);
  return true;
}

}  // namespace

std::string ReplayHeaderText(const ReplayHeader& header) {
  return fmt::format("{}:{}\t{}\t{}\t{}\t{}", header.name, header.line, header.id, header.run,
                     header.partitions, header.key);
}

// Parses from the end, since a file's name may contain any character.
std::optional<ReplayHeader> ParseReplayHeader(std::string_view text) {
  std::string_view key, partitions, run, id, line;
  if (!TakeLast(&text, '\t', &key) || !TakeLast(&text, '\t', &partitions) ||
      !TakeLast(&text, '\t', &run) || !TakeLast(&text, '\t', &id) || !TakeLast(&text, ':', &line))
    return std::nullopt;
  ReplayHeader header{.name = std::string(text), .id = std::string(id), .key = std::string(key)};
  if (!ParseNumber(line, &header.line) || !ParseNumber(run, &header.run) ||
      !ParseNumber(partitions, &header.partitions))
    return std::nullopt;
  return header;
}

Result<std::vector<ReplayFile>> LookAtFiles(std::span<const std::string> paths) {
  std::vector<ReplayFile> files;
  std::set<stream::InputFile::Inode> seen;
  for (const std::string& path : paths) {
    if (path == kStandardInput && paths.size() > 1)
      return Fail(ErrorCode::kInvalidArgument, "- (standard input) stands alone");
    TACIT_ASSIGN(auto file, stream::InputFile::Open(path));
    if (!seen.insert(file->inode()).second)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: is given twice", path));
    TACIT_ASSIGN(const Digest digest,
                 file->HashPrefix(std::min<uint64_t>(kHashedBytes, file->raw_size())));
    files.push_back({.path = path,
                     .name = std::filesystem::path(path).filename().string(),
                     .id = ToHex(std::span(digest).first(kIdBytes)),
                     .raw_bytes = file->raw_size()});
    // A short file that is cut gets another id once it is whole.
    if (file->raw_size() >= kHashedBytes) continue;
    TACIT_RETURN_IF_ERROR(stream::LineReader(std::move(file), kHashedBytes).Skip(UINT64_MAX));
  }
  return files;
}

void ReplayHistory::Note(int32_t partition, const ReplayHeader& header) {
  const auto file =
      std::ranges::find_if(files_, [&](const ReplayFile& one) { return one.id == header.id; });
  if (file == files_.end()) {
    if (std::ranges::find(files_, header.name, &ReplayFile::name) != files_.end())
      changed_ = header.name;
    return;
  }
  if (header.run > run_) {
    run_ = header.run;
    last_.clear();
  }
  if (header.run < run_) return;
  any_ = header;
  ReplayPlace& last = last_[partition];
  last = std::max(last, {static_cast<size_t>(file - files_.begin()), header.line});
}

Status ReplayHistory::Check(int32_t partitions, const std::string& key) const {
  constexpr std::string_view kAgain = "; --again sends all of it once more";
  if (changed_)
    return Fail(
        ErrorCode::kRefused,
        fmt::format("{} is not the file whose lines are in the topic{}", *changed_, kAgain));
  if (!any_) return {};
  if (any_->partitions != partitions)
    return Fail(ErrorCode::kRefused,
                fmt::format("the topic had {} partitions when the replay began, and has {} now: it "
                            "is not known which lines are missing{}",
                            any_->partitions, partitions, kAgain));
  if (any_->key != key)
    return Fail(ErrorCode::kRefused,
                fmt::format("the replay began with --key {}: use that key{}", any_->key, kAgain));
  return {};
}

ReplayPlace ReplayHistory::Last(int32_t partition) const {
  const auto found = last_.find(partition);
  return found == last_.end() ? ReplayPlace{} : found->second;
}

}  // namespace tacit::cli
