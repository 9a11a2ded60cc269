#include "cli/evaluate/evaluate_sequence.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <thread>

#include "base/hash.h"
#include "base/text.h"
#include "base/tuned.h"
#include "console/exit_code.h"
#include "console/output_file.h"
#include "lab/next_item/methods.h"
#include "lab/next_item/sequence_experiment.h"

namespace tacit::cli {
namespace {

// Most users come in one period only, and a limit of one period needs the least noise.
constexpr uint32_t kUserPeriods = 1;

struct EvaluateSequenceOptions {
  std::string data, stream, items, item_ids;
  std::vector<std::string> learners, epsilons;
  double delta = 0;
  uint32_t seeds = 1, jobs = 1;
  double epochs = 0, batch = 0, learning_rate = 0;  // of trained learners, as are the settings
  std::vector<std::string> settings;
  uint64_t period = 0;  // of a stream, as are the next two
  std::vector<uint32_t> user_periods;
  double forget = 1;
  bool validate = false, json = false;
  std::string results, markdown, svg, curve_svg;
  double curve_every = 0;
};

// "none" is an infinite epsilon: no promise.
Result<std::vector<double>> ParseEpsilons(const std::vector<std::string>& texts) {
  std::vector<double> epsilons;
  for (const std::string& text : texts) {
    double epsilon = std::numeric_limits<double>::infinity();
    if (text != "none") {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), epsilon);
      if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(epsilon) ||
          epsilon <= 0)
        return BadUsage(fmt::format("--epsilon {}: a number above 0, or none", text));
    }
    epsilons.push_back(epsilon);
  }
  return epsilons;
}

Status CheckOptions(const EvaluateSequenceOptions& options) {
  if (!options.item_ids.empty() && options.items.empty())
    return BadUsage("--item-ids needs --items: it says which of them the data means");
  if (options.data.empty() && options.stream.empty())
    return BadUsage("give --data or --stream, a file of what users did");
  for (const std::string& learner : options.learners)
    TACIT_RETURN_IF_ERROR(lab::CheckSequenceMethod(learner));
  TACIT_RETURN_IF_ERROR(console::CheckAppendable("--results", options.results));
  TACIT_RETURN_IF_ERROR(console::CheckWritable("--markdown", options.markdown));
  TACIT_RETURN_IF_ERROR(console::CheckWritable("--curve-svg", options.curve_svg));
  return console::CheckWritable("--svg", options.svg);
}

// Prints the table first: hours of work are not lost to a file that cannot be written.
Status Show(const EvaluateSequenceOptions& options, const std::vector<lab::SequenceRow>& rows) {
  if (options.json)
    fmt::print("{}\n", boost::json::serialize(lab::SequenceJson(rows)));
  else
    fmt::print("{}", lab::SequenceTextTable(rows, options.period));
  std::fflush(stdout);
  TACIT_RETURN_IF_ERROR(
      console::WriteFile(options.markdown, lab::SequenceMarkdownTable(rows, options.period)));
  if (!options.curve_svg.empty())
    TACIT_RETURN_IF_ERROR(console::WriteFile(options.curve_svg, lab::DrawLearningCurves(rows)));
  if (options.svg.empty()) return {};
  return console::WriteFile(options.svg, lab::DrawSequenceFigure(rows));
}

// The identity of a catalogue in stored runs: a digest of all item features; "" without any.
std::string CatalogueIdentity(const model::transitions::PublicItems& catalogue) {
  if (!catalogue.described()) return "";
  Sha256 digest;
  for (uint32_t item = 0; item < catalogue.items(); ++item) {
    const auto& features = catalogue.features(item);
    digest.Update(fmt::format("{} {} {} {} {}\n", features.id, features.year, features.first_genre,
                              features.genres, features.words));
  }
  return ToHex(digest.Finish());
}

// Options left at 0 keep the defaults.
Result<lab::SequenceSetting> SettingFrom(const EvaluateSequenceOptions& options) {
  lab::SequenceSetting setting;
  lab::TrainedConstants& constants = setting.trained;
  if (!options.stream.empty()) constants = lab::TrainedConstants::ForStreams();
  if (options.epochs > 0) constants.epochs_private = constants.epochs_plain = options.epochs;
  if (options.batch > 0) constants.batch_private = constants.batch_plain = options.batch;
  if (options.learning_rate > 0)
    constants.learning_rate_private = constants.learning_rate_plain = options.learning_rate;
  for (const std::string& constant : options.settings) TACIT_RETURN_IF_ERROR(setting.Set(constant));
  setting.transitions.forget = options.forget;
  return setting;
}

// The events to learn from: a data set, or a stream with times.
Result<lab::SequenceStream> ReadEvents(const EvaluateSequenceOptions& options) {
  if (!options.stream.empty()) return lab::ReadSequenceStream(options.stream);
  lab::SequenceStream stream;
  TACIT_ASSIGN(stream.data, lab::ReadSequences(options.data));
  return stream;
}

Result<int> Evaluate(const EvaluateSequenceOptions& options) {
  TACIT_RETURN_IF_ERROR(CheckOptions(options));
  TACIT_ASSIGN(std::vector<double> epsilons, ParseEpsilons(options.epsilons));
  TACIT_ASSIGN(lab::SequenceSetting setting, SettingFrom(options));
  for (const double epsilon : epsilons)
    TACIT_RETURN_IF_ERROR(lab::CheckEpsilonDelta({.epsilon = epsilon, .delta = options.delta}));
  TACIT_ASSIGN(const lab::SequenceStream stream, ReadEvents(options));
  const lab::SequenceData& data = stream.data;
  model::transitions::PublicItems catalogue(data.histories.catalogue);
  if (!options.items.empty()) {
    TACIT_ASSIGN(catalogue, lab::ReadCatalogue(data, options.items, options.item_ids));
  }
  lab::SequenceResults results(options.results);
  TACIT_RETURN_IF_ERROR(results.Load());
  const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  setting.catalogue = &catalogue;
  lab::SequenceExperiment experiment{
      .learners = options.learners,
      .epsilons = std::move(epsilons),
      .delta = options.delta,
      .seeds = options.seeds,
      .jobs = options.jobs,
      .workers = options.jobs > 1 ? 1 : cores,
      .validate = options.validate,
      .look_epochs = options.curve_svg.empty() ? 0 : options.curve_every,
      .catalogue = CatalogueIdentity(catalogue),
      .show_progress = isatty(STDERR_FILENO) == 1};
  if (!options.stream.empty()) {
    experiment.period_events = options.period;
    experiment.user_periods = options.user_periods;
  }
  TACIT_ASSIGN(const std::vector<lab::SequenceRow> rows,
               lab::RunSequenceExperiment(stream, setting, experiment, &results));
  TACIT_RETURN_IF_ERROR(Show(options, rows));
  return int{console::kExitDone};
}

// A default that depends on what is learnt, and how.
std::string PacesText(double tuned::Pace::*field) {
  return fmt::format("{}, without privacy {}; of a stream {} and {}", tuned::kAtOncePrivate.*field,
                     tuned::kAtOncePlain.*field, tuned::kStreamPrivate.*field,
                     tuned::kStreamPlain.*field);
}

void AddStreamOptions(CLI::App& sequence, CLI::Option* data,
                      const std::shared_ptr<EvaluateSequenceOptions>& options) {
  auto* stream = sequence
                     .add_option("--stream", options->stream,
                                 "Lines `user item rating timestamp` in order of time, also with "
                                 "commas: each event is predicted, then learnt from")
                     ->excludes(data);
  sequence
      .add_option("--period", options->period,
                  "Of a stream: records that are learnt from at once, after all are predicted")
      ->default_val(5000)
      ->check(CLI::Range(1, 1'000'000'000))
      ->needs(stream);
  sequence
      .add_option("--user-periods", options->user_periods,
                  "Of a stream: the most periods that a user is learnt from; the promise is split "
                  "over them; several with commas, each a row")
      ->default_str(std::to_string(kUserPeriods))
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000))
      ->needs(stream);
  sequence
      .add_option("--forget", options->forget,
                  "Of a stream: what a period counts for in the next, of what it did; 1: for ever")
      ->default_val(1)
      ->check(NumberFrom(0.0, 1.0))
      ->needs(stream);
}

}  // namespace

void AddEvaluateSequence(CLI::App& evaluate, Action* chosen) {
  auto options = std::make_shared<EvaluateSequenceOptions>();
  auto* sequence = evaluate.add_subcommand(
      "sequence",
      "Next-item recommendation: learn from all but the last item of every user, rank "
      "the whole catalogue, ask for the last; or, of a stream, predict, then learn");
  auto* data = sequence->add_option("--data", options->data,
                                    "Lines `user item` in order of time; may be gzip");
  AddStreamOptions(*sequence, data, options);
  sequence
      ->add_option("--epsilon", options->epsilons,
                   "Promised to every user, several with commas; none: no noise")
      ->required()
      ->delimiter(',');
  sequence->add_option("--delta", options->delta, "Of every epsilon")
      ->default_val(1e-5)
      ->check(NumberFrom(1e-300, 0.5));
  sequence
      ->add_option("--learner", options->learners,
                   "transitions, transitions-no-items, popularity, transitions+ranker; trained: "
                   "dpformer, transformer, "
                   "transformer-untied, gru, lstm, transitions+transformer; several with commas")
      ->default_str("transitions")
      ->delimiter(',');
  sequence
      ->add_option(
          "--epochs", options->epochs,
          "Of trained learners: how often each user is seen; in a private stream, steps of "
          "a period, each with all its users")
      ->default_str(PacesText(&tuned::Pace::epochs))
      ->check(NumberFrom(1e-3, 1e6));
  sequence
      ->add_option("--batch", options->batch,
                   "Of trained learners: users a step takes on average; in a private stream, the "
                   "public number that a period's sums are divided by")
      ->default_str(PacesText(&tuned::Pace::batch))
      ->check(NumberFrom(1.0, 1e9));
  sequence->add_option("--learning-rate", options->learning_rate, "Of trained learners")
      ->default_str(PacesText(&tuned::Pace::learning_rate))
      ->check(NumberFrom(1e-9, 1e3));
  sequence
      ->add_option("--set", options->settings,
                   fmt::format("NAME=VALUE, a constant of trained learners or of the ranker; again "
                               "for another. There are {}",
                               fmt::join(lab::SequenceSetting::Names(), ", ")))
      ->expected(1)
      ->take_all();
  sequence->add_option("--items", options->items,
                       "What the public knows of items: lines `id::title (year)::genre|genre`");
  sequence->add_option("--item-ids", options->item_ids,
                       "Lines `item id`: which of --items an item of the data is");
  sequence->add_option("--seeds", options->seeds, "Runs of each, with fresh noise")
      ->default_val(1)
      ->check(CLI::Range(1, 1000));
  sequence->add_option("--jobs", options->jobs, "Runs at a time, each on one thread if above 1")
      ->default_val(1)
      ->check(CLI::Range(1, 256));
  sequence
      ->add_flag("--validate", options->validate,
                 "Ask for the item before the last and leave the last out: what constants are "
                 "to be chosen on")
      ->needs(data);
  sequence->add_option("--results", options->results,
                       "Keep each finished run here (JSON lines); what is there is not run again");
  sequence->add_option("--markdown", options->markdown, "Write the table to this file");
  sequence->add_option("--svg", options->svg,
                       "Write NDCG@10 against epsilon to this file; of a stream, over its tenths");
  auto* curve = sequence
                    ->add_option("--curve-svg", options->curve_svg,
                                 "Write NDCG@10 and HIT@10 of trained learners, as they learn, to "
                                 "this file")
                    ->needs(data);
  sequence->add_option("--curve-every", options->curve_every, "Epochs between two points of it")
      ->default_val(5)
      ->check(NumberFrom(1e-3, 1e6))
      ->needs(curve);
  sequence->add_flag("--json", options->json, "Print JSON");
  sequence->footer(
      "Examples:\n  tacit evaluate sequence --data ml-1m.txt.gz --epsilon 1,5,8,10,none --seeds 3\n"
      "  tacit evaluate sequence --data ml-1m.txt.gz --items movies.dat --item-ids item-ids.txt "
      "--learner transitions,transitions-no-items,popularity --epsilon 5,10 --seeds 5 --results "
      "runs.jsonl --markdown table.md --svg figure.svg\n"
      "  tacit evaluate sequence --stream ml-100k_stream.tsv --period 5000 --user-periods 1,2,4 "
      "--epsilon 5,none --learner transitions,popularity --svg curve.svg");
  sequence->callback([options, chosen] {
    if (options->learners.empty()) options->learners = {"transitions"};
    if (options->user_periods.empty()) options->user_periods = {kUserPeriods};
    *chosen = [options] { return Evaluate(*options); };
  });
}

}  // namespace tacit::cli
