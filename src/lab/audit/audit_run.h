#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "audit/judgement.h"
#include "audit/membership.h"
#include "audit/one_run.h"
#include "base/result.h"
#include "config/config.h"

// Audits the learners of a configuration, one after the other, and can go on where it was stopped.
namespace tacit::lab {

struct AuditRunOptions {
  std::vector<std::string> learners;  // ids; if empty, all
  uint64_t runs = 20'000;             // in each world; a tenth of them choose thresholds
  double alpha = 0.05;                // the probability with which any bound of the report is false
  uint32_t workers = 2;
  // Keeps the runs made, a JSON line for each part of them; if empty, they are not kept.
  std::string state = {};
  // The configuration in any form; the runs of another one are refused.
  std::string key = {};
  bool show_progress = false;
  std::function<bool()> stop = {};  // true: end after the part that is being made
};

struct AuditedLearner {
  std::string id;
  std::string kind = "white-box";
  std::string run = {};  // what one run is
  uint64_t runs = 0;
  double reach = 0;
  audit::JudgedRuns judged = {};
  // The figures of an audit by the losses of trained models.
  struct Losses {
    uint64_t members = 0, others = 0;
    double plain_area = 0;      // by losses alone; the table's is less a reference model's
    audit::Interval area;       // of endless records
    audit::FoundBySplit found;  // at one false alarm in 1,000
    audit::Guesses guesses = {};
    double steinke_epsilon = 0;
    std::optional<double> xiang_mu = {};  // told alone
  };
  std::optional<Losses> losses = {};
};

struct AuditReport {
  std::vector<AuditedLearner> audited;
  struct Refused {
    std::string id, reason;
  };
  std::vector<Refused> refused;  // of all learners; one that was asked for by name is an error
  double alpha = 0;              // of the whole report; each bound has an equal share
  bool stopped = false;          // before all runs were made

  bool exceeds() const;
};

Result<AuditReport> RunAudits(const config::Config& config, const AuditRunOptions& options);

}  // namespace tacit::lab
