// SPDX-License-Identifier: Apache-2.0
//
// The enumerations of the archives' schema, version 8: their codes there, which are not libtorch's,
// and our names. Element types that are missing have no counterpart here.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_CODES_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_CODES_H_

#include <array>
#include <cstdint>

namespace stowage::runtime {

struct Pt2Code {
  int64_t code;
  const char* name;
};
inline constexpr std::array<Pt2Code, 14> kScalarTypes = {{{1, "u8"},
                                                          {2, "i8"},
                                                          {3, "i16"},
                                                          {4, "i32"},
                                                          {5, "i64"},
                                                          {6, "f16"},
                                                          {7, "f32"},
                                                          {8, "f64"},
                                                          {10, "c64"},
                                                          {11, "c128"},
                                                          {12, "bool"},
                                                          {13, "bf16"},
                                                          {29, "f8e4m3"},
                                                          {30, "f8e5m2"}}};
inline constexpr std::array<Pt2Code, 4> kMemoryFormats = {
    {{1, "contiguous"}, {2, "channels_last"}, {3, "channels_last_3d"}, {4, "preserve"}}};
inline constexpr std::array<Pt2Code, 7> kLayouts = {{{1, "sparse_coo"},
                                                     {2, "sparse_csr"},
                                                     {3, "sparse_csc"},
                                                     {4, "sparse_bsr"},
                                                     {5, "sparse_bsc"},
                                                     {6, "mkldnn"},
                                                     {7, "strided"}}};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_CODES_H_
