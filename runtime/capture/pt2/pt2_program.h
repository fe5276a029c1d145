// SPDX-License-Identifier: Apache-2.0
//
// What the JSON of a torch.export archive says, as plain data: tensors by number, names of ops and
// arguments as they stand there, enumerations by name. Nothing is looked up in libtorch yet, and
// nothing is known of aliases, roles or phases.
// Invariants: every tensor number is in range, every size is a number, numbers are what a 64-bit
// integer or a double holds.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_PROGRAM_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_PROGRAM_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/graph/type.h"

namespace stowage::runtime {

struct Pt2Tensor {
  std::string name;
  ir::TensorType type;
  std::string device;  // "cpu", "cuda:0"
};

struct Pt2TensorRef {
  int32_t tensor = -1;  // -1: none
};
using Pt2TensorList = std::vector<Pt2TensorRef>;
/// A whole number that an op returns (a sequence length). Later nodes have its value.
struct Pt2IntegerResult {};

using Pt2Value =
    std::variant<ir::NoneArg, Pt2TensorRef, Pt2TensorList, bool, int64_t, double, std::string,
                 ir::ComplexArg, ir::EnumArg, ir::NumberList, Pt2IntegerResult>;

struct Pt2Argument {
  std::string name;  // in the op's schema
  Pt2Value value;
};

struct Pt2Node {
  std::string name;    // the archive's own, for messages and for names of values
  std::string target;  // "torch.ops.aten.mm.default"
  std::vector<Pt2Argument> inputs;
  std::vector<Pt2Value> outputs;  // one per return of the op
  std::string modulePath;         // "" when the archive does not say
};

struct Pt2Input {
  enum class Kind : uint8_t { kUser, kParameter, kBuffer, kConstant };
  Kind kind = Kind::kUser;
  int32_t tensor = -1;  // -1: no tensor; nothing refers to it
  std::string name;     // of the parameter, buffer or constant
};

struct Pt2Output {
  enum class Kind : uint8_t { kUser, kLoss, kGradient };
  Kind kind = Kind::kUser;
  int32_t tensor = -1;
};

struct Pt2Program {
  std::string torchVersion;
  std::vector<Pt2Tensor> tensors;
  std::vector<Pt2Input> inputs;
  std::vector<Pt2Node> nodes;
  std::vector<Pt2Output> outputs;
};

/// What the file beside an archive says about its inputs.
struct Pt2SideFile {
  struct Group {
    std::string name;  // "train", "exp_avg", ...
    int64_t count = 0;
    std::vector<std::string> names;  // one per input, or none
  };
  std::string name;           // of the step
  std::vector<Group> groups;  // in the order of the inputs
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_PROGRAM_H_
