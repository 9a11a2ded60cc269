#include "inspect/proposed_learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/text.h"
#include "base/words.h"
#include "inspect/rules.h"
#include "inspect/source_yaml.h"
#include "wiring/assembly.h"
#include "wiring/plans/noise_plan.h"
#include "wiring/signal.h"

namespace tacit::inspect {
namespace {

constexpr double kRoomOfEstimate = 1.25;  // for files whose lengths are estimated

double RecordsOf(const Sample& sample) { return std::max(1.0, sample.lines_in_all); }

}  // namespace

std::optional<uint64_t> FileRecords(const Sample& sample) {
  if (sample.topic() != nullptr) return std::nullopt;
  const auto files = static_cast<double>(std::max<size_t>(1, sample.records->origins().size()));
  return static_cast<uint64_t>(std::ceil(RecordsOf(sample) / files));
}

ProposedLearner::ProposedLearner(const Sample& sample, const Roles& roles, const Evidence& evidence,
                                 const Asked& asked, LearnerChoice choice, bool beside)
    : sample_(sample),
      roles_(roles),
      evidence_(evidence),
      asked_(asked),
      choice_(choice),
      beside_(beside) {
  PlanPeriods();
}

std::string ProposedLearner::Yaml() const {
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
      yaml += "  - id: next\n" +
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

void ProposedLearner::PlanPeriods() {
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
void ProposedLearner::PlanFiles() {
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
void ProposedLearner::PlanRest() {
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
std::vector<double> ProposedLearner::FileOffsets() const {
  if (!asked_.held() && !sample_.offsets_of_file.empty()) return sample_.offsets_of_file;
  return {std::reduce(sample_.offsets_of_file.begin(), sample_.offsets_of_file.end(),
                      sample_.offsets_of_file.empty() ? RecordsOf(sample_) : 0)};
}

std::string ProposedLearner::FilesYaml() const {
  if (step_files_ == 1) return "";
  return CommentLines(6, fmt::format("A file has some {}, too few beside the noise of a release: "
                                     "this number of file ends closes one. Fewer: learnt sooner, "
                                     "with more noise.",
                                     Counted(*FileRecords(sample_), "record"))) +
         fmt::format("      step_files: {}\n", step_files_);
}

uint64_t ProposedLearner::Categories() const {
  return static_cast<uint64_t>(std::ranges::count_if(roles_.features, [](const FeatureRole& f) {
    return f.kind != config::Feature::Kind::kDense;
  }));
}

std::string ProposedLearner::NetworkYaml() const {
  const NetworkRule rule = NetworkFor(Categories());
  return "  - id: clicks\n" +
         CommentLines(4,
                      (asked_.held() ? fmt::format("The linear model releases each period once, so "
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

std::string ProposedLearner::OptimizerYaml() const {
  if (choice_ != LearnerChoice::kNetwork) return "";
  const NetworkRule rule = NetworkFor(Categories());
  return CommentLines(4, "As config/demo.yaml has them: rows move further, as most are rare.") +
         fmt::format("    optimizer: {{kind: adam, learning_rate: {}, row_learning_rate: {}}}\n",
                     rule.learning_rate, rule.row_learning_rate);
}

std::string ProposedLearner::ParticipationYaml() const {
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
    yaml += CommentLines(
                6, fmt::format("Privacy: {} that a user may be in, ever. Noise goes with the root "
                               "of it, and who has used it up is left out; {} of each of {} "
                               "leave{} most to be learnt. Epsilon is that of all of them.{}",
                               asked_.held() ? "steps" : "periods", Counted(allowance_, "period"),
                               Counted(visits_.periods.size(), "user"), allowance_ == 1 ? "s" : "",
                               Choices())) +
            fmt::format("      max_participations: {}\n", Allowance(allowance_));
  else if (!asked_.unit && roles_.user)
    yaml += CommentLines(6, fmt::format("With unit user, the periods that a user may be in, ever; "
                                        "noise goes with the root of it: max_participations: {}.{}",
                                        Allowance(allowance_), Choices()));
  return yaml;
}

// The noise that each number of a user's periods costs, and the records that it leaves out.
std::string ProposedLearner::Choices() const {
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
    choices += fmt::format("{}{}: {:.3g}, {}", choices.empty() ? "" : "; ", Allowance(k), *noise,
                           PercentText(LeftOutShare(visits_, k)));
  }
  return fmt::format(" The noise at epsilon {}, and the share of {} that is left out: {}.",
                     learner.privacy.epsilon,
                     visits_.records.empty() ? "the users' periods" : "records", choices);
}

std::string ProposedLearner::RecordsOfAPeriod() const {
  if (sample_.topic() != nullptr) return "Records of a period, which source.tick_ms may close too.";
  return step_files_ == 1 ? "Records of a period; a file's end closes it too."
                          : "Records of a period, which the files of step_files close too.";
}

std::string ProposedLearner::BatchYaml() const {
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
    return CommentLines(6, fmt::format("{} As many as there are, up to a million: each period adds "
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
             6,
             fmt::format(
                 "{} {} {}", RecordsOfAPeriod(),
                 by_epsilon ? "By epsilon: 150,000 over its root, 50,000 at least."
                            : fmt::format("A quarter of some {} records, 10,000 at least, and "
                                          "more where a short period would be left at the end.",
                                          WithThousands(static_cast<uint64_t>(RecordsOf(sample_)))),
                 price)) +
         fmt::format("      batch: {}\n", period_);
}

uint64_t ProposedLearner::HeldBatch() const {
  return RowOf(config::kModels, config::ModelKind::kPctr).batch;
}
uint64_t ProposedLearner::HeldSteps() const {
  return std::max<uint64_t>(1, (period_ + HeldBatch() - 1) / HeldBatch());
}

uint64_t ProposedLearner::Allowance(uint64_t periods) const {
  return std::min<uint64_t>(1'000'000, periods * (asked_.held() ? HeldSteps() : 1));
}

std::string ProposedLearner::HeldYaml() const {
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

std::string ProposedLearner::PrivacyYaml() const {
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
std::string ProposedLearner::Prices() const {
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

config::Learner ProposedLearner::ForPrices() const {
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
  if (asked_.mode == "poisson") learner.participation.mode = config::Participation::Mode::kPoisson;
  if (asked_.mode == "allocate")
    learner.participation.mode = config::Participation::Mode::kAllocate;
  if (learner.privacy.of_users())
    learner.participation.max_participations = static_cast<uint32_t>(Allowance(allowance_));
  return learner;
}

}  // namespace tacit::inspect
