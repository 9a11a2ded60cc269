#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/clicks/bootstrap.h"
#include "lab/clicks/grid.h"
#include "lab/clicks/results.h"
#include "lab/moments.h"

namespace tacit::lab {

// A row of the table: one grid point over all seeds.
struct ReportRow {
  std::string learner, mechanism;
  std::map<std::string, std::string> settings;
  std::string refusal;     // why it was not run; if set, only the fields above are filled
  bool embeddings = true;  // the model has tables
  double epsilon = 0;      // promised; infinite: no promise
  double delta = 0;
  Moments auc, log_loss;
  // All embedding coordinates / coordinates written per step, as in paper 003. It is 1 for dense
  // DP-SGD, and infinite where none is written.
  double gradient_size_reduction = 0;
  double rows_per_step = 0, row_floats_per_step = 0;  // means over seeds
  double epsilon_spent = 0;                           // the most of any seed
  uint64_t steps = 0, events = 0, events_measured = 0;
  double events_per_second = 0;
  std::vector<std::string> runs;  // ids, by seed

  struct Difference {
    std::string reference;
    Resampled auc;
  };
  std::optional<Difference> difference;  // the AUC minus the reference's

  // Text that distinguishes the row from others: "adafest threshold=5 sigma_ratio=3".
  std::string Label() const;
};

// `embedding_floats` counts those of all tables. REQUIRES at least one record.
ReportRow MakeRow(const GridPoint& point, const std::vector<RunRecord>& records,
                  uint64_t embedding_floats);
ReportRow MakeRefusedRow(const GridPoint& point);

// The row that this row is compared with: among rows of the same epsilon, the best by mean AUC of
// the learner or mechanism `name`; without such a row or name, the best dp-sgd with embeddings,
// which is the dense baseline; else the best of all. If null, the row itself.
const ReportRow* ReferenceOf(const std::vector<ReportRow>& rows, const ReportRow& row,
                             const std::string& name);

// The learners that the private rows are compared with, for display: "dense (dp-sgd)".
std::string ReferenceNames(const std::vector<ReportRow>& rows, const std::string& name);

boost::json::object ToJson(const std::vector<ReportRow>& rows, uint32_t seeds, uint64_t dead);
std::string TextTable(const std::vector<ReportRow>& rows);
std::string MarkdownTable(const std::vector<ReportRow>& rows);

}  // namespace tacit::lab
