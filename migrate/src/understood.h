/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "error.h"

namespace zc::migrate {

/** What @read makes of @text, a JSON object; throws error(EBADMSG), naming @what, if it cannot. */
template <typename Read>
auto understood(const std::string &what, const std::string &text, Read read)
{
    try {
        return read(nlohmann::json::parse(text));
    } catch (const nlohmann::json::exception &problem) {
        throw error(EBADMSG, what + " cannot be understood: " + problem.what());
    }
}

} // namespace zc::migrate
