// SPDX-License-Identifier: Apache-2.0
//
// What this process is: versions, and whether it has a GPU; and how it captures for one that it has
// not.
#ifndef STOWAGE_RUNTIME_PYTHON_BINDING_ENVIRONMENT_H_
#define STOWAGE_RUNTIME_PYTHON_BINDING_ENVIRONMENT_H_

#include <cstdint>
#include <string>

namespace stowage::python {

/// JSON: versions of Stowage and of the libtorch that it was built for.
std::string environment();

/// Processes that a launcher started with this one; 1 without one. Throws for variables of a
/// launcher that are wrong.
int64_t launchedRanks();

/// From now on this process, which has no GPU, captures for one of the profile. Throws for names
/// that no profile has, and where there is a GPU.
void planWithoutGpu(const std::string& profile);

}  // namespace stowage::python

#endif  // STOWAGE_RUNTIME_PYTHON_BINDING_ENVIRONMENT_H_
