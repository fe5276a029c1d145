// SPDX-License-Identifier: Apache-2.0
//
// What an archive's inputs are for, and what they are called. Three sources, the first that there
// is: the side file's groups; the signature (parameters, buffers, constants inside the archive,
// which a side file may leave out); the data. By the data, an input that no node writes is bound
// anew each step, which is right for every input, if not the fastest for all; an input that is
// written lives from step to step: a parameter when the loss needs it, a buffer when the forward
// pass writes it, else optimizer state. A learning rate that is a tensor is an input: whoever runs
// the step gives its value each time. Errors: kParse for a side file that does not fit the archive.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_ROLES_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_ROLES_H_

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "runtime/capture/pt2/pt2_graph.h"
#include "runtime/capture/pt2/pt2_program.h"

namespace stowage::runtime {

struct Pt2InputRole {
  ir::Role role = ir::Role::kInput;
  std::string name;
  bool learningRate = false;
  ir::StorageId owner;  // state, counters, masters: the parameter's storage, where known
};

struct Pt2RoleFacts {
  const Pt2Program& program;
  const Pt2Graph& draft;
  const std::vector<bool>& forward;  // by node: the loss needs it
};

/// By position in the program's inputs.
ir::Expected<std::vector<Pt2InputRole>> rolesFromSideFile(const Pt2RoleFacts& facts,
                                                          const Pt2SideFile& side,
                                                          const std::string& sideFileName);
std::vector<Pt2InputRole> rolesFromData(const Pt2RoleFacts& facts);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_ROLES_H_
