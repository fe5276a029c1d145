// SPDX-License-Identifier: Apache-2.0
#ifndef STOWAGE_TESTS_SUPPORT_WRITE_WATCH_H_
#define STOWAGE_TESTS_SUPPORT_WRITE_WATCH_H_

#include <string>
#include <vector>

namespace stowage::tests {

/// From now on, each change of a file outside of `folders` adds its path as a line to `report`.
void watchWrites(const std::vector<std::string>& folders, const std::string& report);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_WRITE_WATCH_H_
