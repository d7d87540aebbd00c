/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <memory>
#include <string>

#include "departure.h"
#include "process.h"
#include "settings.h"

namespace zc::migrate {

/** Where a successor is to run. */
struct place {
    std::string name;
    bool is_new = false; /* no rank has been there */
};

/** A successor on @host, which has been greeted. Throws error. */
std::unique_ptr<departure> start_successor(const settings &settings, const command &command,
                                           const place &host, const greeting &greeting);

} // namespace zc::migrate
