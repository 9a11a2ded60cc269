#include "http/caller_table.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "http/query_fields.h"
#include "http/request_json.h"

namespace tacit::http {
namespace {

constexpr std::string_view kRoleNames[] = {"query", "user", "operator"};
constexpr std::string_view kDigestPrefix = "sha256:", kUserPrefix = "user=";
constexpr std::string_view kForm =
    "a line is ROLE NAME sha256:HEX, with user=ID behind it for the role user; `tacit token new` "
    "prints one";
constexpr size_t kNameBytesMost = 64;

std::vector<std::string_view> WordsOf(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<std::string_view> words;
  for (size_t at = line.find_first_not_of(kBlank); at != line.npos;) {
    const size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

bool IsPlainName(std::string_view name) {
  return name.size() <= kNameBytesMost && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

Result<CallerRole> RoleOf(std::string_view word) {
  const auto at = std::ranges::find(kRoleNames, word);
  if (at == std::end(kRoleNames))
    return BadRequest("the first word must be query, user or operator");
  return static_cast<CallerRole>(at - kRoleNames);
}

// Reads the words of a line. A word in the place of a digest may be a token.
Status ReadCaller(const std::vector<std::string_view>& words, Caller* caller, Digest* digest) {
  if (words.size() < 3) return BadRequest(std::string(kForm));
  TACIT_ASSIGN(caller->role, RoleOf(words[0]));
  if (!IsPlainName(words[1]))
    return BadRequest(fmt::format("a name has at most {} letters, digits and -_.", kNameBytesMost));
  caller->name = words[1];
  if (!words[2].starts_with(kDigestPrefix) ||
      !FromHex(words[2].substr(kDigestPrefix.size()), *digest))
    return BadRequest(
        "the third word must be sha256: and 64 hexadecimal digits, the token's digest; "
        "`tacit token new` prints the line");
  const bool has_user = words.size() == 4 && words[3].starts_with(kUserPrefix);
  if (words.size() > 3 && !has_user) return BadRequest(std::string(kForm));
  if (has_user != (caller->role == CallerRole::kUser))
    return BadRequest(has_user ? "user= is for the role user alone"
                               : "the role user needs user=ID, the user's id as records have it");
  if (!has_user) return {};
  TACIT_ASSIGN(caller->user, PathText("user", words[3].substr(kUserPrefix.size())));
  if (caller->user.empty()) return BadRequest("user= has no id");
  return {};
}

// The pace of `before` if it is one for this role, at this rate; else a new one.
std::shared_ptr<Pace> PaceOf(CallerRole role, const CallerRates& rates, const Caller* before) {
  const uint32_t rate = rates[static_cast<size_t>(role)];
  const bool same = before != nullptr && before->role == role && before->pace->rate() == rate;
  return same ? before->pace : std::make_shared<Pace>(rate);
}

}  // namespace

std::string_view NameOf(CallerRole role) { return kRoleNames[static_cast<size_t>(role)]; }

bool SameDigest(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Result<CallerTable> CallerTable::Parse(std::string_view text, const std::string& file,
                                       const CallerRates& rates, const CallerTable* before) {
  CallerTable table;
  std::set<Digest> known;
  size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    const std::vector<std::string_view> words = WordsOf(line);
    if (words.empty() || words[0].starts_with('#')) continue;
    Caller caller;
    Digest digest{};
    Status read = ReadCaller(words, &caller, &digest);
    if (read && !known.insert(digest).second)
      read = BadRequest("the same token is of an earlier line too");
    if (read && table.size() == kCallersMost)
      read = BadRequest(fmt::format("more than {} callers", WithThousands(kCallersMost)));
    if (!read) return Fail(std::move(read.error()).Context(fmt::format("{}:{}", file, number)));
    const Caller* const same = before != nullptr ? before->Find(digest) : nullptr;
    caller.pace = PaceOf(caller.role, rates, same);
    table.digests_.push_back(digest);
    table.callers_.push_back(std::move(caller));
  }
  return table;
}

CallerTable CallerTable::WithRates(const CallerRates& rates) const {
  CallerTable table = *this;
  for (Caller& caller : table.callers_) caller.pace = PaceOf(caller.role, rates, &caller);
  return table;
}

const Caller* CallerTable::Find(const Digest& digest) const {
  const size_t place = PlaceOf(digests_, digest, SameDigest);
  return place < callers_.size() ? &callers_[place] : nullptr;
}

}  // namespace tacit::http
