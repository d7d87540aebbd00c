/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "analysis.h"

namespace zc::instrument {

/** For people. */
std::string report_text(const analysis &found);
/** For programs: docs/man/zcm-instrument.1.md has its fields. */
std::string report_json(const analysis &found);

} // namespace zc::instrument
