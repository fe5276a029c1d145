// SPDX-License-Identifier: Apache-2.0
//
// Changes archives (.pt2: zip files) and safetensors files below their own envelope: what a zip's
// entries say, with checksums made right again, what the zip says about its entries, and what the
// header of a safetensors file says about its tensors.
#ifndef STOWAGE_TESTS_FUZZ_ARCHIVE_MUTATOR_H_
#define STOWAGE_TESTS_FUZZ_ARCHIVE_MUTATOR_H_

#include <string>

#include "tests/support/random.h"

namespace stowage::tests {

/// `archive`: all entries stored as they are. What was done is appended to `kind`.
std::string mutateArchive(const std::string& archive, Random& random, std::string& kind);
std::string mutateSafetensors(const std::string& file, Random& random, std::string& kind);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_FUZZ_ARCHIVE_MUTATOR_H_
