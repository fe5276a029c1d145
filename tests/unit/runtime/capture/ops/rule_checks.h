// SPDX-License-Identifier: Apache-2.0
//
// The checks of shape rules against real ops, by subject. Each is a test of its own; all together
// are what the test of the table of rules runs (rule_coverage_test.cpp).
#ifndef STOWAGE_TESTS_UNIT_RUNTIME_CAPTURE_OPS_RULE_CHECKS_H_
#define STOWAGE_TESTS_UNIT_RUNTIME_CAPTURE_OPS_RULE_CHECKS_H_

namespace stowage::tests {

void checkConvolutions();
void checkNormalisations();
void checkAttention();
void checkLosses();
void checkActivations();
void checkPointwise();
void checkReductions();
void checkIndexing();
void checkPooling();
void checkMatrices();

void checkPadding();
void checkImagePooling();
void checkSampling();
void checkFoldingAndShuffling();
void checkChoices();
void checkScans();
void checkRandomOps();
void checkEmbeddingBags();
void checkMoreLosses();
void checkBatchNormOverloads();
void checkSmallMatrices();
void checkPlainConvolutions();
void checkUpdates();

void checkTransforms();
void checkComplexNumbers();
void checkSingleRows();
void checkLinearAlgebra();
void checkDistances();
void checkWeightNorms();

void checkOpsOfCudaAlone();

/// All that really call ops on the CPU.
inline constexpr void (*kRuleChecks[])() = {checkConvolutions,   checkNormalisations,
                                            checkAttention,      checkLosses,
                                            checkActivations,    checkPointwise,
                                            checkReductions,     checkIndexing,
                                            checkPooling,        checkMatrices,
                                            checkPadding,        checkImagePooling,
                                            checkSampling,       checkFoldingAndShuffling,
                                            checkChoices,        checkScans,
                                            checkRandomOps,      checkEmbeddingBags,
                                            checkMoreLosses,     checkBatchNormOverloads,
                                            checkSmallMatrices,  checkPlainConvolutions,
                                            checkUpdates,        checkTransforms,
                                            checkComplexNumbers, checkLinearAlgebra,
                                            checkDistances,      checkWeightNorms};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_UNIT_RUNTIME_CAPTURE_OPS_RULE_CHECKS_H_
