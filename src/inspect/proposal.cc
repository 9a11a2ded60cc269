#include "inspect/proposal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/text.h"
#include "inspect/rules.h"
#include "inspect/source_yaml.h"
#include "inspect/topic_report.h"
#include "wiring/assembly.h"
#include "wiring/plans/noise_plan.h"
#include "wiring/signal.h"

namespace tacit::inspect {
namespace {

constexpr uint64_t kMemoryDefault = uint64_t{2} << 30, kMemoryMost = uint64_t{1} << 50;
constexpr double kDeltaForPrices = 1e-6;
constexpr double kRoomOfEstimate = 1.25;  // for files whose lengths are estimated

enum class LearnerChoice : uint8_t { kLinear, kNetwork, kNextItem };

tl::unexpected<Error> CannotPropose(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

double RecordsOf(const Sample& sample) { return std::max(1.0, sample.lines_in_all); }

// The mean of a file; nothing of a topic.
std::optional<uint64_t> FileRecords(const Sample& sample) {
  if (sample.topic() != nullptr) return std::nullopt;
  const auto files = static_cast<double>(std::max<size_t>(1, sample.records->origins().size()));
  return static_cast<uint64_t>(std::ceil(RecordsOf(sample) / files));
}

// A learner of the proposal, and the numbers that it follows from.
class OneLearner {
 public:
  OneLearner(const Sample& sample, const Roles& roles, const Evidence& evidence, const Asked& asked,
             LearnerChoice choice, bool beside)
      : sample_(sample),
        roles_(roles),
        evidence_(evidence),
        asked_(asked),
        choice_(choice),
        beside_(beside) {
    PlanPeriods();
  }

  bool is_next_item() const { return choice_ == LearnerChoice::kNextItem; }
  std::string Yaml() const {
    std::string yaml;
    switch (choice_) {
      case LearnerChoice::kLinear:
        yaml += "  - id: clicks\n" +
                CommentLines(4,
                             "One weight a value, out of a period's noised sums: the best click "
                             "model here at any epsilon, and nothing to tune. It needs no clip: a "
                             "record's part in a sum is bounded as it is.") +
                "    model: {kind: linear}\n    mechanism: {kind: sums}\n";
        break;
      case LearnerChoice::kNextItem:
        yaml +=
            "  - id: next\n" +
            CommentLines(4, fmt::format("There are users and items, and {}: counts of which item "
                                        "follows which. A user's counts are one vector of "
                                        "bounded length: there is no clip to set.{}",
                                        beside_        ? "a public list of items"
                                        : roles_.label ? "nothing else to foretell by"
                                                       : "no label to foretell",
                                        beside_ ? " Records of label 1 count. Its "
                                                  "epsilon is its own, and what it and the model "
                                                  "of labels tell of a user adds up."
                                                : "")) +
            "    model: {kind: transitions}\n    mechanism: {kind: counts}\n";
        break;
      case LearnerChoice::kNetwork:
        yaml += NetworkYaml();
        break;
    }
    return yaml + ParticipationYaml() + PrivacyYaml() + OptimizerYaml() + '\n';
  }

 private:
  void PlanPeriods() {
    period_ = is_next_item() ? CountsPeriodRecords(RecordsOf(sample_))
                             : PeriodRecords(asked_.epsilon, RecordsOf(sample_));
    // The configuration's own rule begins with short periods, so that it fits any log. Users have
    // theirs by the log's length: an allowance would be used up by short ones.
    batch_by_rule_ = choice_ == LearnerChoice::kLinear && !asked_.of_users();
    if (choice_ == LearnerChoice::kNetwork && !asked_.held()) period_ = HeldBatch();  // a step
    if (asked_.held()) period_ = std::min(period_, static_cast<uint64_t>(RecordsOf(sample_)));
    PlanFiles();
    PlanRest();
    if (!roles_.user) return;
    visits_ = evidence_.Visits(*roles_.user, StepStarts(FileOffsets(), period_, step_files_));
    const uint64_t pairs = std::reduce(visits_.periods.begin(), visits_.periods.end(), uint64_t{0});
    allowance_ = UserAllowance(visits_.periods);
    const double periods =
        std::ceil(static_cast<double>(sample_.rows) / static_cast<double>(period_));
    users_of_period_ = static_cast<double>(pairs) / std::max(1.0, periods);
  }

  // A step has as many files of few records as make a period, or, by the configuration's own rule,
  // its first one.
  void PlanFiles() {
    const std::optional<uint64_t> file = FileRecords(sample_);
    if (asked_.held() || !file || sample_.records->origins().size() < 2) return;
    const uint64_t wanted = batch_by_rule_ ? wiring::kEnoughRecords : period_;
    if (*file >= std::min(wanted, wiring::kEnoughRecords)) return;
    step_files_ = std::min<uint64_t>((wanted + *file - 1) / *file, 1'000'000);
    // The first period ends by its batch, within a file, whose end counts in the next one.
    if (batch_by_rule_ && step_files_ > 1) ++step_files_;
  }

  // Periods are counted in offsets, and a header is one. A step of several files is ended by the
  // files alone, so that its batch has room for the longest.
  void PlanRest() {
    if (asked_.held() || batch_by_rule_ || choice_ == LearnerChoice::kNetwork ||
        sample_.offsets_of_file.empty())
      return;
    const std::vector<double>& files = sample_.offsets_of_file;
    double longest = 0;
    for (size_t first = 0; first < files.size(); first += step_files_) {
      double offsets = 0;
      for (size_t i = first; i < std::min(files.size(), first + step_files_); ++i)
        offsets += std::round(files[i]);
      longest = std::max(longest, offsets);
    }
    if (!sample_.whole) longest *= kRoomOfEstimate;
    const auto offsets = static_cast<uint64_t>(std::ceil(longest / 100) * 100);
    if (step_files_ > 1)
      period_ = std::max(period_, offsets);
    else if (sample_.whole || offsets < 2 * period_)
      period_ = WithoutShortRest(period_, static_cast<uint64_t>(std::ceil(longest)));
  }
  // Held periods, and a topic's, do not end with files.
  std::vector<double> FileOffsets() const {
    if (!asked_.held() && !sample_.offsets_of_file.empty()) return sample_.offsets_of_file;
    return {std::reduce(sample_.offsets_of_file.begin(), sample_.offsets_of_file.end(),
                        sample_.offsets_of_file.empty() ? RecordsOf(sample_) : 0)};
  }
  std::string FilesYaml() const {
    if (step_files_ == 1) return "";
    return CommentLines(6, fmt::format("A file has some {}, too few beside the noise of a release: "
                                       "this number of file ends closes one. Fewer: learnt sooner, "
                                       "with more noise.",
                                       Counted(*FileRecords(sample_), "record"))) +
           fmt::format("      step_files: {}\n", step_files_);
  }

  uint64_t Categories() const {
    return static_cast<uint64_t>(std::ranges::count_if(roles_.features, [](const FeatureRole& f) {
      return f.kind != config::Feature::Kind::kDense;
    }));
  }

  std::string NetworkYaml() const {
    const NetworkRule rule = NetworkFor(Categories());
    return "  - id: clicks\n" +
           CommentLines(
               4, (asked_.held() ? fmt::format("The linear model releases each period once, so "
                                               "that it has nothing to sample; with mode {} it "
                                               "is the network.",
                                               *asked_.mode)
                                 : "The linear model needs a column of one value for each "
                                   "record, of a million values at most; here it is the "
                                   "network.") +
                      std::string(" Small layers: noise goes with the number of "
                                  "parameters.")) +
           fmt::format("    model: {{kind: pctr, hidden: [{}, {}]}}\n", rule.hidden[0],
                       rule.hidden[1]) +
           CommentLines(4, fmt::format("threshold: a row is updated where some 46 events of a step "
                                       "have it; each adds one over the root of its {}. "
                                       "gradient_clip: few gradients are longer. Neither costs "
                                       "epsilon: noise goes with the clip.",
                                       Counted(Categories(), "categorical feature"))) +
           fmt::format("    mechanism: {{kind: adafest, threshold: {}, gradient_clip: {}}}\n",
                       rule.threshold, rule.gradient_clip);
  }
  std::string OptimizerYaml() const {
    if (choice_ != LearnerChoice::kNetwork) return "";
    const NetworkRule rule = NetworkFor(Categories());
    return CommentLines(4, "As config/demo.yaml has them: rows move further, as most are rare.") +
           fmt::format("    optimizer: {{kind: adam, learning_rate: {}, row_learning_rate: {}}}\n",
                       rule.learning_rate, rule.row_learning_rate);
  }

  std::string ParticipationYaml() const {
    std::string yaml = "    participation:\n";
    if (!asked_.mode)
      yaml += CommentLines(
          6, fmt::format("Privacy, to be filled in. once: each event is in one "
                         "release or step, as it comes{}.",
                         is_next_item()                      ? "; counts can have no other"
                         : choice_ == LearnerChoice::kLinear ? "; a linear model can have no other"
                                                             : ""));
    yaml += asked_.mode ? fmt::format("      mode: {}\n", *asked_.mode) : "      mode:\n";
    yaml += asked_.held() ? HeldYaml() : BatchYaml() + FilesYaml();
    const bool users = asked_.of_users() || is_next_item();
    if (users)
      yaml +=
          CommentLines(
              6, fmt::format("Privacy: {} that a user may be in, ever. Noise goes with the root "
                             "of it, and who has used it up is left out; {} of each of {} "
                             "leave{} most to be learnt. Epsilon is that of all of them.{}",
                             asked_.held() ? "steps" : "periods", Counted(allowance_, "period"),
                             Counted(visits_.periods.size(), "user"), allowance_ == 1 ? "s" : "",
                             Choices())) +
          fmt::format("      max_participations: {}\n", Allowance(allowance_));
    else if (!asked_.unit && roles_.user)
      yaml +=
          CommentLines(6, fmt::format("With unit user, the periods that a user may be in, ever; "
                                      "noise goes with the root of it: max_participations: {}.{}",
                                      Allowance(allowance_), Choices()));
    return yaml;
  }

  // The noise that each number of a user's periods costs, and the records that it leaves out.
  std::string Choices() const {
    const uint32_t most = visits_.periods.empty() ? 1 : std::ranges::max(visits_.periods);
    if (most == 1)
      return " No user of these records comes in a second period; one who does so later is left "
             "out.";
    std::set<uint32_t> numbers = {allowance_};
    for (uint32_t k = 1; k <= most; k *= 2) numbers.insert(k);
    config::Learner learner = ForPrices();
    learner.privacy.unit = privacy::Unit::kUser;
    learner.privacy.epsilon = asked_.epsilon.value_or(1);
    std::string choices;
    for (const uint32_t k : numbers) {
      learner.participation.max_participations = static_cast<uint32_t>(Allowance(k));
      const auto noise = wiring::StepNoise(learner, wiring::ExposureOf(learner, {}));
      if (!noise) return "";
      choices += fmt::format("{}{}: {:.3g}, {:.1f} %", choices.empty() ? "" : "; ", Allowance(k),
                             *noise, 100 * LeftOutShare(visits_, k));
    }
    return fmt::format(" The noise at epsilon {}, and the share of {} that is left out: {}.",
                       learner.privacy.epsilon,
                       visits_.records.empty() ? "the users' periods" : "records", choices);
  }

  std::string RecordsOfAPeriod() const {
    if (sample_.topic() != nullptr)
      return "Records of a period, which source.tick_ms may close too.";
    return step_files_ == 1 ? "Records of a period; a file's end closes it too."
                            : "Records of a period, which the files of step_files close too.";
  }

  std::string BatchYaml() const {
    const std::string price =
        "Its price: a longer period has less noise a record, and is learnt "
        "later.";
    if (batch_by_rule_)
      return CommentLines(6,
                          "batch, the records of a period, follows from epsilon where it is not "
                          "set: 150,000 at 1, 53,000 at 8. With unit event the first period has "
                          "10,000 records, and each later period a quarter more, up to batch. " +
                              price);
    if (is_next_item())
      return CommentLines(6,
                          fmt::format("{} As many as there are, up to a million: each period adds "
                                      "its noise to the counts. {}",
                                      RecordsOfAPeriod(), price)) +
             fmt::format("      batch: {}\n", period_);
    if (choice_ == LearnerChoice::kNetwork)
      return CommentLines(6,
                          "Records of a step, the default. Its price: a larger step has less "
                          "noise a record, and there are fewer.") +
             fmt::format("      batch: {}\n", period_);
    const bool by_epsilon = period_ >= config::DefaultPeriod(asked_.epsilon.value_or(1));
    return CommentLines(
               6, fmt::format(
                      "{} {} {}", RecordsOfAPeriod(),
                      by_epsilon
                          ? "By epsilon: 150,000 over its root, 50,000 at least."
                          : fmt::format("A quarter of some {} records, 10,000 at least, and "
                                        "more where a short period would be left at the end.",
                                        WithThousands(static_cast<uint64_t>(RecordsOf(sample_)))),
                      price)) +
           fmt::format("      batch: {}\n", period_);
  }

  // The steps pass once over a period.
  uint64_t HeldBatch() const { return RowOf(config::kModels, config::ModelKind::kPctr).batch; }
  uint64_t HeldSteps() const {
    return std::max<uint64_t>(1, (period_ + HeldBatch() - 1) / HeldBatch());
  }
  uint64_t Allowance(uint64_t periods) const {
    return std::min<uint64_t>(1'000'000, periods * (asked_.held() ? HeldSteps() : 1));
  }
  std::string HeldYaml() const {
    const double rate = 1 / static_cast<double>(HeldSteps());
    const double units = asked_.of_users() ? users_of_period_ : static_cast<double>(period_);
    const auto batch = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(rate * units)));
    std::string yaml =
        CommentLines(6, fmt::format("A period of {} records is held, and its steps pass over it "
                                    "once. Each step is charged; more steps cost more.",
                                    WithThousands(period_))) +
        fmt::format("      period: {}\n      steps_per_period: {}\n", period_, HeldSteps());
    if (asked_.mode == "poisson") yaml += fmt::format("      sampling_rate: {:.6g}\n", rate);
    return yaml +
           CommentLines(6, fmt::format("{} expected in a step: the public divisor.",
                                       asked_.of_users() ? "Users" : "Events")) +
           fmt::format("      batch: {}\n", batch);
  }

  std::string PrivacyYaml() const {
    std::string yaml = "    privacy:\n";
    if (!asked_.unit || !asked_.epsilon || !asked_.delta)
      yaml += CommentLines(6, "To be filled in. No data says what people were promised.");
    const bool next = is_next_item();
    if (asked_.unit)
      yaml += fmt::format("      unit: {}\n", *asked_.unit);
    else
      yaml += fmt::format("      unit:  # {}\n",
                          next          ? "user: a model of the next item can have no other"
                          : roles_.user ? "event: one record is hidden | user: all of a person's"
                                        : "event: these records name no user");
    yaml += Prices();
    yaml += asked_.epsilon ? fmt::format("      epsilon: {}\n", *asked_.epsilon)
                           : "      epsilon:  # above 0; 1 to 10 are usual, less hides more\n";
    const bool users = !visits_.periods.empty() && (asked_.of_users() || next);
    const double units =
        users ? static_cast<double>(visits_.periods.size()) : std::round(RecordsOf(sample_));
    yaml += asked_.delta ? fmt::format("      delta: {}\n", *asked_.delta)
                         : fmt::format("      delta:  # well below 1 / {}, the number of {}\n",
                                       WithThousands(static_cast<uint64_t>(units)),
                                       users ? "users" : "records");
    return yaml;
  }

  // The noise of a release or step, at some epsilons.
  std::string Prices() const {
    config::Learner learner = ForPrices();
    std::string prices;
    const wiring::Exposure exposure = wiring::ExposureOf(learner, {});
    std::vector<double> epsilons = {1, 3, 8};
    if (asked_.epsilon) epsilons = {*asked_.epsilon};
    for (const double epsilon : epsilons) {
      learner.privacy.epsilon = epsilon;
      const auto noise = wiring::StepNoise(learner, exposure);
      if (noise)
        prices += fmt::format("{}epsilon {}: {:.3g}", prices.empty() ? "" : ", ", epsilon, *noise);
    }
    if (prices.empty()) return "";
    return CommentLines(
        6, fmt::format("The price, as noise over a unit's bound in {} at delta {}: {}. Not more, "
                       "however long the stream runs.",
                       asked_.held() ? "a step" : "a release", learner.privacy.delta, prices));
  }
  config::Learner ForPrices() const {
    config::Learner learner;
    const bool next = is_next_item();
    learner.model.kind = next                                ? config::ModelKind::kTransitions
                         : choice_ == LearnerChoice::kLinear ? config::ModelKind::kLinear
                                                             : config::ModelKind::kPctr;
    learner.mechanism.kind = next                                ? config::MechanismKind::kCounts
                             : choice_ == LearnerChoice::kLinear ? config::MechanismKind::kSums
                                                                 : config::MechanismKind::kAdaFest;
    learner.privacy.unit = next || asked_.of_users() ? privacy::Unit::kUser : privacy::Unit::kEvent;
    learner.privacy.delta = asked_.delta.value_or(kDeltaForPrices);
    learner.participation.batch = asked_.held() ? HeldBatch() : period_;
    learner.participation.period = period_;
    learner.participation.steps_per_period = HeldSteps();
    learner.participation.sampling_rate = 1 / static_cast<double>(HeldSteps());
    if (asked_.mode == "poisson")
      learner.participation.mode = config::Participation::Mode::kPoisson;
    if (asked_.mode == "allocate")
      learner.participation.mode = config::Participation::Mode::kAllocate;
    if (learner.privacy.of_users())
      learner.participation.max_participations = static_cast<uint32_t>(Allowance(allowance_));
    return learner;
  }

  const Sample& sample_;
  const Roles& roles_;
  const Evidence& evidence_;
  const Asked& asked_;
  const LearnerChoice choice_;
  const bool beside_;  // the model of labels is proposed too
  uint64_t period_ = 0;
  bool batch_by_rule_ = false;
  uint64_t step_files_ = 1;
  uint32_t allowance_ = 1;
  UserVisits visits_;
  double users_of_period_ = 0;
};

class Proposer {
 public:
  Proposer(const Sample& sample, const Roles& roles, const Evidence& evidence, const Asked& asked)
      : sample_(sample), roles_(roles), evidence_(evidence), asked_(asked) {}

  Result<Proposal> Make() {
    TACIT_RETURN_IF_ERROR(CheckAsked());
    Choose();
    uint64_t memory = kMemoryDefault;
    while (true) {
      auto loaded = Load(memory);
      if (loaded) return loaded;
      const bool too_small = loaded.error().message.find("memory.total_bytes") != std::string::npos;
      if (!too_small || memory >= kMemoryMost)
        return Fail(std::move(loaded.error()).Context("the proposal does not load"));
      memory *= 2;
    }
  }

 private:
  Status CheckAsked() const {
    if (asked_.of_users() && !roles_.user)
      return CannotPropose("--unit user: no field of these records names a user");
    if (!roles_.are_meetings()) return {};
    constexpr std::string_view kWhy =
        "these records have no label, so that counts of what follows what learn from them: ";
    if (asked_.unit == "event")
      return CannotPropose(fmt::format("--unit event: {}their unit is the user", kWhy));
    if (asked_.held())
      return CannotPropose(fmt::format("--mode {}: {}their mode is once", *asked_.mode, kWhy));
    return {};
  }

  // The item is a feature too, so that a click model has one where there is nothing else.
  bool HasOwnFeatures() const {
    return std::ranges::any_of(roles_.features,
                               [&](const FeatureRole& f) { return f.column != roles_.item; });
  }

  // A linear model needs a column of one value for each event that is released whole.
  bool HasSingleColumn() const {
    const uint64_t most = config::Mechanism().whole_columns;
    return std::ranges::any_of(roles_.features, [&](const FeatureRole& f) {
      return f.kind != config::Feature::Kind::kMultiHot && RowsOf(sample_, roles_, f) <= most;
    });
  }

  LearnerChoice ChooseFirst() const {
    if (roles_.are_meetings()) return LearnerChoice::kNextItem;
    if (asked_.held() || !HasSingleColumn()) return LearnerChoice::kNetwork;
    const bool next = roles_.user && roles_.item && !HasOwnFeatures() && asked_.unit != "event";
    return next ? LearnerChoice::kNextItem : LearnerChoice::kLinear;
  }

  void Choose() {
    const auto add = [&](LearnerChoice choice) {
      learners_.emplace_back(sample_, roles_, evidence_, asked_, choice, !learners_.empty());
    };
    add(ChooseFirst());
    if (HasNextItem()) return;
    if (!roles_.user || !roles_.item) {
      if (!asked_.items.empty())
        next_item_ = fmt::format(
            "--items is not used: no field of these records names {}; --user and --item name them",
            roles_.user ? "an item" : "a user");
    } else if (asked_.held()) {
      next_item_ =
          fmt::format("no model of the next item is proposed: its mode is once, and --mode is {}",
                      *asked_.mode);
    } else if (asked_.unit == "event") {
      next_item_ =
          "no model of the next item is proposed: its unit is the user, and --unit is event";
    } else if (asked_.items.empty()) {
      next_item_ =
          "no model of the next item is proposed: it needs the public list of items, --items FILE";
    } else {
      next_item_ = "a model of the next item is proposed beside the model of labels";
      add(LearnerChoice::kNextItem);
    }
  }
  bool HasNextItem() const { return std::ranges::any_of(learners_, &OneLearner::is_next_item); }

  Result<Proposal> Load(uint64_t memory) {
    Proposal proposal;
    proposal.yaml = Yaml(memory);
    proposal.next_item = next_item_;
    const auto open = [&](const std::string& key, const std::string& value) {
      proposal.open_keys.push_back(key);
      proposal.filled.push_back(key + '=' + value);
    };
    if (roles_.label && roles_.label->values_open) {
      std::string values;
      for (const auto& [value, number] : roles_.label->values)
        values +=
            fmt::format("{}{}: {}", values.empty() ? "" : ", ", config::QuotedYaml(value), number);
      open(fmt::format("source.{}.label_values", NameOf(sample_.shape.format)), '{' + values + '}');
    }
    for (size_t i = 0; i < learners_.size(); ++i) {
      const std::string learner = fmt::format("learners.{}.", i);
      if (!asked_.unit)
        open(learner + "privacy.unit", learners_[i].is_next_item() ? "user" : "event");
      if (!asked_.epsilon) open(learner + "privacy.epsilon", "1");
      if (!asked_.delta) open(learner + "privacy.delta", fmt::format("{}", kDeltaForPrices));
      if (!asked_.mode) open(learner + "participation.mode", "once");
    }
    if (sample_.topic() != nullptr)
      for (const auto& [key, value] : TopicOpenKeys(sample_)) open(key, value);
    const bool without_items = HasNextItem() && asked_.items.empty();
    // Any name will do: a catalogue is not read before a learner is planned.
    if (without_items) open("catalogue.file", "items");
    TACIT_ASSIGN(proposal.config, config::Parse(proposal.yaml, "the proposal", proposal.filled));
    if (!without_items) {
      TACIT_ASSIGN(const wiring::Assembly assembly, wiring::Assemble(proposal.config));
      const config::Learner& learner = proposal.config.learners[0];
      const wiring::LearnerPlan& plan = assembly.learners[0];
      proposal.noise = fmt::format("at epsilon {}, {}", learner.privacy.epsilon,
                                   wiring::SignalText(learner, plan, FileRecords(sample_)));
      proposal.noise_in_units = plan.model->NoiseInUnits();
    }
    return proposal;
  }

  std::string Yaml(uint64_t memory) {
    std::string yaml =
        CommentLines(
            0,
            fmt::format("Proposed by `tacit inspect` out of {} of {}. {} Keys without a value are "
                        "for a person to fill in; until then tacitd does not start. "
                        "config/reference.yaml explains every key.",
                        Counted(sample_.lines, "record"), sample_.records->Whence(),
                        sample_.noised.empty() ? "The sample is raw: what was chosen by it is "
                                                 "not charged to any budget."
                                               : sample_.noised)) +
        '\n' + SourceYaml(sample_, roles_);
    if (HasNextItem()) yaml += CatalogueYaml();
    yaml += SchemaYaml(sample_, roles_);
    if (!next_item_.empty()) yaml += CommentLines(0, fmt::format("Next items: {}.", next_item_));
    yaml += "learners:\n";
    for (const OneLearner& learner : learners_) yaml += learner.Yaml();
    yaml += StoreYaml() + "memory:\n";
    yaml += CommentLines(2, memory == kMemoryDefault
                                ? "The default, in which these learners have room."
                                : "The least power of two in which these learners have room.");
    return yaml + fmt::format("  total_bytes: {}GiB\n", memory >> 30);
  }

  std::string CatalogueYaml() const {
    return CommentLines(0,
                        "The list of what may be recommended. It has to be public: ids taken from "
                        "these records would reveal them. A line `id`, or "
                        "`id::title::genre|genre`, for each item.") +
           fmt::format("catalogue:\n  file:{}\n\n",
                       asked_.items.empty() ? "  # to be filled in: a file of the publisher's"
                                            : ' ' + config::QuotedYaml(asked_.items));
  }

  std::string StoreYaml() const {
    if (!asked_.store.empty())
      return "store:\n" + CommentLines(2, "The store that the inspection is charged to.") +
             fmt::format("  path: {}\n  witness: {}\n\n", config::QuotedYaml(asked_.store),
                         config::QuotedYaml(asked_.witness));
    std::string base = asked_.output.empty() ? "tacit" : asked_.output;
    for (const std::string_view ending : {".yaml", ".yml"})
      if (base.size() > ending.size() && base.ends_with(ending))
        base.resize(base.size() - ending.size());
    return fmt::format("store:\n  path: {}\n", config::QuotedYaml(base + "-data/store")) +
           CommentLines(2,
                        "Better on another disk, in a folder that no backup puts back together "
                        "with the store.") +
           fmt::format("  witness: {}\n\n",
                       config::QuotedYaml(base + "-data-witness/store.witness"));
  }

  const Sample& sample_;
  const Roles& roles_;
  const Evidence& evidence_;
  const Asked& asked_;
  std::vector<OneLearner> learners_;
  std::string next_item_;
};

}  // namespace

std::string WhyNothingToLearn(const Roles& roles) {
  if (roles.are_meetings()) return "";
  if (roles.label_denied)
    return "these records have no label, as you say, so that a user and an item are needed";
  if (!roles.label)
    return "no field can be the label: a label is 0 or 1, one of a few words, or a number on a "
           "scale; it has two values at least and is there in nine records of ten. Without one, a "
           "user and an item are needed";
  if (roles.features.empty() && std::ranges::any_of(roles.profiles, &Profile::hidden))
    return "the noise hides the fields: more records or a larger epsilon";
  if (roles.features.empty()) return "there is a label, and no field to foretell it by";
  return "";
}

Result<Proposal> Propose(const Sample& sample, const Roles& roles, const Evidence& evidence,
                         const Asked& asked) {
  return Proposer(sample, roles, evidence, asked).Make();
}

Result<Proposal> Propose(const Sample& sample, const Roles& roles, const Asked& asked) {
  return Propose(sample, roles, *RawEvidence(sample), asked);
}

}  // namespace tacit::inspect
