#include "lab/next_item/sequence_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "base/text.h"
#include "console/json_number.h"
#include "console/text_table.h"
#include "lab/line_figure.h"

namespace tacit::lab {
namespace {

namespace json = boost::json;

bool OfStream(const std::vector<SequenceRow>& rows) { return rows[0].user_periods > 0; }

std::string EpsilonText(double epsilon) {
  return std::isfinite(epsilon) ? fmt::format("epsilon {:g}", epsilon) : "no privacy";
}

// Distinguishes the rows of one epsilon.
std::string LearnerText(const SequenceRow& row) {
  if (row.user_periods == 0) return row.learner;
  return fmt::format("{}, {} period{} a user", row.learner, row.user_periods,
                     row.user_periods == 1 ? "" : "s");
}

// The distinct values, in order of first appearance.
template <class Of>
auto Distinct(const std::vector<SequenceRow>& rows, const Of& of) {
  std::vector<decltype(of(rows[0]))> values;
  for (const SequenceRow& row : rows)
    if (std::ranges::find(values, of(row)) == values.end()) values.push_back(of(row));
  return values;
}
std::vector<double> Epsilons(const std::vector<SequenceRow>& rows) {
  return Distinct(rows, [](const SequenceRow& row) { return row.epsilon; });
}

console::TextLines OverallTable(const std::vector<SequenceRow>& rows) {
  console::TextLines table{{"NDCG@10 / HIT@10, %"}};
  const auto epsilons = Epsilons(rows);
  for (const double epsilon : epsilons) table[0].push_back(EpsilonText(epsilon));
  for (const std::string& learner : Distinct(rows, LearnerText)) {
    std::vector<std::string>& line = table.emplace_back(std::vector{learner});
    for (const double epsilon : epsilons) {
      const auto row = std::ranges::find_if(rows, [&](const SequenceRow& r) {
        return LearnerText(r) == learner && r.epsilon == epsilon;
      });
      line.push_back(
          row == rows.end() ? "" : PercentText(row->ndcg10) + " / " + PercentText(row->hit10));
    }
  }
  return table;
}

console::TextLines TenthsTable(const std::vector<SequenceRow>& rows) {
  console::TextLines lines{{"NDCG@10, %, by tenths of the stream", ""}};
  for (size_t t = 1; t <= rows[0].tenths.size(); ++t) lines[0].push_back(fmt::format("{}", t));
  lines[0].emplace_back("cold items, NDCG@10 / HIT@10");
  for (const SequenceRow& row : rows) {
    std::vector<std::string> line{LearnerText(row), EpsilonText(row.epsilon)};
    for (const SequenceRow::Tenth& tenth : row.tenths)
      line.push_back(tenth.events == 0 ? "-" : fmt::format("{:.2f}", 100 * tenth.ndcg10.mean));
    line.push_back(row.cold && row.cold->events > 0
                       ? PercentText(row.cold->ndcg10) + " / " + PercentText(row.cold->hit10)
                       : "-");
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string Notes(const std::vector<SequenceRow>& rows, uint64_t period_events) {
  const SequenceRow& row = rows[0];
  const std::string seeds =
      row.seeds == 1 ? "one seed of noise"
                     : fmt::format("mean and deviation over {} seeds of noise", row.seeds);
  if (!OfStream(rows))
    return fmt::format(
        "{} users asked about, every item ranked, those of the history excluded; {}; epsilon is at "
        "delta {:g}, unit user\n",
        row.users, seeds, row.delta);
  return fmt::format(
      "{} events asked about, each before its period of {} records was learnt; every item ranked, "
      "those the user had excluded; {}; epsilon is at delta {:g}, unit user over the whole stream, "
      "split evenly over the periods that the table states; a user's later periods are not learnt "
      "from; cold items first appear in the last tenth, and {} of the events are of them\n",
      WithThousands(row.users), WithThousands(period_events), seeds, row.delta,
      row.cold ? WithThousands(row.cold->events) : "an unknown number");
}

// The mean and the deviation of a figure over the runs.
template <class Of>
Moments Over(const std::vector<SequenceRun>& runs, const Of& of) {
  std::vector<double> values;
  for (const SequenceRun& run : runs) values.push_back(of(run));
  return Moments::Of(values);
}

// "ndcg10" and "hit10", after what they are of.
template <class Point, class Of>
json::object PointJson(const char* name, const Of& of, const Point& point) {
  return {{name, of}, {"ndcg10", MomentsJson(point.ndcg10)}, {"hit10", MomentsJson(point.hit10)}};
}

std::string DrawTenths(const std::vector<SequenceRow>& rows) {
  const size_t tenths = rows[0].tenths.size();
  LineFigure::Axes axes{.title = "NDCG@10 over the stream",
                        .x_axis = "tenth of the stream",
                        .y_axis = "NDCG@10, %",
                        .x_most = static_cast<double>(tenths),
                        .x_ticks = {}};
  for (size_t t = 0; t < tenths; ++t)
    axes.x_ticks.emplace_back(static_cast<double>(t) + 0.5, std::to_string(t + 1));
  for (const SequenceRow& row : rows)
    for (const SequenceRow::Tenth& tenth : row.tenths)
      axes.percent_most = std::max(axes.percent_most, 100 * tenth.ndcg10.mean);
  LineFigure figure(axes);
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<LineFigure::Point> points;
    for (size_t t = 0; t < tenths; ++t) {
      const SequenceRow::Tenth& tenth = rows[r].tenths[t];
      if (tenth.events > 0)
        points.push_back(
            {static_cast<double>(t) + 0.5, 100 * tenth.ndcg10.mean, PercentText(tenth.ndcg10)});
    }
    figure.Add(LearnerText(rows[r]) + ", " + EpsilonText(rows[r].epsilon), r,
               r / LineFigure::kColours, points);
  }
  return std::move(figure).Take();
}

}  // namespace

SequenceRow MakeSequenceRow(const std::vector<SequenceRun>& runs) {
  const SequenceRun& first = runs[0];
  SequenceRow row{.learner = first.learner, .epsilon = first.epsilon, .delta = first.delta};
  for (const SequenceRun& run : runs)
    row.epsilon_spent = std::max(row.epsilon_spent, run.epsilon_spent);
  row.ndcg10 = Over(runs, [](const SequenceRun& run) { return run.ndcg10; });
  row.hit10 = Over(runs, [](const SequenceRun& run) { return run.hit10; });
  row.fit_seconds = Over(runs, [](const SequenceRun& run) { return run.fit_seconds; }).mean;
  row.microseconds_a_user =
      1e6 * Over(runs, [](const SequenceRun& run) { return run.score_seconds; }).mean /
      static_cast<double>(std::max<uint64_t>(1, first.users));
  for (size_t t = 0; t < first.tenths.size(); ++t)
    row.tenths.push_back(
        {.events = first.tenths[t].events,
         .ndcg10 = Over(runs, [t](const SequenceRun& run) { return run.tenths[t].ndcg10; }),
         .hit10 = Over(runs, [t](const SequenceRun& run) { return run.tenths[t].hit10; })});
  if (std::ranges::all_of(runs, [](const SequenceRun& run) { return run.cold.size() == 1; }))
    row.cold = {.events = first.cold[0].events,
                .ndcg10 = Over(runs, [](const SequenceRun& run) { return run.cold[0].ndcg10; }),
                .hit10 = Over(runs, [](const SequenceRun& run) { return run.cold[0].hit10; })};
  for (size_t i = 0; i < first.curve.size(); ++i)
    row.curve.push_back(
        {.epochs = first.curve[i].epochs,
         .ndcg10 = Over(runs, [i](const SequenceRun& run) { return run.curve[i].ndcg10; }),
         .hit10 = Over(runs, [i](const SequenceRun& run) { return run.curve[i].hit10; })});
  row.user_periods = first.user_periods;
  row.seeds = runs.size();
  row.users = first.users;
  return row;
}

json::object SequenceJson(const std::vector<SequenceRow>& rows) {
  json::array lines;
  for (const SequenceRow& row : rows) {
    const bool streamed = row.user_periods > 0;
    json::object line{
        {"model", row.learner},
        {"epsilon", console::FiniteOrNull(row.epsilon)},
        {"delta", row.delta},
        {"seeds", row.seeds},
        {"ndcg10", MomentsJson(row.ndcg10)},
        {"hit10", MomentsJson(row.hit10)},
        {streamed ? "events" : "users", row.users},
        {"epsilon_spent", console::FiniteOrNull(row.epsilon_spent)},
        {"fit_seconds", row.fit_seconds},
        {streamed ? "microseconds_an_event" : "microseconds_a_user", row.microseconds_a_user}};
    json::array curve, tenths;
    for (const SequenceRow::Look& look : row.curve)
      curve.push_back(PointJson("epochs", look.epochs, look));
    if (!curve.empty()) line["curve"] = std::move(curve);
    for (const SequenceRow::Tenth& tenth : row.tenths)
      tenths.push_back(PointJson("events", tenth.events, tenth));
    if (streamed) {
      line["user_periods"] = row.user_periods;
      line["tenths"] = std::move(tenths);
      if (row.cold) line["cold"] = PointJson("events", row.cold->events, *row.cold);
    }
    lines.push_back(std::move(line));
  }
  return {{"rows", std::move(lines)}};
}

std::string SequenceTextTable(const std::vector<SequenceRow>& rows, uint64_t period_events) {
  std::string text = console::LayOut(OverallTable(rows), {0});
  if (OfStream(rows)) text += "\n" + console::LayOut(TenthsTable(rows), {0, 1});
  return text + Notes(rows, period_events);
}

std::string SequenceMarkdownTable(const std::vector<SequenceRow>& rows, uint64_t period_events) {
  std::string text = console::LayOutMarkdown(OverallTable(rows), {0}) + "\n";
  if (OfStream(rows)) text += console::LayOutMarkdown(TenthsTable(rows), {0, 1}) + "\n";
  return text + Notes(rows, period_events);
}

// Epsilons are evenly spaced; "none" is the last.
std::string DrawSequenceFigure(const std::vector<SequenceRow>& rows) {
  if (OfStream(rows)) return DrawTenths(rows);
  std::vector<double> epsilons = Epsilons(rows);
  std::ranges::sort(epsilons);
  const auto place_of = [&](double epsilon) {
    return static_cast<double>(std::ranges::find(epsilons, epsilon) - epsilons.begin()) + 0.5;
  };
  LineFigure::Axes axes{.title = "NDCG@10 against epsilon",
                        .x_axis = "epsilon",
                        .y_axis = "NDCG@10, %",
                        .x_most = static_cast<double>(epsilons.size()),
                        .x_ticks = {}};
  for (const double epsilon : epsilons)
    axes.x_ticks.emplace_back(place_of(epsilon),
                              std::isfinite(epsilon) ? fmt::format("{:g}", epsilon) : "none");
  for (const SequenceRow& row : rows)
    axes.percent_most =
        std::max(axes.percent_most, 100 * (row.ndcg10.mean + row.ndcg10.std.value_or(0)));
  LineFigure figure(axes);
  size_t colour = 0;
  for (const std::string& learner : Distinct(rows, LearnerText)) {
    std::vector<LineFigure::Point> points;
    for (const SequenceRow& row : rows)
      if (row.learner == learner)
        points.push_back({place_of(row.epsilon), 100 * row.ndcg10.mean, PercentText(row.ndcg10),
                          100 * row.ndcg10.std.value_or(0)});
    std::ranges::sort(points, {}, &LineFigure::Point::x);
    figure.Add(learner, colour, colour / LineFigure::kColours, points);
    ++colour;
  }
  return std::move(figure).Take();
}

std::string DrawLearningCurves(const std::vector<SequenceRow>& rows) {
  LineFigure::Axes axes{.title = "NDCG@10 and HIT@10 against epochs",
                        .x_axis = "epochs",
                        .y_axis = "%",
                        .x_ticks = {}};
  for (const SequenceRow& row : rows)
    for (const SequenceRow::Look& look : row.curve) {
      axes.x_most = std::max(axes.x_most, look.epochs);
      axes.percent_most = std::max(axes.percent_most, 100 * look.hit10.mean);
    }
  axes.x_ticks = RoundTicks(axes.x_most);
  LineFigure figure(axes);
  for (size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].curve.empty()) continue;
    std::vector<LineFigure::Point> ndcg, hit;
    for (const SequenceRow::Look& look : rows[r].curve) {
      ndcg.push_back({look.epochs, 100 * look.ndcg10.mean, PercentText(look.ndcg10)});
      hit.push_back({look.epochs, 100 * look.hit10.mean, PercentText(look.hit10)});
    }
    const std::string who = rows[r].learner + ", " + EpsilonText(rows[r].epsilon);
    figure.Add("NDCG@10, " + who, r, 0, ndcg);
    figure.Add("HIT@10, " + who, r, 1, hit);
  }
  return std::move(figure).Take();
}

}  // namespace tacit::lab
