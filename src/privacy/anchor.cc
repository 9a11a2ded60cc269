#include "privacy/anchor.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <charconv>
#include <ctime>

#include "base/check.h"
#include "base/text.h"

// A line is JSON in one form, without spaces:
//
//   {"anchor":1,"number":N,"time_ms":N,"lineage":"HEX","term":"HEX","commit":N,"charged":N,
//    "entries":N,"head":"sha256:HEX","previous":"sha256:HEX"
//    [,"key":"ed25519:HEX","signature":"HEX"]}
//
// N: digits. HEX: hexadecimal, lower case; a lineage may be empty. The signature is of
// "tacit.ledger.anchor.v1\n" and the line up to `,"signature"`.
namespace tacit::privacy {
namespace {

constexpr std::string_view kSignedAs = "tacit.ledger.anchor.v1\n";
constexpr size_t kLineageMost = 64;

// Reads a line from its beginning; once something is missing, nothing more is read.
class LineReader {
 public:
  explicit LineReader(std::string_view rest) : rest_(rest) {}

  LineReader& Word(std::string_view word) {
    good_ = good_ && rest_.starts_with(word);
    if (good_) rest_.remove_prefix(word.size());
    return *this;
  }
  template <class Integer>
  LineReader& Number(Integer* number) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *number);
    good_ = good_ && error == std::errc();
    if (good_) rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return *this;
  }
  LineReader& Hex(std::span<uint8_t> out) {
    good_ =
        good_ && rest_.size() >= 2 * out.size() && FromHex(rest_.substr(0, 2 * out.size()), out);
    if (good_) rest_.remove_prefix(2 * out.size());
    return *this;
  }
  // A text up to the next quotation mark.
  LineReader& Text(std::string* text, size_t most) {
    const size_t end = rest_.find('"');
    good_ = good_ && end <= most;
    if (good_) *text = rest_.substr(0, end);
    if (good_) rest_.remove_prefix(end);
    return *this;
  }
  bool Next(std::string_view word) const { return good_ && rest_.starts_with(word); }
  bool AtEnd() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::string Body(const Anchor& anchor) {
  return fmt::format(
      R"({{"anchor":1,"number":{},"time_ms":{},"lineage":"{}","term":"{}","commit":{},)"
      R"("charged":{},"entries":{},"head":"sha256:{}","previous":"sha256:{}")",
      anchor.number, anchor.time_ms, anchor.lineage, ToHex(anchor.term), anchor.commit,
      anchor.charged, anchor.entries, ToHex(anchor.head), ToHex(anchor.previous));
}

std::string BodyWithKey(const Anchor& anchor) {
  return Body(anchor) + fmt::format(R"(,"key":"{}")", NameOf(*anchor.key));
}

using Key = std::shared_ptr<EVP_PKEY>;

// A file with a passphrase must not ask for it at the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

template <class Read>
Result<Key> ReadKey(std::string_view pem, std::string_view kind, const Read& read) {
  const std::unique_ptr<BIO, int (*)(BIO*)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  Key key(read(text.get()), EVP_PKEY_free);
  ERR_clear_error();  // it quotes nothing that is worth telling
  if (key == nullptr)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("is no {} key in PEM without a passphrase", kind));
  if (EVP_PKEY_id(key.get()) != EVP_PKEY_ED25519)
    return Fail(ErrorCode::kInvalidArgument,
                "is no key of Ed25519 (openssl genpkey -algorithm ed25519)");
  return key;
}

AnchorKeyId IdOf(EVP_PKEY* key) {
  AnchorKeyId id{};
  size_t size = id.size();
  TACIT_CHECK(EVP_PKEY_get_raw_public_key(key, id.data(), &size) == 1 && size == id.size(),
              "a key of Ed25519 has 32 bytes");
  return id;
}

using DigestContext = std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)>;
DigestContext NewContext() { return {EVP_MD_CTX_new(), EVP_MD_CTX_free}; }

const uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

std::string TimeText(int64_t ms) {
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

// "anchor 7 of 2026-11-26 04:12:00 UTC, commit 812 (line 8)".
std::string NameOfAnchor(const Anchor& anchor) {
  return fmt::format("anchor {} of {}, commit {}{}", anchor.number, TimeText(anchor.time_ms),
                     anchor.commit, anchor.place.empty() ? "" : fmt::format(" ({})", anchor.place));
}

// A ledger's entries as anchors ask for them.
class ChainView {
 public:
  explicit ChainView(std::span<const LedgerEntry> entries) : entries_(entries) {
    for (const LedgerEntry& entry : entries)
      last_.push_back(std::max(charged(), entry.last_commit));
  }

  // The last commit that has moved the head.
  uint64_t charged() const { return last_.empty() ? 0 : last_.back(); }
  // The number of entries that had begun with this commit.
  size_t EntriesAt(uint64_t commit) const {
    const auto later = std::ranges::upper_bound(entries_, commit, {}, &LedgerEntry::first_commit);
    return static_cast<size_t>(later - entries_.begin());
  }
  // The head as of this commit; nothing where a run went on beyond it.
  std::optional<Digest> HeadAt(uint64_t commit) const {
    const size_t count = EntriesAt(commit);
    if (count == 0) return Digest{};
    if (last_[count - 1] > commit) return std::nullopt;
    return entries_[count - 1].head;
  }

 private:
  const std::span<const LedgerEntry> entries_;
  std::vector<uint64_t> last_;  // the last commit of the entries so far
};

Status RolledBack(const Anchor& anchor, uint64_t ends) {
  return Fail(
      ErrorCode::kCorruption,
      fmt::format("the ledger was rolled back, or is an older copy: it ends with commit {}, "
                  "and {} has head sha256:{}",
                  ends, NameOfAnchor(anchor), ToHex(anchor.head)));
}

Status Forked(const Anchor& anchor, std::string_view why) {
  return Fail(ErrorCode::kCorruption,
              fmt::format("the ledger is not the one that was anchored: {} has head sha256:{}, {}",
                          NameOfAnchor(anchor), ToHex(anchor.head), why));
}

RememberedCommit CommitOf(const Anchor& anchor) {
  return {.seq = CommitSeq(anchor.commit), .term = anchor.term, .head = anchor.head};
}

Status CheckAnchor(const Anchor& anchor, const AnchoredLedger& ledger, const ChainView& chain) {
  if (!ledger.lineage.empty() && !anchor.lineage.empty() && anchor.lineage != ledger.lineage) {
    if (AccountsFor(ledger.ancestors, anchor.lineage, CommitOf(anchor))) return {};
    return Forked(
        anchor, fmt::format("of a store of lineage {}; this one is of lineage {}{}", anchor.lineage,
                            ledger.lineage,
                            ledger.terms != nullptr
                                ? ", and does not continue it"
                                : ". Only a store or checkpoint tells what it continues"));
  }
  if (anchor.charged > chain.charged()) return RolledBack(anchor, chain.charged());
  if (ledger.last && anchor.commit > ledger.last->value)
    return RolledBack(anchor, ledger.last->value);
  if (chain.EntriesAt(anchor.charged) != anchor.entries)
    return Forked(
        anchor, fmt::format("as entry {}; this ledger had {} entries at commit {}", anchor.entries,
                            chain.EntriesAt(anchor.charged), anchor.charged));
  if (const auto head = chain.HeadAt(anchor.charged); head && *head != anchor.head)
    return Forked(anchor, fmt::format("this ledger had sha256:{} there", ToHex(*head)));
  if (ledger.terms != nullptr && anchor.term != kNoTerm && !ledger.terms->Has(CommitOf(anchor)))
    return Forked(anchor,
                  "and this store has another commit of that number: one of the two is a "
                  "copy that went on by itself");
  return {};
}

}  // namespace

std::string Anchor::Line() const {
  if (!key) return Body(*this) + "}";
  return BodyWithKey(*this) + fmt::format(R"(,"signature":"{}"}})", ToHex(signature));
}

Result<Anchor> Anchor::Decode(std::string_view line) {
  Anchor anchor;
  LineReader reader(line);
  reader.Word(R"({"anchor":1,"number":)").Number(&anchor.number);
  reader.Word(R"(,"time_ms":)").Number(&anchor.time_ms);
  reader.Word(R"(,"lineage":")").Text(&anchor.lineage, kLineageMost);
  reader.Word(R"(","term":")").Hex(anchor.term);
  reader.Word(R"(","commit":)").Number(&anchor.commit);
  reader.Word(R"(,"charged":)").Number(&anchor.charged);
  reader.Word(R"(,"entries":)").Number(&anchor.entries);
  reader.Word(R"(,"head":"sha256:)").Hex(anchor.head);
  reader.Word(R"(","previous":"sha256:)").Hex(anchor.previous).Word("\"");
  if (reader.Next(",\"key\"")) {
    anchor.key.emplace();
    reader.Word(R"(,"key":"ed25519:)").Hex(*anchor.key);
    reader.Word(R"(","signature":")").Hex(anchor.signature).Word("\"");
  }
  reader.Word("}");
  if (!reader.AtEnd() || anchor.Line() != line) return Fail(ErrorCode::kCorruption, "is no anchor");
  return anchor;
}

std::string Anchor::Signed() const { return std::string(kSignedAs) + BodyWithKey(*this); }

Result<AnchorSigner> AnchorSigner::FromPem(std::string_view pem) {
  TACIT_ASSIGN(const Key key, ReadKey(pem, "private", [](BIO* text) {
                 return PEM_read_bio_PrivateKey(text, nullptr, NoPassphrase, nullptr);
               }));
  AnchorSigner signer;
  signer.key_ = key;
  signer.id_ = IdOf(key.get());
  return signer;
}

void AnchorSigner::Sign(Anchor* anchor) const {
  anchor->key = id_;
  const std::string bytes = anchor->Signed();
  const DigestContext context = NewContext();
  size_t size = anchor->signature.size();
  TACIT_CHECK(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr,
                                 static_cast<EVP_PKEY*>(key_.get())) == 1 &&
                  EVP_DigestSign(context.get(), anchor->signature.data(), &size, Bytes(bytes),
                                 bytes.size()) == 1 &&
                  size == anchor->signature.size(),
              "Ed25519 signs any bytes");
}

Result<AnchorKeyId> ReadAnchorKey(std::string_view pem) {
  TACIT_ASSIGN(const Key key, ReadKey(pem, "public", [](BIO* text) {
                 return PEM_read_bio_PUBKEY(text, nullptr, NoPassphrase, nullptr);
               }));
  return IdOf(key.get());
}

std::string NameOf(const AnchorKeyId& key) { return "ed25519:" + ToHex(key); }

bool HasGoodSignature(const Anchor& anchor) {
  if (!anchor.key) return false;
  const Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, anchor.key->data(),
                                            anchor.key->size()),
                EVP_PKEY_free);
  if (key == nullptr) return false;
  const std::string bytes = anchor.Signed();
  const DigestContext context = NewContext();
  const bool good =
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), anchor.signature.data(), anchor.signature.size(),
                       Bytes(bytes), bytes.size()) == 1;
  ERR_clear_error();
  return good;
}

Anchor AnchorOf(const AnchoredLedger& ledger, TermId term) {
  Anchor anchor;
  anchor.lineage = ledger.lineage;
  anchor.term = term;
  anchor.charged = ChainView(ledger.entries).charged();
  anchor.commit = ledger.last ? ledger.last->value : anchor.charged;
  anchor.entries = ledger.entries.size();
  if (!ledger.entries.empty()) anchor.head = ledger.entries.back().head;
  return anchor;
}

Result<std::vector<Anchor>> DecodeAnchors(std::span<const std::string_view> lines,
                                          std::span<const std::string> places) {
  TACIT_CHECK(places.empty() || places.size() == lines.size(), "each line has its place");
  std::vector<Anchor> anchors;
  for (const std::string_view line : lines) {
    const size_t at = anchors.size();
    const std::string place = places.empty() ? fmt::format("line {}", at + 1) : places[at];
    const auto refuse = [&](std::string_view why) {
      return Fail(ErrorCode::kCorruption, fmt::format("{} {}", place, why));
    };
    auto anchor = Anchor::Decode(line);
    if (!anchor) return refuse(anchor.error().message);
    const Digest previous = anchors.empty() ? Digest{} : Sha256().Update(lines[at - 1]).Finish();
    if (anchor->number != anchors.size())
      return refuse(
          fmt::format("has anchor {}, where anchor {} is due: lines are missing, or were "
                      "put in",
                      anchor->number, anchors.size()));
    if (anchor->previous != previous)
      return refuse("does not follow the line before it: one of the two was changed");
    anchor->place = place;
    anchors.push_back(*std::move(anchor));
  }
  return anchors;
}

Status CheckAnchors(std::span<const Anchor> anchors, const AnchoredLedger& ledger) {
  const ChainView chain(ledger.entries);
  for (const Anchor& anchor : anchors) TACIT_RETURN_IF_ERROR(CheckAnchor(anchor, ledger, chain));
  return {};
}

Status CheckSignatures(std::span<const Anchor> anchors, std::span<const AnchorKeyId> keys) {
  for (const Anchor& anchor : anchors) {
    const auto refuse = [&](std::string_view why) {
      return Fail(ErrorCode::kCorruption, fmt::format("{} {}", NameOfAnchor(anchor), why));
    };
    if (!anchor.key) return refuse("is not signed");
    if (std::ranges::find(keys, *anchor.key) == keys.end())
      return refuse(fmt::format("is signed with another key, {}", NameOf(*anchor.key)));
    if (!HasGoodSignature(anchor)) return refuse("has a signature that is not its key's");
  }
  return {};
}

}  // namespace tacit::privacy
