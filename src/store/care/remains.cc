#include "store/care/remains.h"

#include <fmt/format.h>

#include <utility>

#include "store/checkpoint/checkpoint.h"
#include "store/disk/folder.h"
#include "store/disk/rocks.h"
#include "store/store.h"
#include "store/users/allowance.h"
#include "store/users/forgotten.h"
#include "store/view/load.h"

namespace tacit::store {
namespace {

// Reads every count, so that none is found damaged halfway through a restore.
std::string FindDamageOfUsers(const Rocks& rocks, const Loaded& loaded) {
  if (loaded.release) return "a release has no users";
  for (size_t key = 0; key < loaded.records.size(); ++key) {
    const auto counts = CheckCounts(rocks, static_cast<uint16_t>(key));
    if (!counts) return counts.error().message;
  }
  return "";
}

}  // namespace

Result<Remains> ReadRemains(const std::string& folder) {
  TACIT_ASSIGN(const bool there, Rocks::Exists(folder));
  if (!there)
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} is no store: it has no file CURRENT", folder));
  if (!IsCheckpoint(folder)) TACIT_RETURN_IF_ERROR(CheckClosed(folder));
  TACIT_ASSIGN(const auto rocks, Rocks::OpenDamaged(folder));
  TACIT_ASSIGN(Loaded loaded, LoadAccount(*rocks));
  if (loaded.fresh() || loaded.tip.seq.value == 0)
    return Fail(ErrorCode::kNotFound, fmt::format("store {} has no commit", folder));
  Remains remains{.folder = folder,
                  .release = loaded.release,
                  .lineage = loaded.lineage,
                  .commit = loaded.tip.seq,
                  .head = loaded.tip.head,
                  .terms = std::move(loaded.terms),
                  .entries = std::move(loaded.entries),
                  .learners = {},
                  .source_identity = loaded.source_identity,
                  .user_key = loaded.user_key,
                  .users_damage = FindDamageOfUsers(*rocks, loaded)};
  TACIT_ASSIGN(remains.forgotten, ReadForgotten(*rocks));
  if (IsCheckpoint(folder)) {
    TACIT_ASSIGN(const CheckpointManifest manifest, ReadManifest(folder));
    remains.forgotten.insert(remains.forgotten.end(), manifest.forgotten.begin(),
                             manifest.forgotten.end());
  }
  for (size_t key = 0; key < loaded.records.size(); ++key) {
    RemainingLearner& learner = remains.learners.emplace_back();
    learner.name = loaded.records[key].name;
    learner.position = loaded.learners[key].position;
    for (const privacy::LedgerTotal& total : loaded.tip.learners)
      if (total.learner == learner.name) learner.steps = total.steps;
  }
  return remains;
}

}  // namespace tacit::store
