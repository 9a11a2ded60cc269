#pragma once

#include <boost/json.hpp>

#include "fuzz.h"
#include "unit/serve/fake_snapshot.h"
#include "unit/serve/infer_rig.h"

namespace tacit::fuzz {

// All routes over a small click model.
class ServedModel {
 public:
  ServedModel() : store_(serve::SmallModel()), rig_(MakeServices()) { store_.Commit(6); }

  // An answer is of a known status, and what says that it is JSON is JSON.
  http::Reply Ask(std::string_view method, std::string_view path, std::string_view body,
                  std::map<std::string, std::string> fields = {}) {
    http::Reply reply = rig_.Ask(method, path, body, std::move(fields));
    Demand(reply.status >= 200 && reply.status < 500, "a request is answered or refused");
    if (reply.content_type == "application/json") {
      boost::json::error_code error;
      boost::json::parse(serve::JsonOf(reply), error);
      Demand(!error, "an answer is JSON");
    }
    return reply;
  }

 private:
  serve::Services MakeServices() {
    serve::Services services;
    services.latest = [this] { return store_.Latest(); };
    services.models = {serve::SmallModel()};
    return services;
  }

  serve::FakeStore store_;
  serve::InferRig rig_;
};

}  // namespace tacit::fuzz
