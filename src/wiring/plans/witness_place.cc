#include "wiring/plans/witness_place.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/files/is_there.h"
#include "base/files/log.h"
#include "store/checkpoint/checkpoint.h"

namespace tacit::wiring {
namespace {

void TellOf(const std::string& store, const std::string& witness, std::string_view kind,
            std::string_view key) {
  switch (ClosenessOf(store, witness)) {
    case Closeness::kSameFolder:
      spdlog::warn(
          "{} {} lies in one folder with store {}: when the folder is put back as a whole it "
          "proves "
          "nothing, and what was learnt since is learnt again without a charge. Give it a folder "
          "of "
          "its own ({})",
          kind, witness, store, key);
      break;
    case Closeness::kSameDevice:
      spdlog::info(
          "{} {} lies on one disk with store {}: it proves nothing when the disk is put "
          "back as a whole",
          kind, witness, store);
      break;
    case Closeness::kApart:
      break;
  }
}

}  // namespace

Status CheckWitnessChosen(const config::Store& store, bool in_service) {
  if (!in_service || !store.witness_is_default) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      "store.witness: not set, and a service has no default for it: name a file in a folder "
      "that is not put back together with the store, such as "
      "/var/lib/tacit-witness/store.witness, or none");
}

Closeness ClosenessOf(const std::string& store, const std::string& witness) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path of_store = fs::weakly_canonical(store, error).parent_path();
  const fs::path of_witness = fs::weakly_canonical(witness, error).parent_path();
  if (!error && of_store == of_witness) return Closeness::kSameFolder;
  struct stat there, here;
  if (stat(store.c_str(), &there) != 0 || stat(witness.c_str(), &here) != 0)
    return Closeness::kApart;
  return there.st_dev == here.st_dev ? Closeness::kSameDevice : Closeness::kApart;
}

void TellOfWitnessPlaces(const config::Config& config) {
  if (config.store.witness != "none")
    TellOf(config.store.path, config.store.witness, "witness", "store.witness");
  if (!config.source.mark.empty())
    TellOf(config.store.path, config.source.mark, "mark", "source.mark");
}

Result<std::string> WitnessBeside(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path store = fs::absolute(directory, error).lexically_normal();
  if (!store.has_filename()) store = store.parent_path();
  const std::string apart =
      store.parent_path().string() + "-witness/" + store.filename().string() + ".witness";
  for (const std::string& witness : {directory + ".witness", apart}) {
    const auto there = IsThere(witness);
    if (there && *there) return witness;
    if (there || store::IsCheckpoint(directory)) continue;
    return Fail(there.error().code,
                fmt::format("{}, so whether {} is an older copy cannot be seen: read it as the "
                            "user who may see its witness",
                            there.error().message, directory));
  }
  return std::string();
}

Result<std::string> WitnessFor(const std::string& directory, const std::string& named) {
  return named.empty() ? WitnessBeside(directory) : Result<std::string>(named);
}

void TellOfNoWitness(const std::string& directory) {
  fmt::print(stderr, "no witness beside {}: an older copy would not be noticed\n", directory);
}

}  // namespace tacit::wiring
