#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/tuned.h"
#include "config/sections.h"

namespace tacit::config {
namespace {

void DescribeHistory(Fields& fields, History& history, bool used) {
  fields.Integer({"items", "The last items of each user that the store remembers."}, &history.items,
                 1, 1 << 16, UsedIf(used));
  fields.Integer({"days", "The days for which it remembers them. 0: for ever."}, &history.days, 0,
                 36500, UsedIf(used));
  fields.Flag(
      {"serve_users",
       "true: `/v1/recommend` answers for a user by name, at `serve.operator_listen` alone. That "
       "reads the user's raw history, which no epsilon covers, and users have no credential yet."},
      &history.serve_users, UsedIf(used));
}

// The accountant bounds allocations of at most this many steps.
constexpr uint64_t kBlockStepsMost = 100'000;

void DescribeParticipation(Fields& fields, Learner& learner) {
  Participation& participation = learner.participation;
  const bool of_users = learner.privacy.of_users();
  if (participation.batch == 0) {
    const uint64_t batch = learner.model.traits().batch;
    participation.batch = batch > 0 ? batch : DefaultPeriod(learner.privacy.epsilon);
  }
  struct ModeRow {
    Participation::Mode kind;
    std::string_view name;
  };
  static constexpr ModeRow kModes[] = {{Participation::Mode::kOnce, "once"},
                                       {Participation::Mode::kPoisson, "poisson"},
                                       {Participation::Mode::kAllocate, "allocate"}};
  fields.Kind(
      {"mode",
       "`once`: each event is in one step per pass, in the order in which events come; no "
       "amplification is claimed.\n`allocate`: a period is held, and each of its events is in "
       "exactly one step of each block, drawn at random. All are learnt from, and the "
       "amplification is claimed.\n`poisson`: a period is held, and each of its events is in each "
       "of its steps with a probability. At equal use it is dearer than `allocate`."},
      &participation.mode, std::span(kModes), Use::kRequired);
  const bool held = participation.holds_periods();
  const bool allocates = participation.mode == Participation::Mode::kAllocate;
  fields.Integer(
      {"batch",
       "Offsets of a step with `once`; with held periods the examples that a step is expected to "
       "have, about `sampling_rate` times the events of a period, or one in `steps_per_period` of "
       "them, and required. It is the public divisor of every update: with held periods nothing "
       "reports a wrong number, and updates are then too short or too long. Larger: less noise per "
       "event, fewer steps, more memory.\nModel `transitions`: 250,000 by default.\nModel "
       "`linear`: 150,000 / sqrt(epsilon) by default, from 50,000 to 1,000,000. With unit `event` "
       "its first period is shorter, and finds the click rate; by default the next has 10,000 "
       "offsets, and each that follows a quarter more, up to `batch`."},
      &participation.batch, 1, 1 << 24, held ? Use::kRequired : Use::kOptional);
  fields.Integer({"max_participations",
                  "Steps that any unit may be in, for the life of the store. Noise grows with its "
                  "square root.\nUnit `event`: for `once` alone; at least `source.passes`.\nUnit "
                  "`user`: required, the lifetime allowance. It counts the steps that a user is "
                  "in, or with held periods is eligible for, all of a period's at once. The store "
                  "counts exactly and for ever, and leaves out a user whose allowance is used. "
                  "Epsilon is that of this many steps, however long the stream runs."},
                 &participation.max_participations, 1, 1'000'000,
                 of_users ? Use::kRequired : UsedIf(!held));
  fields.Integer({"per_period",
                  "Steps of a period that a user may be in, for unit `user` and `once`, so that "
                  "active users do not spend their allowance in a day. `period` and `period_files` "
                  "say what closes a period, after the step that fills it. 0: no bound."},
                 &participation.per_period, 0, 1'000'000, UsedIf(of_users && !held));
  fields.Integer(
      {"user_records_max",
       "Records of a user in a step, the first ones, for unit `user`. It bounds the time that one "
       "user costs; what a user adds is clipped as one in any case. 0: all."},
      &participation.user_records_max, 0, 1 << 24, UsedIf(of_users));
  fields.Integer({"step_files",
                  "File ends that end a step of `once` which has fewer than `batch` offsets. 1: "
                  "each one does. More, for files of few records: fewer and larger steps, so less "
                  "noise per event, and learnt later. A day of the figures is then that number of "
                  "files."},
                 &participation.step_files, 1, 1'000'000, UsedIf(!held));
  fields.Number({"sampling_rate",
                 "The probability of an event to be in a step, for `poisson`. Smaller: more "
                 "amplification, smaller steps."},
                &participation.sampling_rate, {.min = 0, .max = 1, .above_min = true},
                RequiredIf(held && !allocates));
  fields.Integer({"steps_per_period",
                  "`poisson`: steps taken of each period, each charged to every event of "
                  "it.\n`allocate`: steps of a block, at most 100,000."},
                 &participation.steps_per_period, 1, allocates ? kBlockStepsMost : 1'000'000'000,
                 RequiredIf(held));
  fields.Integer({"blocks",
                  "Blocks of `steps_per_period` steps that `allocate` takes of each period, each "
                  "drawn anew: as many uses of each event, and as many times the cost. All are "
                  "charged when the period begins."},
                 &participation.blocks, 1, 10'000, UsedIf(allocates));
  const bool periods = held || (of_users && participation.per_period > 0);
  fields.Integer({"period_files",
                  "File ends that close a period. 0, with a `period`: each one does. Longer: a "
                  "smaller `sampling_rate` for the same `batch`, so less noise for the same "
                  "epsilon, and learnt later."},
                 &participation.period_files, 0, 1'000'000, UsedIf(periods));
  fields.Integer({"period",
                  "Offsets in a period; a file end closes it too. It is held in memory, and learnt "
                  "from only once it is closed. Required for held periods without `period_files`."},
                 &participation.period, 0, uint64_t{1} << 40, UsedIf(periods));
}

constexpr std::array<std::string_view, 2> kOnExhausted = {"stop-learning", "exit"};
// Above this epsilon nothing is hidden, and the noise is too small to be drawn.
constexpr double kEpsilonMost = 1e6;
constexpr Range kProbability = {.min = 0, .max = 1, .above_min = true, .below_max = true};

void DescribePrivacy(Fields& fields, Privacy& privacy) {
  struct UnitRow {
    privacy::Unit kind;
    std::string_view name;
  };
  static constexpr UnitRow kUnits[] = {{privacy::Unit::kEvent, "event"},
                                       {privacy::Unit::kUser, "user"}};
  fields.Kind(
      {"unit",
       "`event`: one record.\n`user`: all records of a user together, for which `source.format` is "
       "json, csv or protobuf; a record without a user is a dead letter for every learner. It is "
       "dearer by the number of steps a user is in, and each step has fewer units: `batch` stays "
       "the public divisor, of steps of `batch` offsets or, with held periods, of `batch` users."},
      &privacy.unit, std::span(kUnits), Use::kRequired);
  fields.Number(
      {"epsilon",
       "The epsilon that a unit may lose to this learner. `.inf` goes with mechanism `none`, and "
       "only there. Beyond about 20 it hides next to nothing, and a warning says so."},
      &privacy.epsilon, {.min = 0, .max = kEpsilonMost, .above_min = true, .infinite = true},
      Use::kRequired);
  fields.Number({"delta", "The delta of that promise; well below 1 / number of units."},
                &privacy.delta, kProbability, Use::kRequired);
  fields.Enum({"on_exhausted",
               "`stop-learning`: serving continues once epsilon is used up.\n`exit`: tacitd ends "
               "with status 4."},
              &privacy.on_exhausted, kOnExhausted);
}

// Checks that something ends a step and closes a period.
Status CheckParticipation(const Place& place, const Participation& participation,
                          const Source& source, bool of_users) {
  if (participation.step_files > 1 && !source.traits().has_files)
    return place.Key("step_files")
        .Fail(fmt::format("is {}, and records come from {}, which has no files: leave it out",
                          participation.step_files, source.traits().name));
  const bool periods = participation.holds_periods() || (of_users && participation.per_period > 0);
  if (!periods || participation.period > 0) return {};
  if (!source.traits().has_files) {
    return place.Key("period").Fail(
        fmt::format("required where records come from {}, which has no files whose ends could "
                    "close a period: give the number of offsets in a period{}",
                    source.traits().name,
                    source.traits().keys.has("tick_ms") ? "; source.tick_ms closes it too" : ""));
  }
  if (participation.period_files > 0) return {};
  return place.Key("period").Fail(
      "nothing closes a period: give period, its number of offsets, or period_files, its number of "
      "files (1: every file is a period)");
}

// Checks that records name their user and that the allowance lets a user take part at all.
Status CheckUsers(const Place& place, const Learner& learner, const Source& source) {
  const Participation& participation = learner.participation;
  if (!source.format_traits().is_named) {
    return place.Key("privacy").Key("unit").Fail(
        "unit user needs records that name their user: source.format json, csv or protobuf; use "
        "event");
  }
  if (const std::string unset = UnsetPlace(source, RecordPart::kUser); !unset.empty()) {
    return place.Key("privacy").Key("unit").Fail(
        fmt::format("unit user needs {}, the place of a record's user", unset));
  }
  if (!participation.holds_periods() ||
      participation.max_participations >= participation.PeriodSteps())
    return {};
  return place.Key("participation")
      .Key("max_participations")
      .Fail(fmt::format("{} steps are less than a period has ({}): no user could ever be in one",
                        participation.max_participations, participation.PeriodSteps()));
}

// Refuses unit event together with source.dedupe.window. Without one record, the next record with
// the same event id would be learnt from in its place: two contributions change, and the second may
// be another person's. A step of unit event is charged for one change only. With unit user the copy
// belongs to the same user, so the change stays within the unit.
Status CheckCopies(const Place& place, const Learner& learner, const Source& source) {
  if (source.dedupe_window == 0 || !learner.mechanism.traits().adds_noise ||
      learner.privacy.of_users())
    return {};
  return place.Key("privacy").Key("unit").Fail(
      "event cannot be combined with source.dedupe.window: without one record, the next one with "
      "its event_id would be learnt from, so two contributions would change where one is charged; "
      "use unit user, or remove the window and drop copies upstream");
}

// Checks what a model of the next item needs.
Status CheckNextItem(const Place& place, const Learner& learner, const Source& source,
                     const Catalogue& catalogue) {
  if (!learner.model.recommends()) {
    if (source.has_labels()) return {};
    return place.Key("model").Key("kind").Fail(
        fmt::format("learns to foretell a label, and source.{}.label says that records have none; "
                    "models of the next item learn without",
                    source.format_traits().name));
  }
  if (catalogue.file.empty()) {
    return place.Key("model").Key("kind").Fail(
        "a model of the next item needs catalogue.file, the public list of items: ids taken from "
        "users' records would reveal those records");
  }
  if (const std::string unset = UnsetPlace(source, RecordPart::kItem); !unset.empty()) {
    return place.Key("model").Key("kind").Fail(
        fmt::format("a model of the next item needs {}, the place of a record's item", unset));
  }
  if (!learner.privacy.of_users()) {
    return place.Key("privacy").Key("unit").Fail(
        "must be user for a model of the next item, which reads a user's records again and again");
  }
  const bool starts = learner.model.traits().keys.has("start") &&
                      learner.model.sequence.start != Sequence::Start::kNone;
  if (starts && learner.participation.mode == Participation::Mode::kOnce) {
    return place.Key("model").Key("start").Fail(
        "releases what a held period holds, and participation.mode once holds none; use mode "
        "allocate or poisson, or start none");
  }
  if (source.weighs()) {
    return place.Key("model").Key("kind").Fail(
        "counts each record alike; source.json.weight and source.csv.weight are for models of "
        "clicks");
  }
  if (source.passes > 1) {
    return place.Key("model").Key("kind").Fail(
        "a model of the next item needs source.passes 1: in a second pass every user's history "
        "would seem to start again after its end");
  }
  return {};
}

// Checks that the mechanism can guard the model, and that its participation means something there.
Status CheckGuard(const Place& place, const Learner& learner) {
  const ModelTraits& model = learner.model.traits();
  const MechanismTraits& mechanism = learner.mechanism.traits();
  const Place kind = place.Key("mechanism").Key("kind");
  for (const ModelTraits& other : learner.model.kinds)
    if (other.only_once.size() > 0 && other.guard == mechanism.kind && other.kind != model.kind)
      return kind.Fail(fmt::format("{} is for model.kind {} only", mechanism.name, other.name));
  const bool guards =
      !mechanism.adds_noise || model.guard == MechanismKind::kNone || model.guard == mechanism.kind;
  if (!guards)
    return kind.Fail(fmt::format("must be {} for model.kind {}{}",
                                 RowOf(kMechanisms, model.guard).name, model.name,
                                 model.descends ? ": all its parameters are dense" : ""));
  if (!model.only_once.empty() && learner.participation.mode != Participation::Mode::kOnce)
    return place.Key("participation")
        .Key("mode")
        .Fail(fmt::format("must be once for model.kind {}: {}", model.name, model.only_once));
  if (learner.model.kind != ModelKind::kSequence ||
      learner.mechanism.clipping == Mechanism::Clipping::kFlat ||
      learner.mechanism.clipping == Mechanism::Clipping::kAutomatic)
    return {};
  return place.Key("mechanism")
      .Key("clipping")
      .Fail("must be flat or automatic for model.kind sequence");
}

// Checks that the model has layers for carriers, and an optimiser that they fit.
Status CheckCarriers(const Place& place, const Learner& learner) {
  // A value that the mechanism has no use for is not kept: what was written is looked at.
  const Place from = place.Key("mechanism").Key("carriers").Key("from");
  if (!learner.mechanism.traits().sums_gradients() && from.tree() != nullptr &&
      from.tree()->text != "none")
    return from.Fail(
        fmt::format("must be none for mechanism.kind {}, which sums no gradients of layers",
                    learner.mechanism.traits().name));
  if (!learner.mechanism.carriers.on() || !learner.mechanism.traits().sums_gradients()) return {};
  if (!learner.model.traits().has_carriers)
    return place.Key("mechanism")
        .Key("carriers")
        .Key("from")
        .Fail(
            fmt::format("must be none for model.kind {}: only the layers of pctr and sequence can "
                        "have carriers",
                        learner.model.traits().name));
  const std::string_view refusal = learner.optimizer.traits().with_carriers;
  if (refusal.empty()) return {};
  return place.Key("optimizer").Key("kind").Fail(refusal);
}

// Checks that nothing below noised representations learns from records, and that the optimiser asks
// for no noise on gradients.
Status CheckBelowNoise(const Place& place, const Learner& learner, const Source& source) {
  const MechanismTraits& mechanism = learner.mechanism.traits();
  if (!mechanism.noises_representations) return {};
  if (source.weighs())
    return place.Key("mechanism")
        .Key("kind")
        .Fail(fmt::format("{} counts each record alike; source.json.weight and source.csv.weight "
                          "are for mechanisms that noise gradients or sums",
                          mechanism.name));
  if (learner.privacy.of_users())
    return place.Key("privacy").Key("unit").Fail(
        fmt::format("must be event for mechanism {}: each record of a user in a step would be a "
                    "representation of its own, and nothing clips them together",
                    mechanism.name));
  if (learner.participation.mode == Participation::Mode::kAllocate)
    return place.Key("participation")
        .Key("mode")
        .Fail(fmt::format("allocate earns nothing with mechanism {}: labels are in the clear, so "
                          "that the step an event is in counts as known; use once or poisson",
                          mechanism.name));
  const Place optimizer = place.Key("optimizer");
  if (learner.optimizer.row_learning_rate > 0)
    return optimizer.Key("row_learning_rate")
        .Fail(fmt::format("embeddings lie below the noise of mechanism {} and are frozen: their "
                          "gradients would be of records as they are. Leave it out, or use a "
                          "mechanism that noises gradients, such as adafest",
                          mechanism.name));
  if (learner.optimizer.traits().without_noise.empty()) return {};
  return optimizer.Key("kind").Fail(
      fmt::format("{} takes the noise's share out of the second moment, and mechanism {} has its "
                  "noise in representations, not in gradients; use adam",
                  learner.optimizer.traits().name, mechanism.name));
}

bool GoodId(const std::string& id) {
  return !id.empty() && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// Checks that epsilon is infinite if and only if the mechanism is none.
Status CheckPrivacy(const Place& place, const Learner& learner) {
  const Place privacy = place.Key("privacy");
  const bool finite = std::isfinite(learner.privacy.epsilon);
  if (!learner.mechanism.traits().adds_noise) {
    if (!finite) return {};
    return privacy.Key("epsilon").Fail(
        "mechanism none adds no noise, so no finite epsilon holds; write .inf, or use a mechanism");
  }
  if (!finite) {
    return privacy.Key("epsilon").Fail(
        "an epsilon of .inf is for mechanism none only; give the epsilon to keep");
  }
  return {};
}

}  // namespace

// The noise on the number of a value's events goes with 1 / epsilon, so a smaller epsilon needs
// more events to stand out of it; too long a period learns late. 150,000 at epsilon 1, 53,000 at
// epsilon 8: whole hundreds, which read better.
uint64_t DefaultPeriod(double epsilon) {
  const double events = std::clamp(tuned::kPeriodAtEpsilonOne / std::sqrt(epsilon),
                                   tuned::kPeriodLeast, tuned::kPeriodMost);
  return static_cast<uint64_t>(events / 100) * 100;
}

// A user's part in a period uses up some of an allowance, so that short ones are for events alone.
uint64_t FirstPeriod(const Learner& learner) {
  const bool by_rule = learner.model.traits().batch == 0 && !learner.privacy.of_users() &&
                       learner.participation.mode == Participation::Mode::kOnce &&
                       learner.participation.batch == DefaultPeriod(learner.privacy.epsilon);
  return by_rule ? tuned::kPeriodFirst : 0;
}

void DescribeLearner(Fields& fields, Learner& learner) {
  fields.Text(
      {"id", "A distinct name of a-z, 0-9, _ and -. Keys, ledger entries and metrics have it."},
      &learner.id, Use::kRequired);
  fields.Section({"model", "The model that the learner trains."},
                 [&](Fields& below) { DescribeModel(below, learner.model); });
  fields.Section(
      {"history", "The memory of users, for models of the next item."},
      [&](Fields& below) { DescribeHistory(below, learner.history, learner.model.recommends()); });
  fields.Section(
      {"mechanism",
       "The rows that a step writes, and the noise that it adds: docs/concepts/how-it-works.md."},
      [&](Fields& below) { DescribeMechanism(below, learner.mechanism); });
  fields.Section({"privacy",
                  "The promise: whose presence is hidden, and how well. docs/concepts/privacy.md "
                  "has the questions and their answers."},
                 [&](Fields& below) { DescribePrivacy(below, learner.privacy); });
  fields.Section({"participation",
                  "The steps that an event or a user takes part in. Modes `allocate` and `poisson` "
                  "have held periods."},
                 [&](Fields& below) { DescribeParticipation(below, learner); });
  fields.Section({"optimizer",
                  "The optimiser of models that descend along gradients. `kind`, `momentum`, "
                  "`moments` and `ema` are fixed for the life of a learner."},
                 [&](Fields& below) {
                   DescribeOptimizer(below, learner.optimizer, learner.model.traits().descends);
                 });
  fields.Section(
      {"quality",
       "Noised figures that show everybody how well a model of clicks predicts: `GET /v1/quality`, "
       "`tacit_private_auc`. Predictions, made before learning, are counted by what came of them. "
       "Without the section nothing is shown or charged. For unit `event`, participation `once`, "
       "and mechanisms with privacy that cover labels."},
      [&](Fields& below) {
        Quality& quality = learner.quality;
        below.Integer({"steps",
                       "Steps of a window, whose counts are released with noise. Fewer: noise is "
                       "more of it. 0: nothing is shown."},
                      &quality.steps, 0, 1'000'000'000);
        const Use use = UsedIf(quality.given());
        below.Integer(
            {"bins",
             "Bins of predictions for each label, of equal width in log-odds from -8 to 8. Fewer: "
             "less noise, and a lower AUC, since predictions of a bin count as alike."},
            &quality.bins, 2, 1024, use);
        below.Number({"epsilon",
                      "The epsilon that each event pays for being counted, over all its passes; an "
                      "account of its own in the ledger. Required with `steps`."},
                     &quality.epsilon, {.min = 0, .max = 1e6, .above_min = true}, use);
        below.Number(
            {"delta",
             "The delta of that account, which cannot change in a store. Required with `steps`."},
            &quality.delta, {.min = 0, .max = 1, .above_min = true, .below_max = true}, use);
      });
}

// Only what a record adds to one count of one window is covered by the noise of these counts.
Status CheckQuality(const Place& place, const Learner& learner) {
  const Quality& quality = learner.quality;
  if (!quality.given()) {
    for (const char* key : {"epsilon", "delta", "bins"})
      if (place.Key(key).tree() != nullptr)
        return place.Key("steps").Fail(
            fmt::format("is 0, so that nothing is shown or charged, and {} says that something is: "
                        "name the steps of a window, 100 say, or leave the section out",
                        key));
    return {};
  }
  for (const auto& [key, value] : {std::pair("epsilon", quality.epsilon), {"delta", quality.delta}})
    if (!value) return place.Key(key).Fail("required where quality is shown, and has no default");
  if (learner.model.recommends())
    return place.Fail("is for models of clicks: it counts their predictions by what came of them");
  if (learner.privacy.of_users())
    return place.Fail(
        "is for unit event: a user's records would be in several counts and windows, and the noise "
        "covers one");
  if (learner.participation.mode != Participation::Mode::kOnce)
    return place.Fail("is for participation once, in which each record is predicted once a pass");
  if (!std::isfinite(learner.privacy.epsilon))
    return place.Fail(
        "is for learners with privacy: without, each prediction depends on all records before it, "
        "and no noise would cover that");
  if (learner.mechanism.kind == Mechanism::Kind::kForward)
    return place.Fail("is not for mechanism forward, whose model does not cover labels");
  return {};
}

Status CheckLearners(const Place& place, const std::vector<Learner>& learners, const Source& source,
                     const Catalogue& catalogue) {
  std::set<std::string> ids;
  for (size_t i = 0; i < learners.size(); ++i) {
    const Learner& learner = learners[i];
    const Place item = place.Item(i);
    if (!GoodId(learner.id)) {
      return item.Key("id").Fail(
          fmt::format("must be of a-z, 0-9, _ and - only, is '{}'", learner.id));
    }
    if (!ids.insert(learner.id).second) {
      return item.Key("id").Fail(fmt::format("another learner is called '{}' too", learner.id));
    }
    TACIT_RETURN_IF_ERROR(CheckPrivacy(item, learner));
    TACIT_RETURN_IF_ERROR(CheckNextItem(item, learner, source, catalogue));
    TACIT_RETURN_IF_ERROR(CheckGuard(item, learner));
    const bool of_users = learner.privacy.of_users();
    if (of_users) TACIT_RETURN_IF_ERROR(CheckUsers(item, learner, source));
    TACIT_RETURN_IF_ERROR(CheckCopies(item, learner, source));
    TACIT_RETURN_IF_ERROR(
        CheckParticipation(item.Key("participation"), learner.participation, source, of_users));
    TACIT_RETURN_IF_ERROR(
        CheckMechanism(item.Key("mechanism"), learner.mechanism, learner.participation));
    TACIT_RETURN_IF_ERROR(CheckCarriers(item, learner));
    TACIT_RETURN_IF_ERROR(CheckQuality(item.Key("quality"), learner));
    TACIT_RETURN_IF_ERROR(CheckBelowNoise(item, learner, source));
    const std::string_view without_noise = learner.optimizer.traits().without_noise;
    if (!without_noise.empty() && learner.model.traits().descends &&
        !learner.mechanism.traits().adds_noise)
      return item.Key("optimizer").Key("kind").Fail(without_noise);
    const bool once = learner.participation.mode == Participation::Mode::kOnce;
    const uint32_t allowed = learner.participation.max_participations;
    // For unit user no check is needed: a user whose allowance is used up is left out of every
    // pass.
    if (once && !of_users && allowed < source.passes) {
      return item.Key("participation")
          .Key("max_participations")
          .Fail(fmt::format("{} is less than source.passes {}: each pass is a participation of "
                            "every event, and is charged",
                            allowed, source.passes));
    }
  }
  return {};
}

void DescribeBudget(Fields& fields, Budget& budget) {
  fields.Number({"epsilon", "The epsilon of the total. Required in this section."}, &budget.epsilon,
                {.min = 0, .max = kEpsilonMost, .above_min = true});
  fields.Number({"delta", "The delta at which the total is stated. Required in this section."},
                &budget.delta, kProbability);
  fields.Enum({"on_exhausted",
               "`stop-learning`: serving continues.\n`exit`: tacitd ends with status 4 once no "
               "learner may learn."},
              &budget.on_exhausted, kOnExhausted, UsedIf(budget.given()));
}

Status CheckBudget(const Place& place, const Budget& budget, const std::vector<Learner>& learners) {
  if (place.tree() == nullptr) return {};
  for (const auto& [key, value] : {std::pair("epsilon", budget.epsilon), {"delta", budget.delta}}) {
    if (value) continue;
    return place.Key(key).Fail("required where there is a total budget, and has no default");
  }
  for (const Learner& learner : learners) {
    if (learner.mechanism.traits().adds_noise) continue;
    return place.Key("epsilon").Fail(
        fmt::format("learner '{}' has mechanism none, so that the total has no bound: no total "
                    "budget can be kept",
                    learner.id));
  }
  return {};
}

}  // namespace tacit::config
