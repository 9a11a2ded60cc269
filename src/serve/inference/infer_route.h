#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/http.h"
#include "serve/answers/recommend_route.h"
#include "serve/inference/infer_request.h"
#include "serve/inference/tensor_rows.h"
#include "serve/routes/services.h"
#include "serve/scoring/repository.h"
#include "serve/scoring/row_scoring.h"
#include "serve/versions/versions.h"

// Private to this room.
namespace tacit::serve {

// The Open Inference Protocol: every learner that scores rows or recommends is a model, whose
// versions are the commits that are open, the one that is served or several side by side. Answers
// come from the scorers and rankers of /v1. Owns its working memory; not thread-safe, one per
// server thread. What it is given must outlive it.
class InferRoute {
 public:
  // `ready` says why the service is not ready, if it is not.
  using Ready = std::function<Status()>;
  InferRoute(const Services& services, const Versions& versions, Ready ready, RowScoring* scoring,
             RecommendRoute* recommend, LoadedModels* loaded);

  // The answers under /v2; route_table.h has their paths.
  void ServerMetadata(const http::Request& request, http::Reply* reply);
  void ServerLive(const http::Request& request, http::Reply* reply);
  void ServerReady(const http::Request& request, http::Reply* reply);
  void ModelMetadata(const http::Request& request, http::Reply* reply);
  void ModelReady(const http::Request& request, http::Reply* reply);
  void Infer(const http::Request& request, http::Reply* reply);
  void Index(const http::Request& request, http::Reply* reply);
  void Load(const http::Request& request, http::Reply* reply) { SetLoaded(request, true, reply); }
  void Unload(const http::Request& request, http::Reply* reply) {
    SetLoaded(request, false, reply);
  }

 private:
  // The inputs of a model that recommends: "sequence".
  class SequenceRules final : public InputRules {
   public:
    explicit SequenceRules(std::string model) : model_(std::move(model)) {}
    std::string_view model() const override { return model_; }
    Status Check(const Tensor& input) const override;

   private:
    std::string model_;
  };
  struct Model {
    std::string name;
    LearnerIndex index;
    size_t place = 0;  // among the models of its kind
    std::optional<TensorRows> rows;
    std::optional<SequenceRules> sequence;  // one of the two is there
  };

  void SetLoaded(const http::Request& request, bool load, http::Reply* reply);
  Result<Model*> Find(std::string_view part);
  // The commit that a model would answer of; the failure says why of none.
  Result<uint64_t> CommitOf(const Model& model, const Answering& answering) const;
  // The same where nothing is asked for.
  Result<uint64_t> Served(const Model& model) const;
  // The commits that answer, newest first.
  std::vector<uint64_t> AllServed(const Model& model) const;
  // The version that the path asks for, if it asks for one.
  static Result<std::optional<uint64_t>> VersionAsked(const http::Request& request,
                                                      const Model& model);
  // Fails unless a version is served, and is the one that the path asks for.
  Result<uint64_t> Serving(const http::Request& request, const Model& model) const;
  // Answer from request_; a failure is no fault of the request.
  Status InferRows(const Model& model, std::optional<uint64_t> version, const Answering& answering,
                   http::Reply* reply);
  Status InferItems(const Model& model, std::optional<uint64_t> version, const Answering& answering,
                    http::Reply* reply);
  Status ReadSequence(const Model& model);
  void AppendIndexEntry(const Model& model, const Answering& answering, std::string* out) const;

  const Services& services_;
  const Versions& versions_;
  const Ready ready_;
  RowScoring& scoring_;
  RecommendRoute& recommend_;
  LoadedModels& loaded_;
  std::vector<Model> models_;
  InferRequest request_;
  RecommendRequest items_;
  std::string parameters_;
};

}  // namespace tacit::serve
