// SPDX-License-Identifier: Apache-2.0
//
// Names for people: the module path of each node, and the names of what the step makes.
// - A node that uses a parameter or buffer belongs to its module; one between two such to what
// their
//   paths share, which holds for the backward pass as well, since that visits modules in the
//   opposite order. Used where the archive keeps no module paths of its own.
// - Gradients are what an update reads beside a parameter, element by element: "grad(wte.weight)".
// - Everything else the step makes is named by module and op: "h.3.mlp/gelu.0".
// Nothing is decided by names.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_NAMES_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_NAMES_H_

#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "runtime/capture/pt2/pt2_roles.h"

namespace stowage::runtime {

/// One path per node. `moduleOf`: by storage, "" where it is no parameter or buffer.
std::vector<std::string> findScopes(const ir::Graph& graph, const std::vector<ir::Phase>& phases,
                                    const std::vector<std::string>& moduleOf);

/// By storage: the parameter whose gradient it is; invalid for all others. `ownerOf`: by storage,
/// the parameter whose state it is, or itself for a parameter.
std::vector<ir::StorageId> findGradients(const ir::Graph& graph,
                                         const std::vector<ir::Phase>& phases,
                                         const std::vector<ir::StorageId>& ownerOf);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_NAMES_H_
