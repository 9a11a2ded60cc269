#include "event/avro/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "event/run_codec.h"

namespace tacit::event {

MaybeBad AvroProgram::BeginBlock(const AvroStep& step, AvroBytes* bytes, uint64_t* left,
                                 bool* ends) {
  const int64_t count = bytes->Long();
  *left = count < 0 ? -static_cast<uint64_t>(count) : static_cast<uint64_t>(count);
  *ends = count == 0;
  if (count < 0) {
    // Such a block says its size, so that it can be skipped.
    const auto size = static_cast<uint64_t>(bytes->Long());
    if (size > bytes->left()) bytes->Damage();
    if (step.skipped) {
      bytes->Take(size);
      *left = 0;
    }
  }
  // Elements that take no bytes say nothing, and there may be a billion of them.
  if (step.size == 0) *left = 0;
  if (bytes->damaged() || *left > bytes->left()) return DamagedAvro();
  return std::nullopt;
}

uint32_t AvroProgram::Below(const AvroStep& step, std::string_view key, uint32_t* guess) const {
  const Child* const children = children_.data() + step.first;
  if (step.count == 1) return children->step;
  if (*guess == 0 || children[*guess].key != key) {
    const Child* const found = std::ranges::lower_bound(children + 1, children + step.count, key,
                                                        std::less<>(), &Child::key);
    if (found == children + step.count || found->key != key) return children->step;
    *guess = static_cast<uint32_t>(found - children);
  }
  const Child& child = children[*guess];
  *guess = child.next;
  return child.step;
}

// Makes a program. Each pair of a writer's and a reader's type at one place is one step, so that a
// type that holds itself is a circle. It calls itself for no level of the types: what is to be
// compiled waits in a list.
class AvroCompiler {
 public:
  AvroCompiler(std::shared_ptr<const AvroSchema> writer, std::shared_ptr<const AvroSchema> reader,
               AvroPlaces places) {
    made_.writer_ = std::move(writer);
    made_.reader_ = std::move(reader);
    made_.places_ = std::move(places);
  }

  Result<AvroProgram> Compile() {
    const AvroSchema& writer = *made_.writer_;
    const AvroType& root = writer.types[writer.root];
    if (root.kind != AvroKind::kRecord || root.takes_no_bytes)
      return Fail(ErrorCode::kInvalidArgument, "the Avro schema is that of no record with fields");
    const uint32_t reader = made_.reader_ == nullptr ? writer.root : made_.reader_->root;
    const uint32_t everywhere = made_.places_ == nullptr ? AvroProgram::kEverywhere : 0;
    TACIT_RETURN_IF_ERROR(StepOf({writer.root, reader, everywhere, made_.reader_ == nullptr}, ""));
    for (size_t i = 0; i < waiting_.size(); ++i) {
      const auto [pair, step] = waiting_[i];
      TACIT_RETURN_IF_ERROR(Fill(pair, step));
      if (made_.steps_.size() > AvroProgram::kStepsMost ||
          made_.children_.size() > 4 * AvroProgram::kStepsMost)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("the Avro schema takes more than {} steps to read",
                                AvroProgram::kStepsMost));
    }
    return std::move(made_);
  }

 private:
  using Child = AvroProgram::Child;

  struct Pair {
    uint32_t writer = 0, reader = 0, place = 0;
    bool own = false;  // both types are one, of the schema that records are read by
    auto operator<=>(const Pair&) const = default;
  };

  const AvroSchema& read_by() const {
    return made_.reader_ == nullptr ? *made_.writer_ : *made_.reader_;
  }
  const std::vector<AvroType>& Types(const Pair& pair) const {
    return (pair.own ? read_by() : *made_.writer_).types;
  }
  const AvroType& Writer(const Pair& pair) const { return Types(pair)[pair.writer]; }
  const AvroType& Reader(const Pair& pair) const { return read_by().types[pair.reader]; }

  static tl::unexpected<Error> Differs(std::string_view field) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is of a type that the reader's schema cannot read",
                            field.empty() ? "the record" : "field " + Quoted(field)));
  }

  // True if a value of the one type may be read as the other.
  bool Match(const AvroType& writer, const AvroType& reader) const {
    const auto between = [&](AvroKind least, AvroKind most) {
      return writer.kind <= reader.kind && writer.kind >= least && reader.kind <= most;
    };
    if (writer.kind == AvroKind::kUnion || reader.kind == AvroKind::kUnion) return true;
    if (between(AvroKind::kInt, AvroKind::kDouble)) return true;
    const bool texts = (writer.kind == AvroKind::kBytes || writer.kind == AvroKind::kString) &&
                       (reader.kind == AvroKind::kBytes || reader.kind == AvroKind::kString);
    if (writer.kind != reader.kind && !texts) return false;
    if (writer.logical == AvroType::Logical::kDecimal &&
        reader.logical == AvroType::Logical::kDecimal && writer.scale != reader.scale)
      return false;
    if (writer.kind == AvroKind::kArray || writer.kind == AvroKind::kMap)
      return Match(made_.writer_->types[writer.types[0]], read_by().types[reader.types[0]]);
    if (writer.kind == AvroKind::kFixed && writer.size != reader.size) return false;
    const auto last = [](std::string_view name) { return name.substr(name.rfind('.') + 1); };
    return !writer.is_named() || last(writer.name) == last(reader.name) ||
           std::ranges::find(reader.aliases, writer.name) != reader.aliases.end();
  }

  uint32_t Below(uint32_t place, std::string_view key) const {
    if (place >= AvroProgram::kEverywhere) return place;
    const uint32_t* child = (*made_.places_)[place].Find(key);
    return child == nullptr ? AvroStep::kNowhere : *child;
  }
  const PlaceNode* NodeOf(uint32_t place) const {
    return place >= AvroProgram::kEverywhere ? nullptr : &(*made_.places_)[place];
  }

  // The step that reads this pair. `field` is for the message.
  Result<uint32_t> StepOf(Pair pair, std::string_view field) {
    const bool skipped = pair.place == AvroStep::kNowhere;
    if (skipped) {
      pair.reader = 0;
    } else if (!pair.own && Writer(pair).kind != AvroKind::kUnion) {
      while (Reader(pair).kind == AvroKind::kUnion) {
        const std::vector<uint32_t>& branches = Reader(pair).types;
        const auto fit = std::ranges::find_if(branches, [&](uint32_t branch) {
          return Match(Writer(pair), read_by().types[branch]);
        });
        if (fit == branches.end()) return Differs(field);
        pair.reader = *fit;
      }
      if (!Match(Writer(pair), Reader(pair))) return Differs(field);
    }
    const auto [known, fresh] = steps_.emplace(pair, static_cast<uint32_t>(made_.steps_.size()));
    if (!fresh) return known->second;
    waiting_.emplace_back(pair, known->second);
    made_.steps_.emplace_back();
    return known->second;
  }

  Status Fill(const Pair pair, uint32_t index) {
    const AvroType& writer = Writer(pair);
    AvroStep step{.skipped = pair.place == AvroStep::kNowhere, .place = pair.place};
    const AvroType& type = step.skipped || pair.own ? writer : Reader(pair);
    const PlaceNode* const node = NodeOf(pair.place);
    const bool has_others = writer.kind >= AvroKind::kArray;
    // A value where others were expected is as if it were not there.
    if (node != nullptr && node->parts.empty() && !has_others) step.place = AvroStep::kNowhere;
    step.logical = type.logical;
    step.local = type.local;
    step.scale = type.scale;
    step.is_text = type.kind == AvroKind::kString;
    step.size = writer.size;
    std::vector<Child> children;
    switch (writer.kind) {
      case AvroKind::kNull:
        step.op = AvroOp::kNothing;
        break;
      case AvroKind::kBoolean:
        step.op = AvroOp::kBoolean;
        break;
      case AvroKind::kInt:
        step.op = AvroOp::kInt;
        break;
      case AvroKind::kLong:
        step.op = AvroOp::kLong;
        break;
      case AvroKind::kFloat:
        step.op = AvroOp::kFloat;
        break;
      case AvroKind::kDouble:
        step.op = AvroOp::kDouble;
        break;
      case AvroKind::kBytes:
      case AvroKind::kString:
        step.op = AvroOp::kBytes;
        break;
      case AvroKind::kFixed:
        step.op = AvroOp::kFixed;
        break;
      case AvroKind::kEnum:
        step.op = AvroOp::kEnum;
        children = Symbols(writer, type);
        break;
      case AvroKind::kArray:
      case AvroKind::kMap:
        step.op = writer.kind == AvroKind::kMap ? AvroOp::kMap : AvroOp::kArray;
        step.size =
            writer.kind == AvroKind::kMap || !Types(pair)[writer.types[0]].takes_no_bytes ? 1 : 0;
        TACIT_RETURN_IF_ERROR(Elements(pair, writer, type, &children));
        break;
      case AvroKind::kUnion:
        step.op = AvroOp::kUnion;
        TACIT_RETURN_IF_ERROR(Branches(pair, writer, &children));
        break;
      case AvroKind::kRecord:
        step.op = AvroOp::kRecord;
        TACIT_RETURN_IF_ERROR(OfFields(pair, writer, type, &children));
        break;
    }
    if (step.skipped && writer.takes_no_bytes) {
      step.op = AvroOp::kNothing;
      children.clear();
    }
    // A sink is told of what has others in it where it is a value, or where all is told.
    if (node != nullptr && node->parts.empty()) step.place = AvroStep::kNowhere;
    Put(index, step, children);
    return {};
  }

  void Put(uint32_t index, AvroStep step, const std::vector<Child>& children) {
    step.first = static_cast<uint32_t>(made_.children_.size());
    step.count = static_cast<uint32_t>(children.size());
    made_.children_.insert(made_.children_.end(), children.begin(), children.end());
    made_.steps_[index] = step;
  }

  // A child for each symbol; its key is the reader's.
  static std::vector<Child> Symbols(const AvroType& writer, const AvroType& reader) {
    std::vector<Child> children;
    for (const std::string& symbol : writer.symbols) {
      const auto same = std::ranges::find(reader.symbols, symbol);
      Child child;
      if (same != reader.symbols.end())
        child.key = *same;
      else if (reader.fallback)
        child.key = reader.symbols[*reader.fallback];
      children.push_back(child);
    }
    return children;
  }

  Status Elements(const Pair& pair, const AvroType& writer, const AvroType& type,
                  std::vector<Child>* children) {
    const auto add = [&](std::string_view key, uint32_t place) -> Status {
      TACIT_ASSIGN(const uint32_t step,
                   StepOf({writer.types[0], type.types[0], place, pair.own}, "of a list or map"));
      children->push_back({.key = key, .step = step});
      return {};
    };
    const PlaceNode* const node = NodeOf(pair.place);
    // The elements of a set are values of its place.
    const bool all = node == nullptr || !node->parts.empty();
    TACIT_RETURN_IF_ERROR(add({}, all ? pair.place : AvroStep::kNowhere));
    if (all) return {};
    for (const auto& [key, place] : node->children) TACIT_RETURN_IF_ERROR(add(key, place));
    // Places are numbered in the order of parts.
    std::vector<std::pair<uint32_t, uint32_t>> order;
    for (uint32_t i = 0; i < node->children.size(); ++i)
      order.emplace_back(node->children[i].second, i + 1);
    std::ranges::sort(order);
    for (size_t i = 0; i < order.size(); ++i)
      (*children)[order[i].second].next = order[(i + 1) % order.size()].second;
    return {};
  }

  Status Branches(const Pair& pair, const AvroType& writer, std::vector<Child>* children) {
    for (size_t i = 0; i < writer.types.size(); ++i) {
      const uint32_t reader = pair.own ? writer.types[i] : pair.reader;
      const auto step = StepOf({writer.types[i], reader, pair.place, pair.own}, "");
      children->push_back({.step = step ? *step : static_cast<uint32_t>(made_.steps_.size())});
      // A record that does not take this branch can be read.
      if (!step) made_.steps_.push_back({.op = AvroOp::kMismatch});
    }
    return {};
  }

  Status OfFields(const Pair& pair, const AvroType& writer, const AvroType& type,
                  std::vector<Child>* children) {
    std::vector<uint8_t> read(type.fields.size());
    const bool skipped = pair.place == AvroStep::kNowhere;
    for (size_t i = 0; i < writer.fields.size(); ++i) {
      const AvroType::Field& field = writer.fields[i];
      const size_t found = pair.own || skipped ? i : ReaderField(type, field.name, read);
      Pair below{field.type, 0, AvroStep::kNowhere, pair.own};
      if (!skipped && found < type.fields.size()) {
        read[found] = 1;
        below.reader = type.fields[found].type;
        below.place = Below(pair.place, type.fields[found].name);
      }
      const AvroType& type_below = Writer(below);
      if (below.place == AvroStep::kNowhere && type_below.takes_no_bytes) continue;
      TACIT_ASSIGN(const uint32_t step, StepOf(below, field.name));
      children->push_back({.key = skipped || found >= type.fields.size() ? std::string_view()
                                                                         : type.fields[found].name,
                           .step = step});
    }
    if (pair.own || skipped) return {};
    for (size_t i = 0; i < type.fields.size(); ++i)
      if (read[i] == 0) TACIT_RETURN_IF_ERROR(Default(pair, type.fields[i], children));
    return {};
  }

  // The reader's field of the writer's name, or with it as an alias.
  static size_t ReaderField(const AvroType& type, const std::string& name,
                            const std::vector<uint8_t>& read) {
    const auto free = [&](size_t i) { return read[i] == 0; };
    for (size_t i = 0; i < type.fields.size(); ++i)
      if (free(i) && type.fields[i].name == name) return i;
    for (size_t i = 0; i < type.fields.size(); ++i)
      if (free(i) &&
          std::ranges::find(type.fields[i].aliases, name) != type.fields[i].aliases.end())
        return i;
    return type.fields.size();
  }

  Status Default(const Pair& pair, const AvroType::Field& field, std::vector<Child>* children) {
    if (!field.fallback)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("field {} is not in the writer's schema, and has no default",
                              Quoted(field.name)));
    const uint32_t place = Below(pair.place, field.name);
    if (place == AvroStep::kNowhere) return {};
    TACIT_ASSIGN(const uint32_t value, StepOf({field.type, field.type, place, true}, field.name));
    const auto jump = static_cast<uint32_t>(made_.steps_.size());
    children->push_back({.key = field.name, .step = jump});
    made_.steps_.emplace_back();
    Put(jump, {.op = AvroOp::kDefault, .size = made_.defaults_.size()}, {{.step = value}});
    made_.defaults_.push_back(*field.fallback);
    return {};
  }

  AvroProgram made_;
  std::map<Pair, uint32_t> steps_;
  std::vector<std::pair<Pair, uint32_t>> waiting_;  // steps that are not filled in yet
};

Result<std::shared_ptr<const AvroProgram>> AvroProgram::Compile(
    std::shared_ptr<const AvroSchema> writer, std::shared_ptr<const AvroSchema> reader,
    AvroPlaces places) {
  TACIT_ASSIGN(AvroProgram program,
               AvroCompiler(std::move(writer), std::move(reader), std::move(places)).Compile());
  return std::make_shared<const AvroProgram>(std::move(program));
}

}  // namespace tacit::event
