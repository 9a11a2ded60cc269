#include "serve/inference/infer_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "http/query_fields.h"
#include "http/request_json.h"

namespace tacit::serve {
namespace {

constexpr size_t kInferDepthMost = 12;
constexpr size_t kInputsMost = 4096, kOutputsMost = 64, kRankMost = 8;
constexpr std::string_view kHoldsObjects = "must hold objects";

// One tensor as far as it has been read.
struct InputState {
  bool has_shape = false, has_datatype = false, has_data = false;
  std::optional<uint64_t> binary_bytes;
  size_t begin = 0, end = 0;  // of the elements that came as JSON, in `held`
};

template <class T>
void AppendElement(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Reads a request as it streams by. Elements can be read only once name, datatype and shape are
// known: where one of them comes after the data, the data is skipped, and the body is read a second
// time.
class InferReading {
 public:
  // `known` has the inputs of the first reading, if this is the second.
  InferReading(const InputRules& rules, InferRequest* request, std::span<const Tensor> known)
      : rules_(rules), request_(request), known_(known) {}

  Status Read(std::string_view json);
  bool passed_over() const { return passed_over_; }
  // Gives every input the view of its elements, and checks them.
  Status PlaceData(std::string_view binary);

 private:
  // The input at hand, by the first reading if this is the second.
  const Tensor& Described() const { return known_.empty() ? input_ : known_[states_.size()]; }
  std::string InputText() const {
    const std::string& name = Described().name;
    return name.empty() ? fmt::format("input {}", states_.size())
                        : fmt::format("input '{}'", name.substr(0, 64));
  }
  [[gnu::noinline]] tl::unexpected<Error> RefuseInput(std::string_view what) const {
    return http::BadRequest(InputText() + std::string(what));
  }
  Status TakeDatatype(std::string_view name);
  Status EndInput();
  Status CheckInput(const Tensor& input) const;
  Result<bool> BeginData();
  Status EndData();
  Result<bool> BeginNested();
  Status EndNested();
  Status CheckDepth();
  [[gnu::noinline]] Status RefuseElement(const http::JsonValue& value) const;
  Status TakeElement(const http::JsonValue& value);
  bool AddElement(const http::JsonValue& value);
  bool AddInteger(const http::JsonValue& value);

  const InputRules& rules_;
  InferRequest* const request_;
  const std::span<const Tensor> known_;
  std::vector<InputState> states_;  // of the inputs before
  bool passed_over_ = false;
  Tensor input_;
  InputState state_;
  // The elements of the tensor that is read.
  const Tensor* tensor_ = nullptr;
  uint64_t expected_ = 0, count_ = 0;
  std::vector<uint64_t> opened_;  // the count at which each nested array began
  uint64_t arrays_ = 0;           // nested ones so far
  std::optional<size_t> element_depth_;
  bool checks_depth_ = true;  // the next element is the first one since an array began or ended
};

Status InferReading::Read(std::string_view json) {
  using Kind = http::JsonPlace::Kind;
  const http::JsonParts shape{
      .element = {.kind = Kind::kWhole,
                  .must = "must hold whole numbers",
                  .take =
                      [this](auto& size) {
                        input_.shape.push_back(static_cast<uint64_t>(size.int64));
                        return true;
                      }},
      .elements_most = kRankMost,
      .too_many = "\"shape\" has more than {} sizes",
      .begin = [this]() -> Result<bool> {
        state_.has_shape = true;
        return true;
      }};
  const http::JsonParts nested{
      .element = {.kind = Kind::kAny,
                  .take = [this](auto& value) { return TakeElement(value); },
                  .array = &nested},
      .begin = [this] { return BeginNested(); },
      .end = [this] { return EndNested(); }};
  const http::JsonParts data{.element = nested.element,
                             .begin = [this] { return BeginData(); },
                             .end = [this] { return EndData(); }};
  const http::JsonKey input_parameters[] = {
      {"binary_data_size", http::PlaceFor(&state_.binary_bytes)}};
  const http::JsonParts of_input{.keys = input_parameters, .key_word = "parameter"};
  const http::JsonKey input_keys[] = {
      {"name", http::PlaceFor(&input_.name), true},
      {"shape", {.array = &shape}, true},
      {"datatype",
       {.kind = Kind::kText, .take = [this](auto& name) { return TakeDatatype(name.text); }},
       true},
      {"parameters", {.object = &of_input}},
      {"data", {.must = "is of the wrong kind", .array = &data}}};
  const http::JsonParts one_input{.keys = input_keys,
                                  .end = [this] { return EndInput(); },
                                  .where = [this] { return InputText(); }};
  const http::JsonParts inputs{.element = {.must = kHoldsObjects, .object = &one_input},
                               .elements_most = kInputsMost,
                               .too_many = "more than {} inputs"};

  InferRequest::Output output;
  const http::JsonKey output_parameters[] = {{"binary_data", http::PlaceFor(&output.binary)}};
  const http::JsonParts of_output{.keys = output_parameters, .key_word = "parameter"};
  const http::JsonKey output_keys[] = {{"name", http::PlaceFor(&output.name), true},
                                       {"parameters", {.object = &of_output}}};
  const http::JsonParts one_output{.keys = output_keys,
                                   .end = [this, &output]() -> Status {
                                     request_->outputs.push_back(std::exchange(output, {}));
                                     return {};
                                   },
                                   .where = [] { return "an output"; }};
  const http::JsonParts outputs{.element = {.must = kHoldsObjects, .object = &one_output},
                                .elements_most = kOutputsMost,
                                .too_many = "more than {} outputs"};

  const http::JsonKey parameters[] = {
      {"binary_data_output", http::PlaceFor(&request_->binary_output)},
      {"k", http::PlaceFor(&request_->count)},
      {"exclude_seen", http::PlaceFor(&request_->exclude_seen)}};
  const http::JsonParts of_request{.keys = parameters, .key_word = "parameter"};
  std::string model(rules_.model());
  const http::JsonKey keys[] = {{"id", http::PlaceFor(&request_->id)},
                                {"parameters", {.object = &of_request}},
                                {"inputs", {.array = &inputs}, true},
                                {"outputs", {.array = &outputs}},
                                {"model_name", http::PlaceFor(&model)}};
  TACIT_RETURN_IF_ERROR(http::ReadJson(json, kInferDepthMost, keys));
  if (model == rules_.model()) return {};
  return http::BadRequest(fmt::format("\"model_name\" is '{}', the path's is '{}'",
                                      model.substr(0, 64), rules_.model()));
}

Status InferReading::TakeDatatype(std::string_view name) {
  const auto datatype = DatatypeOf(name);
  if (!datatype) return RefuseInput(fmt::format(": there is no datatype '{}'", name.substr(0, 64)));
  input_.datatype = *datatype;
  state_.has_datatype = true;
  return {};
}

Status InferReading::EndInput() {
  if (state_.has_data == state_.binary_bytes.has_value())
    return RefuseInput(state_.has_data ? " has both \"data\" and \"binary_data_size\""
                                       : " has neither \"data\" nor \"binary_data_size\"");
  TACIT_RETURN_IF_ERROR(CheckInput(input_));
  // Names are the model's by now, so there are few.
  std::vector<Tensor>& inputs = request_->inputs;
  if (std::ranges::find(inputs, input_.name, &Tensor::name) != inputs.end())
    return RefuseInput(" is there twice");
  inputs.push_back(std::exchange(input_, {}));
  states_.push_back(std::exchange(state_, {}));
  return {};
}

Status InferReading::CheckInput(const Tensor& input) const {
  if (!input.elements())
    return RefuseInput(fmt::format(" has more than {} elements", kTensorElementsMost));
  return rules_.Check(input);
}

Result<bool> InferReading::BeginData() {
  state_.has_data = true;
  if (known_.empty() && (input_.name.empty() || !state_.has_shape || !state_.has_datatype)) {
    passed_over_ = true;
    return false;
  }
  tensor_ = &Described();
  TACIT_RETURN_IF_ERROR(CheckInput(*tensor_));
  expected_ = *tensor_->elements();
  count_ = 0;
  opened_.clear();
  arrays_ = 0;
  element_depth_.reset();
  checks_depth_ = true;
  state_.begin = request_->held.size();
  return true;
}

Status InferReading::EndData() {
  state_.end = request_->held.size();
  // Arrays without elements would not be missed among the elements.
  const std::vector<uint64_t>& shape = tensor_->shape;
  if (expected_ == 0 && arrays_ > 0 && (shape.size() != 2 || arrays_ != shape[0]))
    return RefuseInput(fmt::format(": \"data\" has {} arrays, which are not its shape", arrays_));
  if (count_ == expected_) return {};
  return RefuseInput(fmt::format(" has {} elements, its shape {}", count_, expected_));
}

Result<bool> InferReading::BeginNested() {
  if (opened_.size() + 1 >= tensor_->shape.size())
    return RefuseInput(": \"data\" is nested deeper than its shape");
  ++arrays_;
  opened_.push_back(count_);
  checks_depth_ = true;
  return true;
}

Status InferReading::EndNested() {
  uint64_t wanted = 1;
  for (size_t i = opened_.size(); i < tensor_->shape.size(); ++i) wanted *= tensor_->shape[i];
  const uint64_t found = count_ - opened_.back();
  opened_.pop_back();
  checks_depth_ = true;
  if (found == wanted) return {};
  return RefuseInput(
      fmt::format(": an array within \"data\" has {} elements, its shape {}", found, wanted));
}

Status InferReading::CheckDepth() {
  const size_t depth = opened_.size();
  if ((element_depth_ && *element_depth_ != depth) ||
      (depth > 0 && depth + 1 != tensor_->shape.size()))
    return RefuseInput(": \"data\" is neither flat nor nested as its shape");
  element_depth_ = depth;
  checks_depth_ = false;
  return {};
}

Status InferReading::RefuseElement(const http::JsonValue& value) const {
  if (value.kind == http::JsonValue::Kind::kObject)
    return RefuseInput(": \"data\" must hold scalars");
  if (count_ == expected_)
    return RefuseInput(fmt::format(" has more elements than its shape, {}", expected_));
  return RefuseInput(fmt::format(": element {} is no {}", count_, NameOf(tensor_->datatype)));
}

Status InferReading::TakeElement(const http::JsonValue& value) {
  if (value.kind == http::JsonValue::Kind::kObject) return RefuseElement(value);
  if (checks_depth_) TACIT_RETURN_IF_ERROR(CheckDepth());
  if (count_ == expected_ || !AddElement(value)) return RefuseElement(value);
  ++count_;
  return {};
}

bool InferReading::AddInteger(const http::JsonValue& value) {
  const bool is_large = value.kind == http::JsonValue::Kind::kUint64;
  if (!is_large && value.kind != http::JsonValue::Kind::kInt64) return false;
  const size_t bytes = ElementBytes(tensor_->datatype), spare_bits = 64 - 8 * bytes;
  const bool is_signed = tensor_->datatype >= Datatype::kInt8;
  const uint64_t most = std::numeric_limits<uint64_t>::max() >> (spare_bits + (is_signed ? 1 : 0));
  const uint64_t bits = is_large ? value.uint64 : static_cast<uint64_t>(value.int64);
  const bool is_negative = !is_large && value.int64 < 0;
  if (is_negative ? !is_signed || ~bits > most : bits > most) return false;
  request_->held.append(reinterpret_cast<const char*>(&bits), bytes);
  return true;
}

// Returns false for a value that is not of the datatype.
bool InferReading::AddElement(const http::JsonValue& value) {
  const bool is_null = value.kind == http::JsonValue::Kind::kNull;
  const Datatype datatype = tensor_->datatype;
  std::string* const held = &request_->held;
  if (datatype == Datatype::kBytes) {
    if (!is_null && value.kind != http::JsonValue::Kind::kString) return false;
    AppendElement(static_cast<uint32_t>(value.text.size()), held);
    held->append(value.text);
    return true;
  }
  if (datatype == Datatype::kBool) {
    if (value.kind != http::JsonValue::Kind::kBool) return false;
    AppendElement(static_cast<uint8_t>(value.flag), held);
    return true;
  }
  if (IsInteger(datatype)) return AddInteger(value);
  const double number = value.Number().value_or(std::numeric_limits<double>::quiet_NaN());
  if (std::isnan(number) != is_null || std::isinf(number)) return false;
  if (datatype == Datatype::kFp64) {
    AppendElement(number, held);
    return true;
  }
  // None of our models takes FP16, so the rules have refused it.
  if (datatype != Datatype::kFp32 || std::fabs(number) > std::numeric_limits<float>::max())
    return false;
  AppendElement(static_cast<float>(number), held);
  return true;
}

Status InferReading::PlaceData(std::string_view binary) {
  for (size_t i = 0; i < states_.size(); ++i) {
    const InputState& is = states_[i];
    Tensor& input = request_->inputs[i];
    if (!is.binary_bytes) {
      input.data = std::string_view(request_->held).substr(is.begin, is.end - is.begin);
      continue;  // written here, element by element
    }
    if (*is.binary_bytes > binary.size())
      return http::BadRequest(
          fmt::format("input '{}': \"binary_data_size\" is {}, {} bytes are left of the body",
                      input.name, *is.binary_bytes, binary.size()));
    input.data = binary.substr(0, *is.binary_bytes);
    binary.remove_prefix(*is.binary_bytes);
    TACIT_RETURN_IF_ERROR(CheckData(input));
  }
  if (binary.empty()) return {};
  return http::BadRequest(
      fmt::format("the body has {} bytes after the last tensor", binary.size()));
}

}  // namespace

void InferRequest::Clear() {
  id.reset();
  inputs.clear();
  outputs.clear();
  binary_output = false;
  count.reset();
  exclude_seen.reset();
  held.clear();
}

Status ReadInferRequest(std::string_view body, std::string_view header_length,
                        const InputRules& rules, InferRequest* request) {
  request->Clear();
  size_t json_bytes = body.size();
  if (!header_length.empty()) {
    TACIT_ASSIGN(json_bytes, http::WholeNumber("Inference-Header-Content-Length", header_length));
    if (json_bytes > body.size())
      return http::BadRequest(fmt::format(
          "Inference-Header-Content-Length is {}, the body has {} bytes", json_bytes, body.size()));
  }
  const std::string_view json = body.substr(0, json_bytes);
  std::vector<Tensor> known;
  InferReading first(rules, request, known);
  TACIT_RETURN_IF_ERROR(first.Read(json));
  if (request->inputs.empty()) return http::BadRequest("\"inputs\" is empty");
  if (!first.passed_over()) return first.PlaceData(body.substr(json_bytes));
  known = std::move(request->inputs);
  request->Clear();
  InferReading again(rules, request, known);
  TACIT_RETURN_IF_ERROR(again.Read(json));
  return again.PlaceData(body.substr(json_bytes));
}

}  // namespace tacit::serve
