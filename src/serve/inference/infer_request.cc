#include "serve/inference/infer_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>

#include "http/query_fields.h"
#include "http/request_json.h"

namespace tacit::serve {
namespace {

constexpr size_t kInferDepthMost = 12;
constexpr size_t kInputsMost = 4096, kOutputsMost = 64, kRankMost = 8;

constexpr std::string_view kInferKeys[] = {"id", "parameters", "inputs", "outputs", "model_name"};
constexpr std::string_view kInputKeys[] = {"name", "shape", "datatype", "parameters", "data"};
constexpr std::string_view kOutputKeys[] = {"name", "parameters"};
constexpr std::string_view kInferParameters[] = {"binary_data_output", "k", "exclude_seen"};
constexpr std::string_view kInputParameters[] = {"binary_data_size"};
constexpr std::string_view kOutputParameters[] = {"binary_data"};

// One tensor as far as it has been read.
struct InputState {
  bool has_name = false, has_shape = false, has_datatype = false, has_data = false;
  bool passed_over = false;
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
class InferSink final : public http::JsonSink {
 public:
  InferSink(const InputRules& rules, InferRequest* request, std::vector<InputState>* states,
            bool again)
      : rules_(rules), request_(request), states_(states), again_(again) {}

  bool is_object() const { return is_object_; }
  bool has_inputs() const { return has_inputs_; }

  bool BeginObject() override;
  bool EndObject() override;
  bool BeginArray() override;
  bool EndArray() override;
  bool Key(std::string_view key) override;
  bool Scalar(const http::JsonScalar& value) override;

 private:
  enum class At : uint8_t {
    kStart,
    kRequest,
    kInputs,
    kInput,
    kShape,
    kData,
    kOutputs,
    kOutput,
    kParameters,
    kSkipped
  };

  Tensor& input() { return request_->inputs[input_]; }
  InputState& state() { return (*states_)[input_]; }
  bool RefuseInput(std::string_view what) {
    const std::string name = state().has_name ? fmt::format("'{}'", input().name.substr(0, 64))
                                              : fmt::format("{}", input_);
    return Refuse(fmt::format("input {}{}", name, what));
  }
  bool Skip() {
    back_ = at_;
    depth_ = 1;
    at_ = At::kSkipped;
    return true;
  }
  bool BeginInput();
  bool EndInput();
  bool CheckInput();
  bool BeginData();
  bool EndData();
  bool RefuseValue();
  bool ReadText(const http::JsonScalar& value);
  bool ReadParameter(const http::JsonScalar& value);
  bool ReadSize(const http::JsonScalar& value);
  bool ReadElement(const http::JsonScalar& value);
  bool AddElement(const http::JsonScalar& value);
  template <class T>
  bool AddInteger(const http::JsonScalar& value);
  std::span<const std::string_view> KnownKeys() const;

  const InputRules& rules_;
  InferRequest* const request_;
  std::vector<InputState>* const states_;
  const bool again_;  // a second reading, of elements alone

  At at_ = At::kStart, back_ = At::kStart, owner_ = At::kStart;
  size_t depth_ = 0;  // nesting of the skipped value
  bool is_object_ = true, has_inputs_ = false, has_outputs_ = false;
  std::string key_;
  std::vector<std::string> seen_;  // keys of the request
  size_t input_ = 0, next_input_ = 0;
  // The elements of the tensor that is read.
  uint64_t expected_ = 0, count_ = 0;
  std::vector<uint64_t> opened_;  // the count at which each nested array began
  uint64_t arrays_ = 0;           // nested ones so far
  std::optional<size_t> element_depth_;
};

std::span<const std::string_view> InferSink::KnownKeys() const {
  switch (at_) {
    case At::kInput:
      return kInputKeys;
    case At::kOutput:
      return kOutputKeys;
    case At::kParameters:
      if (owner_ == At::kInput) return kInputParameters;
      if (owner_ == At::kOutput) return kOutputParameters;
      return kInferParameters;
    default:
      return kInferKeys;
  }
}

bool InferSink::Key(std::string_view key) {
  if (at_ == At::kSkipped) return true;
  const auto known = KnownKeys();
  if (std::ranges::find(known, key) == known.end()) {
    const std::string what =
        http::UnknownName(at_ == At::kParameters ? "parameter" : "key", key, known);
    const bool of_input = at_ == At::kInput || (at_ == At::kParameters && owner_ == At::kInput);
    return of_input ? RefuseInput(": " + what) : Refuse(what);
  }
  key_ = key;
  if (at_ != At::kRequest) return true;
  if (std::ranges::find(seen_, key) != seen_.end())
    return Refuse(fmt::format("\"{}\" is there twice", key));
  seen_.emplace_back(key);
  return true;
}

bool InferSink::BeginObject() {
  switch (at_) {
    case At::kStart:
      at_ = At::kRequest;
      return true;
    case At::kInputs:
      return BeginInput();
    case At::kOutputs:
      if (again_) return Skip();
      if (request_->outputs.size() == kOutputsMost)
        return Refuse(fmt::format("more than {} outputs", kOutputsMost));
      request_->outputs.emplace_back();
      at_ = At::kOutput;
      return true;
    case At::kRequest:
    case At::kInput:
    case At::kOutput:
      if (key_ != "parameters") return RefuseValue();
      if (again_) return Skip();
      owner_ = at_;
      at_ = At::kParameters;
      return true;
    case At::kSkipped:
      ++depth_;
      return true;
    default:
      return RefuseValue();
  }
}

bool InferSink::EndObject() {
  switch (at_) {
    case At::kInput:
      at_ = At::kInputs;
      return EndInput();
    case At::kOutput:
      at_ = At::kOutputs;
      return !request_->outputs.back().name.empty() || Refuse("an output has no \"name\"");
    case At::kParameters:
      at_ = owner_;
      return true;
    case At::kSkipped:
      return EndArray();
    default:
      at_ = At::kStart;
      return true;
  }
}

bool InferSink::BeginArray() {
  switch (at_) {
    case At::kStart:
      is_object_ = false;
      return Skip();
    case At::kRequest:
      if (key_ == "inputs") {
        has_inputs_ = true;
        at_ = At::kInputs;
        return true;
      }
      if (key_ != "outputs") return RefuseValue();
      has_outputs_ = true;
      at_ = At::kOutputs;
      return true;
    case At::kInput:
      if (key_ == "shape") {
        if (again_) return Skip();
        if (state().has_shape) return RefuseInput(": \"shape\" is there twice");
        state().has_shape = true;
        at_ = At::kShape;
        return true;
      }
      return key_ == "data" ? BeginData() : RefuseValue();
    case At::kData:
      if (opened_.size() + 1 >= input().shape.size())
        return RefuseInput(": \"data\" is nested deeper than its shape");
      ++arrays_;
      opened_.push_back(count_);
      return true;
    case At::kSkipped:
      ++depth_;
      return true;
    default:
      return RefuseValue();
  }
}

bool InferSink::EndArray() {
  switch (at_) {
    case At::kData:
      return EndData();
    case At::kShape:
      at_ = At::kInput;
      return true;
    case At::kInputs:
    case At::kOutputs:
      at_ = At::kRequest;
      return true;
    default:
      if (--depth_ == 0) at_ = back_;
      return true;
  }
}

bool InferSink::BeginInput() {
  at_ = At::kInput;
  input_ = next_input_++;
  if (again_) return true;
  if (input_ == kInputsMost) return Refuse(fmt::format("more than {} inputs", kInputsMost));
  request_->inputs.emplace_back();
  states_->emplace_back();
  return true;
}

bool InferSink::EndInput() {
  if (again_) return true;
  if (!state().has_name) return RefuseInput(" has no \"name\"");
  if (!state().has_datatype) return RefuseInput(" has no \"datatype\"");
  if (!state().has_shape) return RefuseInput(" has no \"shape\"");
  if (state().has_data == state().binary_bytes.has_value())
    return RefuseInput(state().has_data ? " has both \"data\" and \"binary_data_size\""
                                        : " has neither \"data\" nor \"binary_data_size\"");
  if (!CheckInput()) return false;
  // Names are the model's by now, so there are few.
  for (size_t i = 0; i < input_; ++i)
    if (request_->inputs[i].name == input().name) return RefuseInput(" is there twice");
  return true;
}

bool InferSink::CheckInput() {
  if (!input().elements())
    return RefuseInput(fmt::format(" has more than {} elements", kTensorElementsMost));
  const Status checked = rules_.Check(input());
  return checked ? true : Refuse(checked.error());
}

bool InferSink::BeginData() {
  InputState& is = state();
  if (is.has_data && !again_) return RefuseInput(": \"data\" is there twice");
  is.has_data = true;
  if (!is.has_name || !is.has_datatype || !is.has_shape) {
    is.passed_over = true;
    return Skip();
  }
  if (again_ && !is.passed_over) return Skip();
  if (!CheckInput()) return false;
  expected_ = *input().elements();
  count_ = 0;
  opened_.clear();
  arrays_ = 0;
  element_depth_.reset();
  is.begin = is.end = request_->held.size();
  at_ = At::kData;
  return true;
}

bool InferSink::EndData() {
  if (opened_.empty()) {
    at_ = At::kInput;
    state().end = request_->held.size();
    // Arrays without elements would not be missed among the elements.
    if (expected_ == 0 && arrays_ > 0 && (input().shape.size() != 2 || arrays_ != input().shape[0]))
      return RefuseInput(fmt::format(": \"data\" has {} arrays, which are not its shape", arrays_));
    if (count_ == expected_) return true;
    return RefuseInput(fmt::format(" has {} elements, its shape {}", count_, expected_));
  }
  uint64_t wanted = 1;
  for (size_t i = opened_.size(); i < input().shape.size(); ++i) wanted *= input().shape[i];
  const uint64_t found = count_ - opened_.back();
  opened_.pop_back();
  if (found == wanted) return true;
  return RefuseInput(
      fmt::format(": an array within \"data\" has {} elements, its shape {}", found, wanted));
}

bool InferSink::RefuseValue() {
  if (at_ == At::kData) return RefuseInput(": \"data\" must hold scalars");
  if (at_ == At::kShape) return RefuseInput(": \"shape\" must hold whole numbers");
  if (at_ == At::kInputs || at_ == At::kOutputs)
    return Refuse(
        fmt::format("\"{}\" must hold objects", at_ == At::kInputs ? "inputs" : "outputs"));
  const std::string what = fmt::format("\"{}\" is of the wrong kind", key_);
  const bool of_input = at_ == At::kInput || (at_ == At::kParameters && owner_ == At::kInput);
  return of_input ? RefuseInput(": " + what) : Refuse(what);
}

bool InferSink::Scalar(const http::JsonScalar& value) {
  switch (at_) {
    case At::kStart:
      is_object_ = false;
      return true;
    case At::kRequest:
    case At::kInput:
    case At::kOutput:
      return ReadText(value);
    case At::kShape:
      return ReadSize(value);
    case At::kData:
      return ReadElement(value);
    case At::kParameters:
      return ReadParameter(value);
    case At::kSkipped:
      return true;
    default:
      return RefuseValue();
  }
}

bool InferSink::ReadText(const http::JsonScalar& value) {
  if (value.kind != http::JsonScalar::Kind::kString) return RefuseValue();
  if (at_ == At::kRequest) {
    if (key_ == "id") {
      request_->id = value.text;
      return true;
    }
    if (key_ != "model_name") return RefuseValue();
    return value.text == rules_.model() ||
           Refuse(fmt::format("\"model_name\" is '{}', the path's is '{}'",
                              value.text.substr(0, 64), rules_.model()));
  }
  if (at_ == At::kOutput) {
    if (key_ != "name") return RefuseValue();
    request_->outputs.back().name = value.text;
    return true;
  }
  if (again_) return true;
  if (key_ == "name") {
    if (state().has_name) return RefuseInput(": \"name\" is there twice");
    input().name = value.text;
    state().has_name = true;
    return true;
  }
  if (key_ != "datatype") return RefuseValue();
  const auto datatype = DatatypeOf(value.text);
  if (!datatype)
    return RefuseInput(fmt::format(": there is no datatype '{}'", value.text.substr(0, 64)));
  if (state().has_datatype) return RefuseInput(": \"datatype\" is there twice");
  state().has_datatype = true;
  input().datatype = *datatype;
  return true;
}

bool InferSink::ReadSize(const http::JsonScalar& value) {
  if (value.kind != http::JsonScalar::Kind::kInt64 || value.int64 < 0)
    return RefuseInput(": \"shape\" must hold whole numbers");
  if (input().shape.size() == kRankMost)
    return RefuseInput(fmt::format(": \"shape\" has more than {} sizes", kRankMost));
  input().shape.push_back(static_cast<uint64_t>(value.int64));
  return true;
}

bool InferSink::ReadParameter(const http::JsonScalar& value) {
  const bool is_flag = value.kind == http::JsonScalar::Kind::kBool;
  const bool is_count = value.kind == http::JsonScalar::Kind::kInt64 && value.int64 >= 0;
  if (key_ == "binary_data_size") {
    if (!is_count) return RefuseInput(": \"binary_data_size\" must be a whole number");
    if (state().binary_bytes) return RefuseInput(": \"binary_data_size\" is there twice");
    state().binary_bytes = static_cast<uint64_t>(value.int64);
  } else if (key_ == "k") {
    if (!is_count) return Refuse("parameter \"k\" must be a whole number");
    request_->count = value.int64;
  } else if (!is_flag) {
    return Refuse(fmt::format("parameter \"{}\" must be true or false", key_));
  } else if (key_ == "exclude_seen") {
    request_->exclude_seen = value.flag;
  } else if (key_ == "binary_data_output") {
    request_->binary_output = value.flag;
  } else {
    request_->outputs.back().binary = value.flag;
  }
  return true;
}

bool InferSink::ReadElement(const http::JsonScalar& value) {
  const size_t depth = opened_.size();
  if ((element_depth_ && *element_depth_ != depth) ||
      (depth > 0 && depth + 1 != input().shape.size()))
    return RefuseInput(": \"data\" is neither flat nor nested as its shape");
  element_depth_ = depth;
  if (count_ == expected_)
    return RefuseInput(fmt::format(" has more elements than its shape, {}", expected_));
  if (!AddElement(value)) {
    if (failure()) return false;
    return RefuseInput(fmt::format(": element {} is no {}", count_, NameOf(input().datatype)));
  }
  ++count_;
  return true;
}

template <class T>
bool InferSink::AddInteger(const http::JsonScalar& value) {
  const bool is_large = value.kind == http::JsonScalar::Kind::kUint64;
  if (!is_large && value.kind != http::JsonScalar::Kind::kInt64) return false;
  if (is_large ? !std::in_range<T>(value.uint64) : !std::in_range<T>(value.int64)) return false;
  AppendElement(is_large ? static_cast<T>(value.uint64) : static_cast<T>(value.int64),
                &request_->held);
  return true;
}

// Returns false, with no failure set, for a value that is not of the datatype.
bool InferSink::AddElement(const http::JsonScalar& value) {
  const bool is_null = value.kind == http::JsonScalar::Kind::kNull;
  std::string* const held = &request_->held;
  switch (input().datatype) {
    case Datatype::kBytes:
      if (!is_null && value.kind != http::JsonScalar::Kind::kString) return false;
      AppendElement(static_cast<uint32_t>(value.text.size()), held);
      held->append(value.text);
      return true;
    case Datatype::kFp32:
    case Datatype::kFp64: {
      const double number = value.Number().value_or(std::numeric_limits<double>::quiet_NaN());
      if (std::isnan(number) != is_null || std::isinf(number)) return false;
      if (input().datatype == Datatype::kFp64) {
        AppendElement(number, held);
        return true;
      }
      if (std::fabs(number) > std::numeric_limits<float>::max()) return false;
      AppendElement(static_cast<float>(number), held);
      return true;
    }
    case Datatype::kBool:
      if (value.kind != http::JsonScalar::Kind::kBool) return false;
      AppendElement(static_cast<uint8_t>(value.flag), held);
      return true;
    case Datatype::kUint8:
      return AddInteger<uint8_t>(value);
    case Datatype::kUint16:
      return AddInteger<uint16_t>(value);
    case Datatype::kUint32:
      return AddInteger<uint32_t>(value);
    case Datatype::kUint64:
      return AddInteger<uint64_t>(value);
    case Datatype::kInt8:
      return AddInteger<int8_t>(value);
    case Datatype::kInt16:
      return AddInteger<int16_t>(value);
    case Datatype::kInt32:
      return AddInteger<int32_t>(value);
    case Datatype::kInt64:
      return AddInteger<int64_t>(value);
    case Datatype::kFp16:  // none of our models takes it, so the rules have refused it
      return false;
  }
  return false;
}

// Gives every input the view of its elements, and checks them.
Status PlaceData(std::string_view binary, const std::vector<InputState>& states,
                 InferRequest* request) {
  for (size_t i = 0; i < states.size(); ++i) {
    Tensor& input = request->inputs[i];
    if (!states[i].binary_bytes) {
      input.data =
          std::string_view(request->held).substr(states[i].begin, states[i].end - states[i].begin);
      continue;  // written here, element by element
    }
    const uint64_t bytes = *states[i].binary_bytes;
    if (bytes > binary.size())
      return http::BadRequest(
          fmt::format("input '{}': \"binary_data_size\" is {}, {} bytes are left of "
                      "the body",
                      input.name, bytes, binary.size()));
    input.data = binary.substr(0, bytes);
    binary.remove_prefix(bytes);
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
  std::vector<InputState> states;
  InferSink sink(rules, request, &states, /*again=*/false);
  TACIT_RETURN_IF_ERROR(http::ReadJson(json, kInferDepthMost, &sink));
  if (!sink.is_object()) return http::BadRequest("the request must be a JSON object");
  if (!sink.has_inputs()) return http::BadRequest("\"inputs\" is missing");
  if (request->inputs.empty()) return http::BadRequest("\"inputs\" is empty");
  if (std::ranges::any_of(states, &InputState::passed_over)) {
    InferSink again(rules, request, &states, /*again=*/true);
    TACIT_RETURN_IF_ERROR(http::ReadJson(json, kInferDepthMost, &again));
  }
  return PlaceData(body.substr(json_bytes), states, request);
}

}  // namespace tacit::serve
