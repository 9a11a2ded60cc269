#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/evaluate/bootstrap.h"
#include "app/evaluate/grid.h"
#include "app/evaluate/moments.h"
#include "app/evaluate/results.h"

namespace tacit::app {

// One grid point over all seeds: a row of the table.
struct ReportRow {
  std::string learner, mechanism;
  std::map<std::string, std::string> settings;
  std::string refusal;     // why it was not run; then only what is above is there
  bool embeddings = true;  // the model has tables
  double epsilon = 0;      // promised; infinite: nothing is
  double delta = 0;
  Moments auc, log_loss;
  // Embedding coordinates there are / coordinates written a step, as in paper 003; dense DP-SGD has
  // 1, infinite where none is written.
  double gradient_size_reduction = 0;
  double rows_per_step = 0, row_floats_per_step = 0;  // means over seeds
  double epsilon_spent = 0;                           // the most of any seed
  uint64_t steps = 0, events = 0, events_measured = 0;
  double events_per_second = 0;
  std::vector<std::string> runs;  // ids, by seed

  struct Difference {
    std::string reference;
    Interval auc;
  };
  std::optional<Difference> difference;  // of the AUC to the reference's

  // "adafest threshold=5 sigma_ratio=3": what tells it from other rows.
  std::string Label() const;
};

// `embedding_floats`: of all tables. REQUIRES at least one record.
ReportRow MakeRow(const GridPoint& point, const std::vector<RunRecord>& records,
                  uint64_t embedding_floats);
ReportRow MakeRefusedRow(const GridPoint& point);

// What a row is compared with: among the rows of its epsilon, the best by mean AUC of this learner
// or mechanism; where there is none, or no name, the best dp-sgd with embeddings, which is the
// dense baseline, else the best of all. Null: itself.
const ReportRow* ReferenceOf(const std::vector<ReportRow>& rows, const ReportRow& row,
                             const std::string& name);

// The learners that the private rows are compared with, for people: "dense (dp-sgd)".
std::string ReferenceNames(const std::vector<ReportRow>& rows, const std::string& name);

boost::json::object ToJson(const std::vector<ReportRow>& rows, uint32_t seeds, uint64_t dead);
std::string TextTable(const std::vector<ReportRow>& rows);
std::string MarkdownTable(const std::vector<ReportRow>& rows);

}  // namespace tacit::app
