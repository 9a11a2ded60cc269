#pragma once

#include <boost/json.hpp>

#include "privacy/spending.h"

namespace tacit::cli {

// A spending in the form of google/differential-privacy's dp_accounting 0.6.0: JSON objects whose
// keys are the fields of DpEvent.to_named_tuple, so that DpEvent.from_named_tuple restores the
// event.
//   Gaussian queries with certain participation -> GaussianDpEvent (one, of their joint noise)
//   a sampled setting -> SelfComposedDpEvent(PoissonSampledDpEvent(GaussianDpEvent), count)
//   a setting of steps in blocks -> UnsupportedDpEvent, which every accountant there refuses
//   rho -> ZCDpEvent;  unbounded -> NonPrivateDpEvent;  nothing -> NoOpDpEvent
// Several of them form one ComposedDpEvent.
boost::json::object DpEventJson(const privacy::Spending& spending);

}  // namespace tacit::cli
