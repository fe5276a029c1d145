// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_json.h"

#include <llvm/ADT/StringMap.h>

#include <optional>
#include <utility>

#include "runtime/capture/pt2/pt2_codes.h"
#include "runtime/capture/pt2/pt2_json_fields.h"

namespace stowage::runtime {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSchemaMajor = 8;
constexpr size_t kMaxRank = 64;
constexpr int64_t kMaxElements = int64_t{1} << 56;

class ProgramReader {
 public:
  explicit ProgramReader(const std::string& file) : fields_(file) {}

  ir::Expected<Pt2Program> read(const Json& document) {
    readVersions(document);
    const Json& module = fields_.object(document, "graph_module");
    const Json& graph = fields_.object(module, "graph");
    readTensors(graph);
    readSymbolicIntegers(graph);
    const Json& signature = fields_.object(module, "signature");
    readInputs(fields_.array(signature, "input_specs"), fields_.array(graph, "inputs"));
    readNodes(fields_.array(graph, "nodes"));
    readOutputs(fields_.array(signature, "output_specs"), fields_.array(graph, "outputs"));
    if (ir::Error error = fields_.takeError()) return error;
    return std::move(program_);
  }

 private:
  void unsupported(const std::string& message) {
    fields_.fail(message, ir::ErrorCode::kUnsupported);
  }

  void readVersions(const Json& document) {
    fields_.setPlace("the document");
    const Json& version = fields_.object(document, "schema_version");
    const int64_t major = fields_.integer(version, "major");
    const int64_t minor = fields_.integer(version, "minor");
    if (major != kSchemaMajor) {
      unsupported("found schema version " + std::to_string(major) + "." + std::to_string(minor) +
                  ", expected " + std::to_string(kSchemaMajor) + " and any minor version");
    }
    if (fields_.find(document, "torch_version") != nullptr) {
      program_.torchVersion = fields_.text(document, "torch_version");
    }
  }

  template <size_t N>
  std::string nameOf(const std::array<Pt2Code, N>& codes, const Json& value, const char* what) {
    const int64_t code = fields_.asInteger(value, what);
    for (const Pt2Code& known : codes) {
      if (known.code == code) return known.name;
    }
    unsupported(std::string(what) + " " + std::to_string(code) + " has no counterpart here");
    return codes[0].name;
  }

  void readTensors(const Json& graph) {
    for (const auto& [name, meta] : fields_.object(graph, "tensor_values").items()) {
      fields_.setPlace("tensor '" + name + "'");
      tensorOf_.try_emplace(name, static_cast<int32_t>(program_.tensors.size()));
      program_.tensors.push_back({.name = name,
                                  .type = readType(meta),
                                  .device = readDevice(fields_.get(meta, "device"))});
    }
  }

  ir::TensorType readType(const Json& meta) {
    ir::TensorType type;
    type.dtype = *ir::findDType(nameOf(kScalarTypes, fields_.get(meta, "dtype"), "element type"));
    readLayout(fields_.get(meta, "layout"));
    type.sizes = readSizes(fields_.array(meta, "sizes"), "sizes");
    type.strides = readSizes(fields_.array(meta, "strides"), "strides");
    type.offset = readSize(fields_.get(meta, "storage_offset"), "storage_offset");
    if (!type.findExtentBytes() || type.numElements() > kMaxElements) {
      fields_.fail("found sizes, strides and an offset that no tensor has");
      return {};
    }
    return type;
  }

  std::string readLayout(const Json& code) {
    std::string layout = nameOf(kLayouts, code, "layout");
    if (layout != "strided") unsupported("found layout " + layout + ", expected strided");
    return layout;
  }

  llvm::SmallVector<int64_t, 4> readSizes(const Json& list, const char* what) {
    llvm::SmallVector<int64_t, 4> sizes;
    if (list.size() > kMaxRank) {
      fields_.fail("found " + std::to_string(list.size()) + " " + what + ", expected at most " +
                   std::to_string(kMaxRank));
      return sizes;
    }
    for (const Json& size : list) sizes.push_back(readSize(size, what));
    return sizes;
  }

  int64_t readSize(const Json& size, const char* what) {
    if (const Json* symbol = fields_.find(size, "as_expr")) {
      refuseSymbol(*symbol);
      return 0;
    }
    const int64_t number = fields_.integer(size, "as_int");
    if (number >= 0) return number;
    fields_.fail(std::string("found a negative number in ") + what);
    return 0;
  }

  void refuseSymbol(const Json& symbol) {
    const Json* text = fields_.find(symbol, "expr_str");
    const std::string name = text != nullptr && text->is_string() ? text->get<std::string>() : "?";
    unsupported("found the symbolic size '" + name +
                "', expected a number; export the step with fixed shapes");
  }

  std::string readDevice(const Json& device) {
    const std::string type = fields_.text(device, "type");
    if (type == "cpu") return type;
    if (type != "cuda") unsupported("found a tensor on '" + type + "', expected cpu or cuda");
    const Json* index = fields_.find(device, "index");
    const int64_t number =
        index == nullptr || index->is_null() ? 0 : fields_.asInteger(*index, "index");
    if (number < 0) fields_.fail("found a negative device number");
    return type + ":" + std::to_string(number);
  }

  void readSymbolicIntegers(const Json& graph) {
    if (fields_.find(graph, "sym_int_values") == nullptr) return;
    for (const auto& [name, value] : fields_.object(graph, "sym_int_values").items()) {
      const Json* number = fields_.find(value, "as_int");
      fields_.setPlace("number '" + name + "'");
      if (number != nullptr) integerOf_[name] = fields_.asInteger(*number, "as_int");
    }
  }

  int32_t tensor(const Json& reference) {
    const std::string name = fields_.text(reference, "name");
    const auto found = tensorOf_.find(name);
    if (found != tensorOf_.end()) return found->second;
    fields_.fail("found no tensor '" + name + "' among tensor_values");
    return -1;
  }

  Pt2TensorList readTensorList(const Json& list) {
    Pt2TensorList tensors;
    for (const Json& element : list) tensors.push_back({tensor(element)});
    return tensors;
  }

  /// One of "as_tensor" and "as_none".
  Pt2TensorRef readOptionalTensor(const Json& element) {
    if (fields_.find(element, "as_none") != nullptr) return {};
    return {tensor(fields_.get(element, "as_tensor"))};
  }

  int64_t readSymbolicInteger(const Json& value) {
    if (fields_.find(value, "as_int") != nullptr) return fields_.integer(value, "as_int");
    const std::string name = fields_.text(value, "as_name");
    const auto found = integerOf_.find(name);
    if (found != integerOf_.end()) return found->second;
    unsupported("found the symbolic number '" + name +
                "', expected a number; export the step with fixed shapes");
    return 0;
  }

  template <typename Read>
  ir::NumberList readNumbers(const Json& list, Read read) {
    ir::NumberList numbers;
    for (const Json& element : list) numbers.emplace_back(read(element));
    return numbers;
  }

  Pt2Value readValue(const Json& value) {
    Pt2Value result = ir::NoneArg{};
    fields_.visitUnion(value, "arg", [&](const std::string& kind, const Json& content) {
      result = readValueOf(kind, content);
    });
    return result;
  }

  Pt2Value readValueOf(const std::string& kind, const Json& content) {
    if (kind == "as_tensor") return Pt2TensorRef{tensor(content)};
    if (kind == "as_int") return fields_.asInteger(content, "as_int");
    if (kind == "as_float") return fields_.asDouble(content, "as_float");
    if (kind == "as_bool") return fields_.asBool(content, "as_bool");
    if (kind == "as_none") return ir::NoneArg{};
    if (kind == "as_string") return fields_.asText(content, "as_string");
    if (kind == "as_sym_int") return readSymbolicInteger(content);
    if (kind == "as_scalar_type") {
      return ir::EnumArg{"dtype", nameOf(kScalarTypes, content, "element type")};
    }
    if (kind == "as_memory_format") {
      return ir::EnumArg{"memory_format", nameOf(kMemoryFormats, content, "memory format")};
    }
    if (kind == "as_layout") return ir::EnumArg{"layout", readLayout(content)};
    if (kind == "as_device") return ir::EnumArg{"device", readDevice(content)};
    if (kind == "as_complex") {
      return ir::ComplexArg{fields_.asDouble(fields_.get(content, "real"), "real"),
                            fields_.asDouble(fields_.get(content, "imag"), "imag")};
    }
    if (kind == "as_optional_tensor") return readOptionalTensor(content);
    return readListOf(kind, content);
  }

  Pt2Value readListOf(const std::string& kind, const Json& content) {
    if (!content.is_array()) return refuseKind(kind);
    if (kind == "as_tensors") return readTensorList(content);
    if (kind == "as_ints") {
      return readNumbers(content, [&](const Json& e) { return fields_.asInteger(e, "as_ints"); });
    }
    if (kind == "as_floats") {
      return readNumbers(content, [&](const Json& e) { return fields_.asDouble(e, "as_floats"); });
    }
    if (kind == "as_bools") {
      return readNumbers(content, [&](const Json& e) { return fields_.asBool(e, "as_bools"); });
    }
    if (kind == "as_sym_ints") {
      return readNumbers(content, [&](const Json& e) { return readSymbolicInteger(e); });
    }
    if (kind != "as_optional_tensors") return refuseKind(kind);
    Pt2TensorList tensors;
    for (const Json& element : content) tensors.push_back(readOptionalTensor(element));
    return tensors;
  }

  Pt2Value refuseKind(const std::string& kind) {
    unsupported("found an argument of kind '" + kind + "', which cannot be part of a graph");
    return ir::NoneArg{};
  }

  /// An op may return whole numbers (lengths); nothing else than those and tensors.
  Pt2Value readResult(const Json& value) {
    Pt2Value result = ir::NoneArg{};
    fields_.visitUnion(value, "outputs", [&](const std::string& kind, const Json& content) {
      if (kind == "as_sym_int" || kind == "as_int") {
        result = Pt2IntegerResult{};
      } else if (kind == "as_tensor" || kind == "as_tensors" || kind == "as_none" ||
                 kind == "as_optional_tensors" || kind == "as_optional_tensor") {
        result = readValueOf(kind, content);
      } else {
        result = refuseKind(kind);
      }
    });
    return result;
  }

  void readNodes(const Json& nodes) {
    program_.nodes.reserve(nodes.size());
    for (const Json& source : nodes) {
      if (fields_.failed()) return;
      const std::string position = "node " + std::to_string(program_.nodes.size());
      fields_.setPlace(position);
      Pt2Node node;
      node.target = fields_.text(source, "target");
      const Json* name = fields_.find(source, "name");
      if (name != nullptr && name->is_string()) node.name = name->get<std::string>();
      fields_.setPlace(position + " '" + node.name + "' (" + node.target + ")");
      for (const Json& input : fields_.array(source, "inputs")) {
        node.inputs.push_back(
            {.name = fields_.text(input, "name"), .value = readValue(fields_.get(input, "arg"))});
      }
      for (const Json& output : fields_.array(source, "outputs")) {
        node.outputs.push_back(readResult(output));
      }
      node.modulePath = readModulePath(source);
      program_.nodes.push_back(std::move(node));
    }
    fields_.setPlace("the graph");
  }

  /// "key,path,type;key,path,type": the innermost module is the last.
  std::string readModulePath(const Json& node) const {
    const Json* metadata = fields_.find(node, "metadata");
    const Json* stack = metadata == nullptr ? nullptr : fields_.find(*metadata, "nn_module_stack");
    if (stack == nullptr || !stack->is_string()) return "";
    const llvm::StringRef text = *stack->get_ptr<const std::string*>();
    const llvm::StringRef innermost = text.contains(';') ? text.rsplit(';').second : text;
    return innermost.split(',').second.split(',').first.str();
  }

  void readInputs(const Json& specs, const Json& inputs) {
    fields_.setPlace("the signature");
    if (specs.size() != inputs.size()) {
      fields_.fail("found " + std::to_string(specs.size()) + " input_specs, expected " +
                   std::to_string(inputs.size()));
    }
    for (const Json& spec : specs) {
      fields_.setPlace("input " + std::to_string(program_.inputs.size()));
      fields_.visitUnion(spec, "input_specs", [&](const std::string& kind, const Json& content) {
        program_.inputs.push_back(readInput(kind, content));
      });
    }
  }

  Pt2Input readInput(const std::string& kind, const Json& spec) {
    if (kind == "constant_input") return {};
    if (kind == "user_input") return readUserInput(spec);
    Pt2Input input;
    const char* nameField = "";
    if (kind == "parameter") {
      input.kind = Pt2Input::Kind::kParameter;
      nameField = "parameter_name";
    } else if (kind == "buffer") {
      input.kind = Pt2Input::Kind::kBuffer;
      nameField = "buffer_name";
    } else if (kind == "tensor_constant") {
      input.kind = Pt2Input::Kind::kConstant;
      nameField = "tensor_constant_name";
    } else {
      unsupported("found an input of kind '" + kind + "', expected a tensor");
      return input;
    }
    input.tensor = tensor(fields_.get(spec, "arg"));
    input.name = fields_.text(spec, nameField);
    return input;
  }

  Pt2Input readUserInput(const Json& spec) {
    Pt2Input input;
    const Pt2Value value = readValue(fields_.get(spec, "arg"));
    if (const auto* reference = std::get_if<Pt2TensorRef>(&value)) input.tensor = reference->tensor;
    return input;
  }

  void readOutputs(const Json& specs, const Json& outputs) {
    fields_.setPlace("the signature");
    if (specs.size() != outputs.size()) {
      fields_.fail("found " + std::to_string(specs.size()) + " output_specs, expected " +
                   std::to_string(outputs.size()));
    }
    for (size_t i = 0; i < specs.size(); ++i) {
      fields_.setPlace("output " + std::to_string(i));
      fields_.visitUnion(specs[i], "output_specs", [&](const std::string& kind, const Json& spec) {
        readOutput(kind, spec);
      });
    }
  }

  void readOutput(const std::string& kind, const Json& spec) {
    const Json& argument = fields_.get(spec, "arg");
    if (kind == "user_output") {
      const Pt2Value value = readValue(argument);
      if (const auto* reference = std::get_if<Pt2TensorRef>(&value)) {
        program_.outputs.push_back({.tensor = reference->tensor});
      } else if (!std::holds_alternative<ir::NoneArg>(value)) {
        unsupported("found an output that is no tensor");
      }
    } else if (kind == "loss_output") {
      program_.outputs.push_back({.kind = Pt2Output::Kind::kLoss, .tensor = tensor(argument)});
    } else if (kind == "gradient_to_parameter" || kind == "gradient_to_user_input") {
      program_.outputs.push_back({.kind = Pt2Output::Kind::kGradient, .tensor = tensor(argument)});
    } else {
      unsupported("found an output of kind '" + kind +
                  "', expected a step that writes in place; export it without functionalising");
    }
  }

  JsonFields<Json> fields_;
  llvm::StringMap<int32_t> tensorOf_;
  llvm::StringMap<int64_t> integerOf_;
  Pt2Program program_;
};

}  // namespace

ir::Expected<Pt2Program> readPt2Program(llvm::StringRef text, const std::string& file) {
  ir::Expected<Json> document = parseJson<Json>(text, file);
  if (!document) return document.takeError();
  return ProgramReader(file).read(*document);
}

}  // namespace stowage::runtime
