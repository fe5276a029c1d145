// SPDX-License-Identifier: Apache-2.0
//
// Small schedules by hand, each right as it stands, for the tests of the verifier. Everything is 64
// bytes large and aligned to 64. `graph=""`, `target=""` and `ops=0` are filled in when a case is
// read (verify_test.cpp).
#ifndef STOWAGE_TESTS_UNIT_IR_VERIFY_VERIFY_CASES_H_
#define STOWAGE_TESTS_UNIT_IR_VERIFY_VERIFY_CASES_H_

namespace stowage::tests {

/// An activation spends a gap on the host, a result lands on its operand, bytes are used again in
/// the step and across the step boundary.
inline constexpr const char* kOffload = R"ir(
graph @offload version=1 device="cpu" target="cpu" {
  scalar #lr : f64 = 0.5
  input %x : f32[16]
  parameter %w : f32[16]
forward "":
  %a : f32[16] = aten.add.Tensor(%x, %w, 1)
  %b : f32[16] = aten.mul.Tensor(%a, %a)
  %c : f32[16] = aten.mul.Tensor(%b, %b)
  %l output : f32[] = aten.sum.default(%c, none)
backward "":
  %d : f32[16] = aten.mul.Tensor(%a, %c)
optimizer "":
  aten.add_.Tensor(inout %w, %d, #lr)
}
schedule @offload level=synced graph="" target="" ops=0 mode=none flowing {
  arena device 448
  arena host 192
  reserved "workspace" stream=0 offset=0 bytes=64
  claim peak_bytes=448 host_peak_bytes=192 step_ns=60 bound_ns=60 compute_ns=60 out_bytes=128 in_bytes=128
  decide %a [1,4) host "hand"
  residency r0 %x host 0
  residency r1 %x device 64
  residency r2 %w device 128
  residency r3 %a device 192
  residency r4 %a host 64
  residency r5 %b device 256
  residency r6 %c device 256
  residency r7 %l device 192
  residency r8 %l host 128
  residency r9 %a device 64
  residency r10 %d device 320
  boundary %x at [r0]
  boundary %w at [r2] dirty
  c0 = copy r0 -> r1 on h2d prev [c8]
  c1 = run n0 on compute in [r1, r2] out [r3] wait [c0] prev [c6]
  c2 = copy r3 -> r4 on d2h wait [c1]
  c3 = run n1 on compute in [r3] out [r5]
  c4 = run n2 on compute in [r5] out [r6] takes r5
  c5 = run n3 on compute in [r6] out [r7] wait [c2]
  c6 = copy r7 -> r8 on d2h wait [c5]
  c7 = copy r4 -> r9 on h2d wait [c2]
  c8 = run n4 on compute in [r9, r6] out [r10] temp 384+64 wait [c7]
  c9 = run n5 on compute in [r2, r10] out [r2]
}
)ir";

/// An activation is dropped and recomputed, with the same random numbers.
inline constexpr const char* kRecompute = R"ir(
graph @recompute version=1 device="cpu" target="cpu" {
  parameter %w : f32[16]
forward "":
  %a : f32[16], %k : bool[16] = aten.native_dropout.default(%w, 0.5, true)
  %e : f32[16], %f : bool[16] = aten.native_dropout.default(%w, 0.5, true)
  %b : f32[16] = aten.mul.Tensor(%a, %e)
  %c : f32[16] = aten.mul.Tensor(%b, %e)
  %l output : f32[] = aten.sum.default(%c, none)
backward "":
  %d : f32[16] = aten.mul.Tensor(%a, %b)
optimizer "":
  aten.add_.Tensor(inout %w, %d, 1)
}
schedule @recompute level=synced graph="" target="" ops=0 mode=none flowing {
  arena device 448
  arena host 64
  reserved "workspace" stream=0 offset=0 bytes=64
  decide %a [2,5) recompute "hand"
  decide %b [3,5) recompute "hand"
  residency r0 %w device 64
  residency r1 %a device 128
  residency r2 %k device 192
  residency r3 %e device 256
  residency r4 %f device 320
  residency r5 %b device 192
  residency r6 %c device 128
  residency r7 %l device 320
  residency r8 %l host 0
  residency r9 %a device 128
  residency r10 %k device 384
  residency r11 %b device 192
  residency r12 %d device 384
  boundary %w at [r0] dirty
  c0 = run n0 on compute in [r0] out [r1, r2] rng 0
  c1 = run n1 on compute in [r0] out [r3, r4] rng 1 prev [c5]
  c2 = run n2 on compute in [r1, r3] out [r5]
  c3 = run n3 on compute in [r5, r3] out [r6]
  c4 = run n4 on compute in [r6] out [r7]
  c5 = copy r7 -> r8 on d2h wait [c4]
  c6 = run n0 recompute 1 on compute in [r0] out [r9, r10] rng 0
  c7 = run n2 recompute 1 on compute in [r9, r3] out [r11]
  c8 = run n5 on compute in [r9, r11] out [r12]
  c9 = run n6 on compute in [r0, r12] out [r0]
}
)ir";

/// A storage is changed in place after its first version was offloaded, and offloaded again; its
/// last version is read back. A frozen storage lives on the device and on disk, and is copied to
/// the host from both.
inline constexpr const char* kInPlace = R"ir(
graph @in_place version=1 device="cpu" target="cpu" {
  frozen %t : f32[16]
forward "":
  %a : f32[16] = aten.mul.Tensor(%t, %t)
  %a = aten.relu_.default(inout %a)
  %b : f32[16] = aten.mul.Tensor(%t, %t)
  %c : f32[16] = aten.mul.Tensor(%a, %b)
  %b = aten.relu_.default(inout %b)
}
schedule @in_place level=synced graph="" target="" ops=0 mode=none flowing {
  arena device 448
  arena host 192
  arena disk 4096
  reserved "workspace" stream=0 offset=0 bytes=64
  decide %a [1,3) host "hand"
  residency r0 %t device 64
  residency r1 %t disk 0
  residency r2 %a device 128
  residency r3 %a host 0
  residency r4 %a host 64
  residency r5 %b device 192
  residency r6 %a device 256
  residency r7 %c device 320
  residency r8 %t host 128
  residency r9 %b device 384
  boundary %t at [r0, r1]
  c0 = run n0 on compute in [r0] out [r2]
  c1 = copy r2 -> r3 on d2h wait [c0]
  c2 = run n1 on compute in [r2] out [r2] wait [c1]
  c3 = copy r2 -> r4 on d2h wait [c2]
  c4 = run n2 on compute in [r0] out [r5] wait [c3]
  c5 = copy r4 -> r6 on h2d wait [c3]
  c6 = run n3 on compute in [r6, r5] out [r7] wait [c5]
  c7 = run n4 on compute in [r5] out [r5]
  c8 = copy r0 -> r8 on d2h prev [c9]
  c9 = copy r1 -> r8 on disk_read wait [c8]
}
)ir";

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_UNIT_IR_VERIFY_VERIFY_CASES_H_
