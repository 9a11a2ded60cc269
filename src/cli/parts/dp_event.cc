#include "cli/parts/dp_event.h"

#include <cmath>
#include <string_view>
#include <utility>

namespace tacit::cli {
namespace {

namespace json = boost::json;

json::object Event(std::string_view class_name) {
  return {{"module_name", "dp_accounting.dp_event"}, {"class_name", class_name}};
}

json::object Gaussian(double noise_multiplier) {
  json::object event = Event("GaussianDpEvent");
  event["noise_multiplier"] = noise_multiplier;
  return event;
}

json::object Sampled(const privacy::Spending::Sampled& setting) {
  if (setting.block_steps > 0 || setting.coins_known) return Event("UnsupportedDpEvent");
  json::object once = Event("PoissonSampledDpEvent");
  once["sampling_probability"] = setting.sampling_rate;
  once["event"] = Gaussian(setting.noise_multiplier);
  json::object event = Event("SelfComposedDpEvent");
  event["event"] = std::move(once);
  event["count"] = setting.count;
  return event;
}

json::object Zcdp(double rho) {
  json::object event = Event("ZCDpEvent");
  event["rho"] = rho;
  event["xi"] = 0.0;
  return event;
}

}  // namespace

json::object DpEventJson(const privacy::Spending& spending) {
  if (!spending.bounded()) return Event("NonPrivateDpEvent");
  json::array events;
  if (spending.mu_squared > 0) events.push_back(Gaussian(1 / std::sqrt(spending.mu_squared)));
  for (const privacy::Spending::Sampled& setting : spending.sampled)
    events.push_back(Sampled(setting));
  if (spending.rho > 0) events.push_back(Zcdp(spending.rho));
  if (events.empty()) return Event("NoOpDpEvent");
  if (events.size() == 1) return std::move(events[0].get_object());
  json::object composed = Event("ComposedDpEvent");
  composed["events"] = std::move(events);
  return composed;
}

}  // namespace tacit::cli
