// The position of an account of inspections, in the notation of base/bytes.h:
//     inspections := format:u8 count:u32 noise_multiplier:f64*count
//     format      := 1
#include "wiring/restore/inspection.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <future>
#include <optional>

#include "base/bytes.h"
#include "base/files/is_there.h"
#include "base/hash.h"
#include "privacy/gaussian.h"
#include "store/disk/folder.h"
#include "store/store.h"
#include "wiring/plans/code_version.h"
#include "wiring/plans/witness_place.h"

namespace tacit::wiring {
namespace {

constexpr uint64_t kInspectionMemory = uint64_t{64} << 20;
constexpr uint8_t kPositionFormat = 1;

privacy::Promise InspectionPromise(privacy::Unit unit, double epsilon, double delta) {
  return {.learner = InspectionAccount(unit),
          .unit = unit,
          .adjacency = privacy::Adjacency::kZeroOut,
          .participation = privacy::ParticipationMode::kOnce,
          .epsilon = epsilon,
          .delta = delta,
          .model_fingerprint = Sha256().Update("tacit.inspection.v1").Finish()};
}

// The ledger of a store that is there; nothing of one that is not.
Result<std::optional<store::ReadOnlyStore>> ReadLedger(const Inspection& inspection,
                                                       const std::string& witness) {
  std::optional<store::ReadOnlyStore> none;
  TACIT_ASSIGN(const bool there, IsThere(inspection.store));
  if (!there) return none;
  TACIT_ASSIGN(const bool held, store::IsHeldByAnother(inspection.store));
  if (held)
    return Fail(ErrorCode::kUnavailable,
                fmt::format("store {} is open in another process: an inspection is a commit of its "
                            "own; stop tacitd while it is charged",
                            inspection.store));
  std::error_code error;
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

Status CommitCharge(store::Store& store, const privacy::CommitCharge& charge,
                    std::string position) {
  store::CommitRequest request{.learners = {}, .source_identity = store.source_identity()};
  request.learners.push_back(
      {.learner = LearnerIndex(0), .position = std::move(position), .charges = {charge}});
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

std::optional<privacy::Unit> UnitOfInspections(std::string_view account) {
  for (const privacy::Unit unit : {privacy::Unit::kEvent, privacy::Unit::kUser})
    if (InspectionAccount(unit) == account) return unit;
  return std::nullopt;
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

std::vector<double> InspectionsOf(std::string_view account,
                                  std::span<const privacy::LedgerEntry> entries) {
  std::vector<double> noise_multipliers;
  for (const privacy::LedgerEntry& entry : entries)
    if (entry.learner == account)
      noise_multipliers.insert(noise_multipliers.end(), entry.steps, entry.charge.noise_multiplier);
  return noise_multipliers;
}

Result<store::LearnerLayout> InspectionLayout(privacy::Unit unit, double delta,
                                              std::span<const double> noise_multipliers) {
  privacy::Ledger own;  // of the account alone, to know what it comes to
  TACIT_RETURN_IF_ERROR(own.Declare(InspectionPromise(unit, 1, delta)));
  for (const double noise_multiplier : noise_multipliers) {
    const privacy::CommitCharge charge{.learner = InspectionAccount(unit),
                                       .charge = InspectionCharge(noise_multiplier),
                                       .steps = 1,
                                       .topic = {},
                                       .ranges = {}};
    own.Append(CommitSeq(1), 0, {&charge, 1}, {}, "");
  }
  const double epsilon = own.Learners().at(0).epsilon;
  return store::LearnerLayout{.name = InspectionAccount(unit),
                              .rows = store::RowLayout(),
                              .promise = InspectionPromise(unit, epsilon, delta)};
}

std::string EncodeInspections(std::span<const double> noise_multipliers) {
  ByteWriter out;
  out.Put(kPositionFormat).Put(static_cast<uint32_t>(noise_multipliers.size()));
  out.PutArray(noise_multipliers);
  return std::move(out).Take();
}

std::optional<std::vector<double>> DecodeInspections(std::string_view position) {
  ByteReader in(position);
  const auto format = in.Get<uint8_t>();
  const auto count = in.Get<uint32_t>();
  if (!in.ok() || format != kPositionFormat || in.remaining() != count * sizeof(double))
    return std::nullopt;
  std::vector<double> noise_multipliers(count);
  in.GetArray(std::span(noise_multipliers));
  return noise_multipliers;
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
  TACIT_ASSIGN(std::string witness, WitnessFor(inspection.store, inspection.witness));
  if (witness.empty()) witness = WitnessOfNew(inspection.store);
  TACIT_ASSIGN(const auto before, ReadLedger(inspection, witness));

  const std::string account = InspectionAccount(inspection.unit);
  const privacy::CommitCharge charge{
      .learner = account,
      .charge = InspectionCharge(InspectionNoise(inspection.epsilon, inspection.delta)),
      .steps = 1,
      .topic = inspection.topic,
      .ranges = inspection.ranges};
  std::vector<double> noise_multipliers;
  if (before) noise_multipliers = InspectionsOf(account, before->entries);
  noise_multipliers.push_back(charge.charge.noise_multiplier);
  TACIT_ASSIGN(store::LearnerLayout layout,
               InspectionLayout(inspection.unit, inspection.delta, noise_multipliers));
  ChargedInspection charged{.account = account, .witness = witness};
  charged.account_epsilon = layout.promise.epsilon;

  store::StoreOptions options;
  options.path = inspection.store;
  options.witness = witness == "none" ? "" : witness;
  options.memory_bytes = kInspectionMemory;
  options.code_version = CodeVersion();
  if (before) options.total_budget = before->promises.total;
  options.learners.push_back(std::move(layout));
  TACIT_ASSIGN(const auto store, store::Store::Open(std::move(options)));
  TACIT_RETURN_IF_ERROR(CheckTotal(*store, charge, before ? before->promises.total : std::nullopt));
  TACIT_RETURN_IF_ERROR(CommitCharge(*store, charge, EncodeInspections(noise_multipliers)));
  const auto latest = store->Latest();
  charged.commit = latest->version().value;
  charged.total_epsilon = latest->total().epsilon;
  charged.total_delta = latest->total().delta;
  TACIT_RETURN_IF_ERROR(store->Settle());
  return charged;
}

}  // namespace tacit::wiring
