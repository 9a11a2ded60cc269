#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "privacy/anchor.h"

// Files of anchors: a line an anchor, and lines are only added.
namespace tacit::wiring {

struct AnchorFile {
  std::vector<privacy::Anchor> anchors;
  bool cut_off = false;  // it ends in the middle of a line
};

// Reads a file, and holds each line against the one before. kNotFound: there is none. kCorruption
// names file and line.
Result<AnchorFile> ReadAnchorFile(const std::string& path);
// The same of a whole one: kCorruption where it ends in the middle of a line.
Result<std::vector<privacy::Anchor>> ReadWholeAnchorFile(const std::string& path);

// Adds an anchor, with number and link by what is there, signed where there is a signer, and
// returns it once it is on the disk. Makes the file where there is none. A line that was cut off by
// a crash is removed first. kCorruption: the file is damaged, or has fewer anchors than `least`.
// kUnavailable: another process has kept it locked for a second.
Result<privacy::Anchor> AppendAnchor(const std::string& path, privacy::Anchor anchor,
                                     const privacy::AnchorSigner* signer, uint64_t least);

// Reads the private key of a file that is closed to others.
Result<privacy::AnchorSigner> ReadAnchorSigner(const std::string& key, const std::string& path);
Result<privacy::AnchorKeyId> ReadAnchorKeyFile(const std::string& key, const std::string& path);

}  // namespace tacit::wiring
