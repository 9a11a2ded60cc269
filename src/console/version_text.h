#pragma once

#include <string>
#include <string_view>

namespace tacit::console {

// A build of the programs: what it was made from, by what, and with which libraries.
struct BuildInfo {
  std::string_view commit;   // of the source; empty if not known, as in a tree without git
  bool changed = false;      // the tree differed from it
  std::string_view sources;  // a digest of the files in src/, and of what compiles them
  std::string_view compiler, build, sanitizer, processor;
  bool cuda = false;
  std::string_view openssl, kafka, zstd, rocksdb;
};

// The build of this program; its library is linked into programs alone.
const BuildInfo& ThisBuild();

// The answer to --version: the version, the commit, the features and the processor's kernels. The
// first line is the version alone.
std::string VersionText(std::string_view version, const BuildInfo& build);

}  // namespace tacit::console
