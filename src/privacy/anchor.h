#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/terms.h"
#include "privacy/ledger.h"

// Anchors: heads of a ledger that are written down elsewhere, each with the digest of the one
// before. Their keeper can tell later whether the ledger was rolled back, or is another one.
// anchor.cc has the grammar. No I/O.
namespace tacit::privacy {

using AnchorKeyId = std::array<uint8_t, 32>;  // a public key of Ed25519
using AnchorSignature = std::array<uint8_t, 64>;

struct Anchor {
  uint64_t number = 0;  // from 0, in its file or topic
  int64_t time_ms = 0;  // UTC; when the head was written down
  std::string lineage;  // of the store, hexadecimal; empty if not known
  TermId term = kNoTerm;
  uint64_t commit = 0;   // the store's last commit
  uint64_t charged = 0;  // the last commit that has moved the head; at most `commit`
  uint64_t entries = 0;
  Digest head{};
  Digest previous{};  // SHA-256 of the line before; all zero for the first
  std::optional<AnchorKeyId> key = {};
  AnchorSignature signature{};  // where there is a key
  // The place that it was read at, for messages: "line 3", "offset 12". It is no part of the line.
  std::string place = {};

  // The line of this anchor, without an end.
  std::string Line() const;
  // Decodes a line. kCorruption unless it is exactly what Line would return.
  static Result<Anchor> Decode(std::string_view line);
  // The bytes that a signature is of: all that the line has before it.
  std::string Signed() const;
};

// A private key that an operator signs with. It keeps the key to itself.
class AnchorSigner {
 public:
  // Reads a private key of Ed25519 in PEM, without a passphrase. kInvalidArgument tells what else
  // it is.
  static Result<AnchorSigner> FromPem(std::string_view pem);

  const AnchorKeyId& id() const { return id_; }
  void Sign(Anchor* anchor) const;

 private:
  AnchorSigner() = default;
  std::shared_ptr<void> key_;  // EVP_PKEY
  AnchorKeyId id_{};
};

// Reads a public key of Ed25519 in PEM.
Result<AnchorKeyId> ReadAnchorKey(std::string_view pem);
// "ed25519:HEX".
std::string NameOf(const AnchorKeyId& key);
// True where the anchor has a key and the signature is of it and of this anchor.
bool HasGoodSignature(const Anchor& anchor);

// A ledger that anchors are held against, as far as it is known.
struct AnchoredLedger {
  std::span<const LedgerEntry> entries;
  std::string lineage = {};                      // empty if not known
  std::optional<CommitSeq> last = std::nullopt;  // the store's last commit
  const Terms* terms = nullptr;                  // null if not known
  std::span<const Ancestor> ancestors = {};      // known where terms are
};

// The anchor of this ledger as it is now, without number, time and link.
Anchor AnchorOf(const AnchoredLedger& ledger, TermId term);

// Decodes lines, and holds each against the one before it. `places` says where each was read;
// if empty, in a file, so that "line 3" is the third. kCorruption names the place.
Result<std::vector<Anchor>> DecodeAnchors(std::span<const std::string_view> lines,
                                          std::span<const std::string> places = {});

// Checks that each anchor's head was this ledger's: kCorruption names the first anchor by which the
// ledger was rolled back, or is another one. A head that was in the middle of a run of equal steps
// has moved since: there terms tell a fork, where they are known.
Status CheckAnchors(std::span<const Anchor> anchors, const AnchoredLedger& ledger);

// Checks that each anchor has a signature of one of these keys. kCorruption names the first that
// has not.
Status CheckSignatures(std::span<const Anchor> anchors, std::span<const AnchorKeyId> keys);

}  // namespace tacit::privacy
