// SPDX-License-Identifier: Apache-2.0
//
// Archives of whole models, which are no part of this repository, and first values for a step whose
// archive has none.
#ifndef STOWAGE_TESTS_SUPPORT_PT2_ARCHIVES_H_
#define STOWAGE_TESTS_SUPPORT_PT2_ARCHIVES_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/capture/pt2/pt2_graph.h"
#include "runtime/capture/pt2/pt2_import.h"

namespace stowage::tests {

/// The archives below `folder` of the folder that STOWAGE_DATA names, by name; none without it.
std::vector<std::string> pt2ArchivesIn(const std::string& folder);

/// All calls of an archive for the CPU, as its program has them; without what is known of ops.
runtime::Pt2Graph readPt2Draft(const std::string& path);

/// Small random weights, zero state, tokens below 100, a rate of 1e-3. Draws from the default
/// generator.
at::Tensor makePt2Input(const runtime::ImportedStep& step, ir::ValueId value);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_PT2_ARCHIVES_H_
