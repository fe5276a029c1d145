// SPDX-License-Identifier: Apache-2.0
//
// A training step in the shape of a Llama (norms, grouped projections, rotary embedding, attention,
// gated MLP; backward; an AdamW update per parameter) as a graph, made without capturing anything:
// what planning speed is measured on at sizes that no test machine could capture in time.
#ifndef STOWAGE_TOOLS_BENCH_LLAMA_STEP_H_
#define STOWAGE_TOOLS_BENCH_LLAMA_STEP_H_

#include "ir/graph/graph.h"

namespace stowage::tools {

struct LlamaShape {
  int layers = 32;
  int64_t hidden = 4096;
  int64_t wide = 14336;  // of the MLP
  int64_t heads = 32;
  int64_t keyHeads = 8;
  int64_t vocabulary = 128256;
  int64_t tokens = 4096;
};

ir::Graph makeLlamaStep(const LlamaShape& shape);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_BENCH_LLAMA_STEP_H_
