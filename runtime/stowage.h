// SPDX-License-Identifier: Apache-2.0
//
// All that a training loop on libtorch needs of Stowage: capture a step, plan it within a budget,
// run it; and stowage::AdamW. See runtime/session.h; sizes are written with `using namespace
// stowage::literals`: 24_GiB.
#ifndef STOWAGE_RUNTIME_STOWAGE_H_
#define STOWAGE_RUNTIME_STOWAGE_H_

#include "ir/base/units.h"
#include "runtime/capture/graph/without_memory.h"
#include "runtime/session.h"
#include "runtime/torch/adamw.h"

#endif  // STOWAGE_RUNTIME_STOWAGE_H_
