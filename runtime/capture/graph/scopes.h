// SPDX-License-Identifier: Apache-2.0
//
// Which module a recorded call belongs to. C++ modules have no hooks, so paths come from the
// parameters and buffers that calls use:
// - a call that uses one (or a plain copy of one, as autocast makes) belongs to its module;
// - a forward call between two such belongs to what their paths share, or, where the two are in
//   different elements of one list (h.3 and h.4), to the first's element;
// - a backward call belongs where its forward op does, told by autograd's sequence number;
// - an optimizer call belongs to the parameters whose parameter, gradient or state it uses.
// Paths are for people and for pins; nothing is decided by them.
#ifndef STOWAGE_RUNTIME_CAPTURE_GRAPH_SCOPES_H_
#define STOWAGE_RUNTIME_CAPTURE_GRAPH_SCOPES_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/capture/trace/trace.h"

namespace stowage::runtime {

using PathOfStorage = std::unordered_map<StorageKey, std::string>;

/// One path per node of `step`; `paths` has the module path of each parameter, buffer, gradient and
/// state storage.
std::vector<std::string> assignScopes(const StepTrace& step, const PathOfStorage& paths);

/// What two module paths share: "h.3.mlp" for "h.3.mlp.c_fc" and "h.3.mlp.c_proj".
std::string sharedPath(const std::string& a, const std::string& b);
/// The path of a call between two others, see above.
std::string pathBetween(const std::string& before, const std::string& after);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_GRAPH_SCOPES_H_
