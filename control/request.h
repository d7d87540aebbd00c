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
    /* moves: by memory, in images of 1 MiB; by one image of all, in memory; by a file */
    enum class way { memory, image, disk } via = way::memory;

    std::string to_json() const;
    /** Throws error(EINVAL). */
    static request from_json(const std::string &text);
    /** Throws error(EINVAL) naming the rank that does not exist or comes twice. */
    void check(int ranks) const;
};

const char *name_of(request::way via);
/** Throws error(EINVAL). */
request::way way_of(const std::string &name);

/** {"ok":false,"code":CODE,"error":TEXT} */
std::string refusal(int code, const std::string &text);

} // namespace zc::control

#endif
