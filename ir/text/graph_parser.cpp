// SPDX-License-Identifier: Apache-2.0
#include "ir/text/graph_parser.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "ir/text/parser.h"

namespace stowage::ir {

namespace {

// Ids are dense, so none can reach what a text of that length could declare; far below the limit of
// an id.
constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max() / 2;

std::optional<int32_t> lastId(const auto& declared) {
  if (declared.empty()) return std::nullopt;
  return declared.back().id;
}

// Sorts by id and says which declaration breaks "each of 0 .. n-1 once"; null if none does.
const auto* sortById(auto& declared) {
  std::stable_sort(declared.begin(), declared.end(),
                   [](const auto& a, const auto& b) { return a.id < b.id; });
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].id != static_cast<int64_t>(i)) return &declared[i];
  }
  return static_cast<decltype(declared.data())>(nullptr);
}

}  // namespace

Graph GraphParser::parse() {
  parseHeader();
  while (!reader_.failed() && !reader_.peek().isSign('}')) parseStatement();
  reader_.expect('}');
  if (!reader_.failed()) addStoragesInOrder();
  if (!reader_.failed()) addValuesInOrder();
  if (reader_.failed()) return {};
  for (Node& node : nodes_) builder_->addNode(std::move(node));
  return std::move(*builder_).finish();
}

void GraphParser::parseHeader() {
  reader_.expectLineStart();
  reader_.expectWord("graph");
  builder_.emplace(reader_.expectKind(TokenKind::kGraph, "a name with '@'").str());
  Provenance& provenance = builder_->provenance();
  reader_.expectWord("version");
  reader_.expect('=');
  const Token version = reader_.peek();
  if (reader_.expectInteger() != kTextVersion) {
    reader_.fail(version, "found version " + version.text.str() + " of the text form, expected " +
                              std::to_string(kTextVersion));
  }
  parseHeaderText("device", provenance.device);
  parseHeaderText("target", provenance.target);
  parseHeaderText("recipe", provenance.recipe);
  parseHeaderText("producer", provenance.producer);
  if (reader_.acceptWord("steps")) {
    reader_.expect('=');
    const Token steps = reader_.peek();
    const int64_t count = reader_.expectNonNegative("a number of steps");
    if (count > kMaxId) reader_.fail(steps, "found more steps than can be counted");
    provenance.stepsCaptured = static_cast<int>(count);
  }
  if (reader_.acceptWord("ranks")) {
    reader_.expect('=');
    const Token ranks = reader_.peek();
    const int64_t count = reader_.expectNonNegative("a number of ranks");
    if (count < 2 || count > kMostRanks) {
      reader_.fail(ranks, "found " + ranks.text.str() + " ranks, expected 2 to " +
                              std::to_string(kMostRanks));
    }
    builder_->setRanks(count);
  }
  provenance.deterministic = !reader_.acceptWord("nondeterministic");
  reader_.expect('{');
}

void GraphParser::parseHeaderText(llvm::StringRef key, std::string& text) {
  if (!reader_.acceptWord(key)) return;
  reader_.expect('=');
  text = reader_.expectString();
}

void GraphParser::parseStatement() {
  reader_.expectLineStart();
  const Token& token = reader_.peek();
  if (token.kind == TokenKind::kWord) {
    const llvm::StringRef word = token.text;
    if (word == "scalar") return parseScalar();
    if (word == "view") return parseView();
    if (const std::optional<Phase> phase = findPhase(word)) return parsePhase(*phase);
    if (const std::optional<Role> role = findRole(word)) return parseStorage(*role);
    if (word == "_" || word.contains('.')) return parseNode();
  } else if (token.kind == TokenKind::kValue) {
    return parseNode();
  }
  reader_.failExpected("a declaration, a phase, a node or '}'");
}

void GraphParser::parseScalar() {
  reader_.expectWord("scalar");
  const Token name = reader_.peek();
  StepScalar scalar{.name = reader_.expectKind(TokenKind::kScalar, "a name with '#'").str()};
  reader_.expect(':');
  const Token kind = reader_.peek();
  const llvm::StringRef kindText = reader_.expectKind(TokenKind::kWord, "f64 or i64");
  reader_.expect('=');
  if (kindText == "i64") {
    scalar.isInteger = true;
    scalar.integer = reader_.expectInteger();
  } else if (kindText == "f64") {
    scalar.value = reader_.expectNumber();
  } else {
    reader_.fail(kind, "found '" + kindText.str() + "', expected f64 or i64");
  }
  if (reader_.failed()) return;
  const ScalarId id = builder_->addScalar(std::move(scalar));
  if (!names_.scalars.try_emplace(name.text, id).second) {
    reader_.fail(name, "found '#" + name.text.str() + "' declared a second time");
  }
}

void GraphParser::parseStorage(Role role) {
  reader_.next();
  const Token name = reader_.peek();
  reader_.expectKind(TokenKind::kValue, "a value");
  declareRoot(name, role);
}

void GraphParser::parseView() {
  reader_.expectWord("view");
  const Token name = reader_.peek();
  reader_.expectKind(TokenKind::kValue, "a value");
  declareView(name);
}

void GraphParser::parsePhase(Phase phase) {
  reader_.next();
  phase_ = phase;
  scope_ = builder_->internScope(reader_.expectString());
  reader_.expect(':');
}

void GraphParser::parseNode() {
  Node node{.phase = phase_, .scope = scope_};
  if (reader_.peek().kind == TokenKind::kValue || reader_.peek().isWord("_")) {
    do {
      node.results.push_back(parseResult());
    } while (reader_.accept(','));
    reader_.expect('=');
  }
  const Token op = reader_.peek();
  node.op = reader_.expectKind(TokenKind::kWord, "an op").str();
  if (!op.text.contains('.')) {
    reader_.fail(op, "found '" + op.text.str() + "', expected an op like aten.mm.default");
  }
  ArgumentParser(reader_, names_).parseArguments(node);
  if (reader_.acceptWord("on")) {
    reader_.expectWord("host");
    node.onHost = true;
  }
  nodes_.push_back(std::move(node));
  ops_.push_back(reader_.locationOf(op));
}

ValueId GraphParser::parseResult() {
  if (reader_.acceptWord("_")) return ValueId();
  const Token name = reader_.peek();
  reader_.expectKind(TokenKind::kValue, "a value or '_'");
  const Token& after = reader_.peek();
  if (after.isWord("of")) return declareView(name);
  if (!after.isSign(',') && !after.isSign('=')) return declareRoot(name, std::nullopt);
  const auto known = names_.values.find(name.text);
  if (known != names_.values.end()) return known->second;
  reader_.fail(name, "found '%" + name.text.str() +
                         "', expected a value that is declared above or a type after it");
  return ValueId();
}

GraphParser::Attributes GraphParser::parseAttributes() {
  Attributes attributes;
  while (!reader_.peek().isSign(':') && parseAttribute(attributes)) {
  }
  reader_.expect(':');
  return attributes;
}

bool GraphParser::parseAttribute(Attributes& attributes) {
  const Token token = reader_.peek();
  if (token.kind == TokenKind::kString && !attributes.name) {
    attributes.name = reader_.expectString();
  } else if (token.isWord("output") && !attributes.output) {
    reader_.next();
    attributes.output = true;
  } else if (token.isWord("host") && !attributes.host) {
    reader_.next();
    attributes.host = true;
  } else if ((token.isWord("persistent") || token.isWord("transient")) && !attributes.persistent) {
    attributes.persistent = reader_.next().text == "persistent";
  } else if (token.isWord("storage") && !attributes.storageId) {
    attributes.storageId = parseId();
  } else if (token.isWord("value") && !attributes.valueId) {
    attributes.valueId = parseId();
  } else if (token.kind == TokenKind::kWord && findRole(token.text) && !attributes.role) {
    attributes.role = findRole(reader_.next().text);
  } else {
    reader_.failExpected("':' or an attribute that is not there yet");
  }
  return !reader_.failed();
}

int32_t GraphParser::parseId() {
  reader_.next();
  reader_.expect('=');
  const Token token = reader_.peek();
  const int64_t id = reader_.expectNonNegative("an id");
  if (id <= kMaxId) return static_cast<int32_t>(id);
  reader_.fail(token, "found '" + token.text.str() + "', expected the number of a declaration");
  return 0;
}

ValueId GraphParser::declareRoot(const Token& name, std::optional<Role> role) {
  const Attributes attributes = parseAttributes();
  if (role && attributes.role) reader_.fail(name, "found two roles in one declaration");
  // A delivered storage without another role is an output; an output is always delivered.
  const Role fallback = attributes.output ? Role::kOutput : Role::kActivation;
  Storage storage{.name = attributes.name.value_or(name.text.str()),
                  .role = role.value_or(attributes.role.value_or(fallback))};
  storage.home = attributes.host ? Space::kHost : Space::kDevice;
  storage.persistent = attributes.persistent.value_or(isPersistentByDefault(storage.role));
  storage.output = attributes.output || storage.role == Role::kOutput;
  Value value{.name = name.text.str(), .type = parseType(reader_)};
  storage.bytes = value.type.findExtentBytes().value_or(Bytes(0));
  if (reader_.acceptWord("bytes")) {
    reader_.expect('=');
    storage.bytes = reader_.expectBytes();
  }
  if (reader_.acceptWord("shard")) {
    reader_.expectWord("of");
    storage.shardOf = parseType(reader_);
  }
  if (reader_.failed()) return ValueId();
  const int32_t id = attributes.storageId.value_or(lastId(storages_).value_or(-1) + 1);
  storages_.push_back({.thing = std::move(storage), .id = id, .token = name});
  value.storage = StorageId(id);
  return declareValue(name, attributes.valueId, std::move(value));
}

ValueId GraphParser::declareView(const Token& name) {
  reader_.expectWord("of");
  const Token base = reader_.peek();
  parseValueReference(reader_, names_);
  std::optional<int32_t> id;
  if (reader_.peek().isWord("value")) id = parseId();
  reader_.expect(':');
  Value value{.name = name.text.str(), .type = parseType(reader_)};
  if (reader_.failed()) return ValueId();
  value.storage = storageOfValue_.lookup(base.text);
  return declareValue(name, id, std::move(value));
}

ValueId GraphParser::declareValue(const Token& name, std::optional<int32_t> id, Value value) {
  const int32_t number = id.value_or(lastId(values_).value_or(-1) + 1);
  if (!names_.values.try_emplace(name.text, ValueId(number)).second) {
    reader_.fail(name, "found '%" + name.text.str() + "' declared a second time");
    return ValueId();
  }
  storageOfValue_[name.text] = value.storage;
  values_.push_back({.thing = std::move(value), .id = number, .token = name});
  return ValueId(number);
}

void GraphParser::addStoragesInOrder() {
  if (const auto* odd = sortById(storages_)) {
    return reader_.fail(odd->token, "found storage=" + std::to_string(odd->id) +
                                        ", expected each of 0 to " +
                                        std::to_string(storages_.size() - 1) + " once");
  }
  for (Declared<Storage>& declared : storages_) builder_->addStorage(std::move(declared.thing));
}

void GraphParser::addValuesInOrder() {
  if (const auto* odd = sortById(values_)) {
    return reader_.fail(odd->token, "found value=" + std::to_string(odd->id) +
                                        ", expected each of 0 to " +
                                        std::to_string(values_.size() - 1) + " once");
  }
  for (Declared<Value>& declared : values_) builder_->addValue(std::move(declared.thing));
}

}  // namespace stowage::ir
