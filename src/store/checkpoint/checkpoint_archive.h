#pragma once

#include <string>

#include "base/result.h"
#include "store/checkpoint/checkpoint.h"

namespace tacit::store {

// Writes a checkpoint as one file, a tar archive packed with zstd, which `tar --zstd -xf` reads
// too. The manifest comes first. Every byte is checked against it on the way; the file has its name
// only once it is whole and on disk. kCorruption: the checkpoint is damaged. kIo: the disk, or a
// file of this name exists.
Status PackCheckpoint(const std::string& folder, const std::string& file);

// Unpacks an archive into its checkpoint's folder in `parent`. The folder has its name only once
// every byte was checked. No archive can write outside of `parent`.
// kCorruption: it is no such archive, or damaged. kRefused: that checkpoint is there already. kIo:
// the disk, among others if it has less room than the manifest says that the files take.
Result<CheckpointPlace> UnpackCheckpoint(const std::string& file, const std::string& parent);

}  // namespace tacit::store
