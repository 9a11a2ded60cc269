#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "privacy/pld/kind.h"
#include "privacy/pld/lattice_law.h"
#include "privacy/pld/plan.h"
#include "privacy/pld/side.h"

// Any number of events composed in one direction.
namespace tacit::privacy::pld {

// A certified interval: the truth lies within.
struct Interval {
  double lower = 0, upper = 0;
};

// Events composed in one direction. Keeps its plan while the plan fits, so that one more event of a
// known kind costs a few hundred multiplications. Not thread-safe.
class Composition {
 public:
  // The source's book must outlive this.
  explicit Composition(Direction direction, const LawSource& source = {})
      : direction_(direction), source_(source) {}

  void Add(const Event& event, double count);

  // Returns kInvalidArgument when no plan can be made, kRefused when rounding would decide the
  // answer or an upper bound's arithmetic fails. Accepts bounds that are far apart if the upper one
  // is at most `enough`.
  Result<Interval> Epsilon(double log_delta, double enough = -1);
  Result<Interval> DeltaAt(double epsilon);
  // The upper bound alone; `hint` is an earlier result, replaced by the new one.
  struct Hint {
    double epsilon = 0, slope = 0;
  };
  Result<double> UpperEpsilon(double log_delta, std::optional<Hint>& hint);
  // An upper bound at least that of a first call to Epsilon; nothing unless it is much cheaper.
  Result<std::optional<double>> CheapUpper(double log_delta);

  // An upper bound of log delta at this epsilon from one moment: cheap, and enough to rule a
  // direction out. It holds because it uses the upper laws' exact moments. `afresh`: ignore the
  // tilt of an earlier question.
  Result<double> ChernoffLogDelta(double epsilon, bool afresh);

 private:
  Saddle SaddleFor(double log_delta) const;
  Saddle SaddleAt(double epsilon) const;
  Status Replan(const Saddle& saddle, double budget, double cells, bool both);
  Result<LatticeLaws> LawsOf(const Counted& counted, const Plan& plan, bool both) const;
  Status Refresh();
  bool IsHeavy(double log_delta);
  double LookAhead(double log_delta);
  Result<Hint> UpperUnder(const Saddle& saddle, double budget, double log_delta);
  void ForgetStale();
  struct Asked {
    Interval interval;
    double distance = 0;  // between the bounds, in epsilon
    double epsilon = 0;
    double slope = 0;  // of -log delta at epsilon
  };
  template <class MakeSaddle, class Ask>
  Result<Interval> Answer(MakeSaddle make_saddle, Ask ask, double enough, double& accepted);

  Direction direction_;
  LawSource source_;
  std::list<Kind> kinds_;
  mutable std::vector<Counted> events_;  // caps are from the last saddle
  std::optional<Side> upper_, lower_;
  std::optional<Plan> plan_;
  std::optional<Asked> last_;  // the start of a new plan
  double last_count_ = 0;      // events, and below kinds, at the last reset of last_
  size_t last_kinds_ = 0;
  // The relative distance between the bounds that finer lattices did not reduce, of epsilons and of
  // deltas: one says nothing of the other.
  double accepted_epsilon_ = 0, accepted_delta_ = 0;
  struct Moment {
    double log_moment = 0, infinite_mass = 0, rounding = 0;
  };
  struct Chernoff {
    Plan plan;
    std::map<const Kind*, Moment> of;
  };
  std::optional<Chernoff> chernoff_;
};

}  // namespace tacit::privacy::pld
