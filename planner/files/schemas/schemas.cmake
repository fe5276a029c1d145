# SPDX-License-Identifier: Apache-2.0
#
# Compiles the published schemas into the library and installs them.
# Sets STOWAGE_SCHEMA_TEXTS to the generated source.

set(_plan "${CMAKE_CURRENT_LIST_DIR}/plan-1.0.schema.json")
set(_costs "${CMAKE_CURRENT_LIST_DIR}/costs-1.0.schema.json")
file(READ "${_plan}" STOWAGE_PLAN_SCHEMA)
file(READ "${_costs}" STOWAGE_COSTS_SCHEMA)
set(STOWAGE_SCHEMA_TEXTS "${CMAKE_CURRENT_BINARY_DIR}/schema_texts.cpp")
configure_file("${CMAKE_CURRENT_LIST_DIR}/schema_texts.cpp.in" "${STOWAGE_SCHEMA_TEXTS}" @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_plan}" "${_costs}")
install(FILES "${_plan}" "${_costs}" DESTINATION "${CMAKE_INSTALL_DATADIR}/stowage/schemas")
