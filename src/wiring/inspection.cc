#include "wiring/inspection.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <future>
#include <optional>

#include "base/hash.h"
#include "privacy/gaussian.h"
#include "store/store.h"
#include "wiring/code_version.h"
#include "wiring/witness_place.h"

namespace tacit::wiring {
namespace {

constexpr uint64_t kInspectionMemory = uint64_t{64} << 20;

privacy::Promise InspectionPromise(const Inspection& inspection, double epsilon) {
  return {.learner = InspectionAccount(inspection.unit),
          .unit = inspection.unit,
          .adjacency = privacy::Adjacency::kZeroOut,
          .participation = privacy::ParticipationMode::kOnce,
          .epsilon = epsilon,
          .delta = inspection.delta,
          .model_fingerprint = Sha256().Update("tacit.inspection.v1").Finish()};
}

// The ledger of a store that is there; nothing of one that is not.
Result<std::optional<store::ReadOnlyStore>> ReadLedger(const Inspection& inspection,
                                                       const std::string& witness) {
  std::optional<store::ReadOnlyStore> none;
  std::error_code error;
  if (!std::filesystem::exists(inspection.store, error)) return none;
  TACIT_ASSIGN(const bool held, store::IsHeldByAnother(inspection.store));
  if (held)
    return Fail(ErrorCode::kUnavailable,
                fmt::format("store {} is open in another process: an inspection is a commit of its "
                            "own; stop tacitd while it is charged",
                            inspection.store));
  const bool empty = std::filesystem::is_empty(inspection.store, error);
  if (empty) return none;
  TACIT_ASSIGN(auto read, store::OpenReadOnly(inspection.store, witness, {}));
  return std::optional(std::move(read));
}

Status CheckTotal(const store::Store& store, const privacy::CommitCharge& charge,
                  const std::optional<privacy::TotalBudget>& budget) {
  if (!budget) return {};
  const double total = store.TotalEpsilonAfter({&charge, 1});
  if (total <= budget->epsilon) return {};
  return Fail(
      ErrorCode::kRefused,
      fmt::format("with this inspection all that was released comes to epsilon {:.4g} at "
                  "delta {:g}, and the store's budget is {:g}: ask for a smaller --private, "
                  "or raise budget.epsilon",
                  total, budget->delta, budget->epsilon));
}

Status CommitCharge(store::Store& store, const privacy::CommitCharge& charge) {
  store::CommitRequest request{.learners = {}, .source_identity = store.source_identity()};
  request.learners.push_back({.learner = LearnerIndex(0),
                              .rows = nullptr,
                              .dense = nullptr,
                              .position = {},
                              .charges = {charge}});
  std::promise<Status> promise;
  std::future<Status> done = promise.get_future();
  TACIT_RETURN_IF_ERROR(
      store.Commit(std::move(request), [&](Status status) { promise.set_value(status); }));
  return done.get();
}

}  // namespace

std::string InspectionAccount(privacy::Unit unit) {
  return fmt::format("tacit.inspect.{}", privacy::Name(unit));
}

double InspectionNoise(double epsilon, double delta) {
  return privacy::CalibrateGaussian(Epsilon(epsilon), Delta(delta), 1).value;
}

privacy::Charge InspectionCharge(double noise_multiplier) {
  return {.mechanism = privacy::MechanismKind::kInspection,
          .noise_multiplier = noise_multiplier,
          .sigma_selection = noise_multiplier,
          .clip_selection = 1};
}

std::string WitnessOfNew(const std::string& store) {
  namespace fs = std::filesystem;
  fs::path path = fs::path(store).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  return fmt::format("{}-witness/{}.witness", folder == "." ? "tacit" : folder,
                     path.filename().string());
}

Result<ChargedInspection> ChargeInspection(const Inspection& inspection) {
  std::string witness = inspection.witness;
  if (witness.empty()) witness = WitnessBeside(inspection.store);
  if (witness.empty()) witness = WitnessOfNew(inspection.store);
  TACIT_ASSIGN(const auto before, ReadLedger(inspection, witness));

  const std::string account = InspectionAccount(inspection.unit);
  const privacy::CommitCharge charge{
      .learner = account,
      .charge = InspectionCharge(InspectionNoise(inspection.epsilon, inspection.delta)),
      .steps = 1,
      .topic = inspection.topic,
      .ranges = inspection.ranges};
  privacy::Ledger own;  // of the account alone, to know what it comes to
  TACIT_RETURN_IF_ERROR(own.Declare(InspectionPromise(inspection, 1)));
  if (before)
    for (const privacy::LedgerEntry& entry : before->entries)
      if (entry.learner == account && entry.steps > 0) {
        privacy::CommitCharge earlier{.learner = account,
                                      .charge = entry.charge,
                                      .steps = entry.steps,
                                      .topic = {},
                                      .ranges = {}};
        own.Append(CommitSeq(entry.last_commit), entry.last_time_ms, {&earlier, 1}, {}, "");
      }
  ChargedInspection charged{.account = account, .witness = witness};
  charged.account_epsilon = own.EpsilonAfter({&charge, 1});

  store::StoreOptions options;
  options.path = inspection.store;
  options.witness = witness == "none" ? "" : witness;
  options.memory_bytes = kInspectionMemory;
  options.code_version = CodeVersion();
  if (before) options.total_budget = before->promises.total;
  options.learners.push_back({.name = account,
                              .rows = store::RowLayout(),
                              .promise = InspectionPromise(inspection, charged.account_epsilon)});
  TACIT_ASSIGN(const auto store, store::Store::Open(std::move(options)));
  TACIT_RETURN_IF_ERROR(CheckTotal(*store, charge, before ? before->promises.total : std::nullopt));
  TACIT_RETURN_IF_ERROR(CommitCharge(*store, charge));
  const auto latest = store->Latest();
  charged.commit = latest->version().value;
  charged.total_epsilon = latest->total().epsilon;
  charged.total_delta = latest->total().delta;
  TACIT_RETURN_IF_ERROR(store->Settle());
  return charged;
}

}  // namespace tacit::wiring
