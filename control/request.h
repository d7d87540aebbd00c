/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_REQUEST_H_INCLUDED
#define ZC_CONTROL_REQUEST_H_INCLUDED

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zc::control {

/** What an operator asks of a job. On the wire one line of JSON. */
struct request {
    enum class what { status, move, checkpoint };
    struct target {
        int rank;
        std::string host;
    };

    what kind = what::status;
    std::vector<target> moves;
    std::optional<std::uint64_t> epoch; /* moves: only if the job is in this one */
    bool via_disk = false;              /* moves: by way of a file instead of memory */

    std::string to_json() const;
    /** Throws error(EINVAL). */
    static request from_json(const std::string &text);
    /** Throws error(EINVAL) naming the rank that does not exist or comes twice. */
    void check(int ranks) const;
};

/** {"ok":false,"code":CODE,"error":TEXT} */
std::string refusal(int code, const std::string &text);

} // namespace zc::control

#endif
