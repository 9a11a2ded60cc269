// Fuzzes what a checkpoint is read from: its manifest, an archive of one, and the store's own
// values. Seals are set right, so that what lies behind them is reached.
#include "store/checkpoint/checkpoint.h"

#include <unistd.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>

#include "fuzz.h"
#include "store/checkpoint/checkpoint_archive.h"
#include "store/disk/seal.h"
#include "store/types/learner_record.h"
#include "store/view/delta_codec.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;

// A folder of this process, in memory, that goes with it.
class Folder {
 public:
  Folder() : path_("/dev/shm/tacit-fuzz-" + std::to_string(getpid())) {
    fs::create_directories(path_ + "/parent");
  }
  ~Folder() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

void ReadManifest(std::string_view bytes) {
  const auto manifest = store::DecodeManifest(bytes);
  fuzz::DemandGoodError(manifest);
  if (!manifest) return;
  const auto again = store::DecodeManifest(store::EncodeManifest(*manifest));
  fuzz::Demand(again.has_value(), "what was read can be written and read again");
  fuzz::Demand(manifest->FolderName().find('/') == std::string::npos, "a folder's name is one");
}

// The input is the tar file; what is around it is made here.
void ReadArchive(std::string_view tar) {
  static const Folder folder;
  std::string packed(ZSTD_compressBound(tar.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), tar.data(), tar.size(), 1));
  const std::string file = folder.path() + "/archive";
  std::ofstream(file, std::ios::binary) << packed;
  const std::string parent = folder.path() + "/parent";
  const auto place = store::UnpackCheckpoint(file, parent);
  fuzz::DemandGoodError(place);
  if (place) fs::remove_all(place->folder);
  size_t beside = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path()))
    beside += entry.path().filename() != "archive" && entry.path().filename() != "parent";
  fuzz::Demand(beside == 0, "nothing is written outside of the parent");
  for (const fs::directory_entry& entry : fs::directory_iterator(parent))
    fuzz::Demand(entry.path().filename() == ".lock", "what was refused leaves nothing");
}

void ReadValues(uint8_t choice, std::string_view bytes) {
  const std::string sealed = store::Seal(bytes);
  switch (choice % 4) {
    case 0:
      return fuzz::DemandGoodError(store::DecodeDelta(sealed, CommitSeq(7)));
    case 1:
      return fuzz::DemandGoodError(store::DecodeTip(bytes));
    case 2:
      return fuzz::DemandGoodError(store::DecodeLearner(1, bytes));
    default:
      store::LearnerState state;
      return fuzz::DemandGoodError(store::DecodeDenseBase(bytes, &state));
  }
}

}  // namespace
}  // namespace tacit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes = tacit::fuzz::TextOf(data, size);
  const uint8_t choice = tacit::fuzz::TakeChoice(&bytes) % 6;
  if (choice == 0)
    tacit::ReadManifest(bytes);
  else if (choice == 1)
    tacit::ReadArchive(bytes);
  else
    tacit::ReadValues(choice - 2, bytes);
  return 0;
}
