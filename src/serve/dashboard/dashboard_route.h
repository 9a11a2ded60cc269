#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/http.h"
#include "serve/dashboard/budget_board.h"
#include "serve/routes/services.h"

namespace tacit::serve {

// Answers GET / for a browser at the operator's listener: the page, which loads nothing else and
// asks GET /v1/dashboard.
void AnswerDashboardPage(http::Reply* reply);
// The Content-Security-Policy that goes with it.
const std::string& DashboardPolicy();
// True if the request says that its sender shows HTML.
bool WantsPage(const http::Request& request);

// GET /v1/dashboard?figures=all|public&back=minutes|hours|day. Used by one thread; the board is
// shared.
class DashboardRoute {
 public:
  // `services` and `learners` outlive the route.
  DashboardRoute(const Services& services, const std::vector<ServedLearner>& learners,
                 std::shared_ptr<BudgetBoard> board)
      : services_(services), learners_(learners), board_(std::move(board)) {}

  // The state that /readyz tells operators, and what it tells everybody: without figures nothing is
  // answered that depends on records.
  struct Health {
    Status ready, ready_for_all;
    std::string degraded, degraded_for_all;
  };
  void Answer(const std::shared_ptr<const store::Snapshot>& snapshot, std::string_view query,
              const Health& health, http::Reply* reply) const;

 private:
  void AppendBudgets(const store::Snapshot& snapshot, const Budgets* budgets,
                     std::string* out) const;
  void AppendVersions(const store::Snapshot& snapshot, const Budgets* budgets,
                      std::string* out) const;

  const Services& services_;
  const std::vector<ServedLearner>& learners_;
  const std::shared_ptr<BudgetBoard> board_;
};

}  // namespace tacit::serve
