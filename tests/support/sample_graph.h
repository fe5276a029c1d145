// SPDX-License-Identifier: Apache-2.0
//
// One small training step with a bit of everything that a schedule must cope with: a two-layer
// perceptron with two dropouts, relu in place, batch norm with running statistics, a weight used by
// two layers, momentum, a frozen table, a persistent gradient that is overwritten whole, a step
// counter on the host, a loss that is delivered. As text, so that the tests that use it can be read
// beside it.
#ifndef STOWAGE_TESTS_SUPPORT_SAMPLE_GRAPH_H_
#define STOWAGE_TESTS_SUPPORT_SAMPLE_GRAPH_H_

namespace stowage::tests {

inline constexpr const char* kSampleGraph = R"ir(
graph @sample version=1 device="cpu" target="cpu" {
  scalar #lr : f64 = 0.5
  input %x "tokens" : f32[16,16]
  frozen %table "table" : f32[16,16]
  parameter %w "fc.weight" : f32[16,16]
  state %m "m(fc.weight)" : f32[16,16]
  gradient %g "grad(fc.weight)" persistent : f32[16,16]
  buffer %rm "running_mean" : f32[16]
  buffer %rv "running_var" : f32[16]
  step_counter %t "step" host : f32[]
forward "fc":
  %e : f32[16,16] = aten.add.Tensor(%x, %table, 1)
  %h : f32[16,16] = aten.mm.default(%e, %w)
  %h = aten.relu_.default(inout %h)
  %d : f32[16,16], %k : bool[16,16] = aten.native_dropout.default(%h, 0.5, true)
  %y : f32[16,16] = aten.mm.default(%d, %w)
  %p : f32[16,16], %mean : f32[16], %inv : f32[16] = aten.native_batch_norm.default(%y, none, none, inout %rm, inout %rv, true, 0.1, 1.0e-5)
  %z : f32[16,16] = aten.gelu.default(%p)
  %q : f32[16,16], %k2 : bool[16,16] = aten.native_dropout.default(%z, 0.25, true)
  %l "loss" output : f32[] = aten.sum.default(%q, none)
backward "fc":
  %dq : f32[16,16] = aten.mul.Tensor(%q, %k2)
  %dz : f32[16,16] = aten.mul.Tensor(%dq, %p)
  %dy : f32[16,16] = aten.mul.Tensor(%dz, %k)
  %dh : f32[16,16] = aten.mm.default(%dy, %w)
  %g = aten.copy_.default(out %g, %dh, false)
  %g2 : f32[16,16] = aten.mm.default(%d, %dy)
  aten.add_.Tensor(inout %g, %g2, 1)
  %de : f32[16,16] = aten.mul.Tensor(%dh, %h)
  %n : f32[] = aten.sum.default(%de, none)
optimizer "fc":
  aten.add_.Tensor(inout %t, %t, 1)
  aten.add_.Tensor(inout %m, %g, 1)
  aten.add_.Tensor(inout %w, %m, #lr)
}
)ir";

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_SAMPLE_GRAPH_H_
