// A checkpoint's manifest is text, so that other tools can read it. A line is a keyword and fields,
// with one space between; each line ends with a line feed. In texts, bytes below '!', '%' and bytes
// above '~' are %XX; an empty text is %.
//     manifest  := "tacit checkpoint 1" facts learner* forgotten* file* end
//     facts     := kind commit ledger store made schema spent
//     kind      := "kind" ("full" | "release")
//     commit    := "commit" NUMBER LINEAGE TERM          TERM is 32 hexadecimal digits
//     ledger    := "ledger" ENTRIES HEAD                 HEAD is 64 hexadecimal digits
//     store     := "store" FORMAT SHARDS
//     made      := "made" UNIX_MS CODE_VERSION
//     schema    := "schema" TEXT
//     spent     := "spent" EPSILON DELTA                 all learners together
//     learner   := "learner" NAME FINGERPRINT UNIT EPSILON DELTA STEPS TABLES table*TABLES
//     table     := "table" NAME ROWS DIM STATE_FLOATS
//     forgotten := "forgotten" HASH UNIX_MS              ascending; HASH is 32 hexadecimal digits
//     file      := "file" SHA256 BYTES NAME              ascending; rows/SHARD/NAME for rows
//     end       := "end" SHA256                          of all bytes before this line
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <numeric>

#include "base/bytes.h"
#include "base/files/regular_file.h"
#include "base/first_format.h"
#include "base/text.h"
#include "store/checkpoint/checkpoint.h"

namespace tacit::store {
namespace {

constexpr std::string_view kFirstLine = "tacit checkpoint 1\n";
constexpr std::array<std::string_view, kCheckpointKinds> kKindNames = {"full", "release"};

std::string AsField(std::string_view text) {
  if (text.empty()) return "%";
  std::string field;
  for (const char c : text) {
    if (c < '!' || c > '~' || c == '%')
      fmt::format_to(std::back_inserter(field), "%{:02x}", static_cast<uint8_t>(c));
    else
      field += c;
  }
  return field;
}

// Reads the fields of one line after the other. Once a field does not fit, ok() stays false.
class ManifestReader {
 public:
  explicit ManifestReader(std::string_view bytes) : rest_(bytes) {}

  // Begins the next line if it has this keyword; else leaves it for another call.
  bool Line(std::string_view keyword) {
    ok_ = ok_ && line_.empty();  // the line before has no more fields
    const size_t end = rest_.find('\n');
    if (!ok_ || end == rest_.npos) return false;
    const std::string_view line = rest_.substr(0, end);
    if (!line.starts_with(keyword) || line.substr(keyword.size()).substr(0, 1) != " ") return false;
    line_ = line.substr(keyword.size());
    rest_.remove_prefix(end + 1);
    number_ += 1;
    return true;
  }
  // Does the same for a line that has to be there.
  void Need(std::string_view keyword) { ok_ = Line(keyword) && ok_; }

  std::string_view Field() {
    if (!line_.starts_with(' ')) ok_ = false;
    if (!ok_) return {};
    line_.remove_prefix(1);
    const std::string_view field = line_.substr(0, line_.find(' '));
    line_.remove_prefix(field.size());
    ok_ = !field.empty();
    return field;
  }
  std::string Text() {
    const std::string_view field = Field();
    std::string text;
    if (field == "%") return text;
    for (size_t i = 0; i < field.size(); ++i) {
      uint8_t byte = static_cast<uint8_t>(field[i]);
      if (field[i] == '%') {
        ok_ = ok_ && FromHex(field.substr(i + 1, 2), {&byte, 1});
        i += 2;
      }
      text += static_cast<char>(byte);
    }
    ok_ = ok_ && AsField(text) == field;
    return text;
  }
  template <class T>
  T Number() {
    const std::string_view field = Field();
    T number{};
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
    ok_ = ok_ && error == std::errc() && end == field.data() + field.size();
    return number;
  }
  template <size_t N>
  std::array<uint8_t, N> Hex() {
    std::array<uint8_t, N> bytes{};
    ok_ = FromHex(Field(), bytes) && ok_;
    return bytes;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && line_.empty() && rest_.empty(); }
  size_t line() const { return number_; }

 private:
  std::string_view rest_, line_;
  size_t number_ = 1;  // the first line has been read
  bool ok_ = true;
};

void PutLearner(const CheckpointLearner& learner, std::string* out) {
  auto to = std::back_inserter(*out);
  fmt::format_to(to, "learner {} {} {} {} {} {} {}\n", AsField(learner.name),
                 ToHex(learner.model_fingerprint), privacy::Name(learner.unit), learner.epsilon,
                 learner.delta, learner.steps, learner.tables.size());
  for (const CheckpointLearner::Table& table : learner.tables)
    fmt::format_to(to, "table {} {} {} {}\n", AsField(table.name), table.rows, table.dim,
                   table.state_floats);
}

ForgottenUser GetForgottenLine(ManifestReader* in) {
  const auto hash = in->Hex<16>();
  ForgottenUser user;
  std::memcpy(&user.user.low, hash.data(), 8);
  std::memcpy(&user.user.high, hash.data() + 8, 8);
  user.before_ms = in->Number<int64_t>();
  return user;
}

void PutForgottenLine(const ForgottenUser& user, std::string* out) {
  ByteWriter hash;
  hash.Put(user.user.low).Put(user.user.high);
  const std::string& bytes = hash.bytes();
  fmt::format_to(std::back_inserter(*out), "forgotten {} {}\n",
                 ToHex({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}),
                 user.before_ms);
}

CheckpointLearner GetLearner(ManifestReader* in) {
  CheckpointLearner learner;
  learner.name = in->Text();
  learner.model_fingerprint = in->Hex<32>();
  const std::string_view unit = in->Field();
  learner.unit =
      unit == privacy::Name(privacy::Unit::kUser) ? privacy::Unit::kUser : privacy::Unit::kEvent;
  learner.epsilon = in->Number<double>();
  learner.delta = in->Number<double>();
  learner.steps = in->Number<uint64_t>();
  const auto tables = in->Number<uint64_t>();
  for (uint64_t t = 0; t < tables && in->ok(); ++t) {
    in->Need("table");
    CheckpointLearner::Table table;
    table.name = in->Text();
    table.rows = in->Number<uint64_t>();
    table.dim = in->Number<uint32_t>();
    table.state_floats = in->Number<uint32_t>();
    learner.tables.push_back(std::move(table));
  }
  return learner;
}

void GetFacts(ManifestReader* in, CheckpointManifest* manifest) {
  in->Need("commit");
  manifest->commit = CommitSeq(in->Number<uint64_t>());
  manifest->lineage = in->Text();
  manifest->term = in->Hex<16>();
  in->Need("ledger");
  manifest->ledger_entries = in->Number<uint64_t>();
  manifest->head = in->Hex<32>();
  in->Need("store");
  manifest->store_format = in->Number<uint32_t>();
  manifest->shards = in->Number<uint32_t>();
  in->Need("made");
  manifest->time_ms = in->Number<int64_t>();
  manifest->code_version = in->Text();
  in->Need("schema");
  manifest->schema = in->Text();
  in->Need("spent");
  manifest->epsilon = in->Number<double>();
  manifest->delta = in->Number<double>();
}

// A name that leads out of the folder is no file's: it is NAME, or rows/NAME/NAME in a shard's. The
// manifest itself and the folder `rows` have the other names.
bool IsPlainName(std::string_view name) {
  constexpr std::string_view kRows = "rows/";
  const auto is_part = [](std::string_view part) {
    return !part.empty() && part.find('/') == part.npos && !part.starts_with('.');
  };
  if (name == kCheckpointManifestName || name == kRows.substr(0, kRows.size() - 1)) return false;
  if (!name.starts_with(kRows)) return is_part(name);
  name.remove_prefix(kRows.size());
  const size_t end = std::min(name.find('/'), name.size());
  return is_part(name.substr(0, end)) && is_part(name.substr(std::min(end + 1, name.size())));
}

// The digest covers everything, so only the end line could be wrong unnoticed: it is recomputed.
Status CheckEnd(std::string_view bytes) {
  constexpr size_t kEndBytes = 4 + 64 + 1;
  Digest digest;
  if (bytes.size() > kEndBytes) {
    const std::string_view body = bytes.substr(0, bytes.size() - kEndBytes);
    digest = Sha256().Update(body).Finish();
    if (bytes.substr(body.size()) == fmt::format("end {}\n", ToHex(digest))) return {};
  }
  return Fail(ErrorCode::kCorruption, "it does not match the SHA-256 in its last line");
}

}  // namespace

std::string_view NameOf(CheckpointKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

Result<CheckpointKind> CheckpointKindOf(std::string_view name) {
  for (size_t kind = 0; kind < kKindNames.size(); ++kind)
    if (kKindNames[kind] == name) return static_cast<CheckpointKind>(kind);
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("there is no checkpoint of kind '{}': it is full or release",
                          name.substr(0, 30)));
}

uint64_t CheckpointManifest::bytes() const {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const CheckpointFile& file) { return sum + file.bytes; });
}

std::string CheckpointManifest::FolderName() const {
  return fmt::format("{}-{:012}-{}", NameOf(kind), commit.value, ToHex(head).substr(0, 8));
}

std::string EncodeManifest(const CheckpointManifest& manifest) {
  std::string out(kFirstLine);
  auto to = std::back_inserter(out);
  fmt::format_to(to, "kind {}\n", NameOf(manifest.kind));
  fmt::format_to(to, "commit {} {} {}\n", manifest.commit.value, AsField(manifest.lineage),
                 ToHex(manifest.term));
  fmt::format_to(to, "ledger {} {}\n", manifest.ledger_entries, ToHex(manifest.head));
  fmt::format_to(to, "store {} {}\n", manifest.store_format, manifest.shards);
  fmt::format_to(to, "made {} {}\n", manifest.time_ms, AsField(manifest.code_version));
  fmt::format_to(to, "schema {}\n", AsField(manifest.schema));
  fmt::format_to(to, "spent {} {}\n", manifest.epsilon, manifest.delta);
  for (const CheckpointLearner& learner : manifest.learners) PutLearner(learner, &out);
  for (const ForgottenUser& user : manifest.forgotten) PutForgottenLine(user, &out);
  for (const CheckpointFile& file : manifest.files)
    fmt::format_to(to, "file {} {} {}\n", ToHex(file.sha256), file.bytes, AsField(file.name));
  const Digest digest = Sha256().Update(out).Finish();
  fmt::format_to(to, "end {}\n", ToHex(digest));
  return out;
}

Result<CheckpointManifest> DecodeManifest(std::string_view bytes) {
  if (bytes.starts_with("tacit-checkpoint "))
    return WrittenBeforeFirst("the checkpoint", "use the program that wrote it");
  if (bytes.starts_with("tacit checkpoint ") && !bytes.starts_with(kFirstLine))
    return Fail(ErrorCode::kRefused, fmt::format("it has format '{}', this program reads 1",
                                                 AsField(bytes.substr(17, bytes.find('\n') - 17))));
  TACIT_RETURN_IF_ERROR(CheckEnd(bytes));
  if (!bytes.starts_with(kFirstLine))
    return Fail(ErrorCode::kCorruption, "line 1 is not that of a checkpoint's manifest");
  ManifestReader in(bytes.substr(kFirstLine.size()));
  CheckpointManifest manifest;
  in.Need("kind");
  TACIT_ASSIGN(manifest.kind, CheckpointKindOf(in.Field()));
  GetFacts(&in, &manifest);
  while (in.ok() && in.Line("learner")) manifest.learners.push_back(GetLearner(&in));
  while (in.ok() && in.Line("forgotten")) {
    const ForgottenUser user = GetForgottenLine(&in);
    if (!manifest.forgotten.empty() && user.user <= manifest.forgotten.back().user)
      return Fail(ErrorCode::kCorruption, fmt::format("line {} is out of order", in.line()));
    manifest.forgotten.push_back(user);
  }
  while (in.ok() && in.Line("file")) {
    CheckpointFile file;
    file.sha256 = in.Hex<32>();
    file.bytes = in.Number<uint64_t>();
    file.name = in.Text();
    if (!in.ok()) break;
    if (!IsPlainName(file.name))
      return Fail(ErrorCode::kCorruption,
                  fmt::format("line {} names '{}', which is no file of a store", in.line(),
                              AsField(file.name).substr(0, 80)));
    if (!manifest.files.empty() && file.name <= manifest.files.back().name)
      return Fail(ErrorCode::kCorruption, fmt::format("line {} is out of order", in.line()));
    manifest.files.push_back(std::move(file));
  }
  in.Need("end");
  in.Field();
  if (!in.at_end())
    return Fail(ErrorCode::kCorruption, fmt::format("line {} cannot be read", in.line()));
  if (std::ranges::find(manifest.files, "CURRENT", &CheckpointFile::name) == manifest.files.end())
    return Fail(ErrorCode::kCorruption,
                "it names no file CURRENT, and without that no store can be opened");
  return manifest;
}

bool IsCheckpoint(const std::string& folder) {
  std::error_code error;
  return std::filesystem::exists(folder + "/" + kCheckpointManifestName, error);
}

Result<CheckpointManifest> ReadManifest(const std::string& folder) {
  const std::string path = folder + "/" + kCheckpointManifestName;
  const auto bytes = ReadRegularFile(path);
  if (!bytes && bytes.error().code == ErrorCode::kNotFound)
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} is no checkpoint: it has no {}", folder, kCheckpointManifestName));
  if (!bytes) return Fail(ErrorCode::kIo, "reading " + bytes.error().message);
  auto manifest = DecodeManifest(*bytes);
  if (!manifest) return Fail(std::move(manifest.error()).Context(path));
  return manifest;
}

}  // namespace tacit::store
