/* SPDX-License-Identifier: BSD-3-Clause */
#include "events_csv.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <zlib.h>

namespace zc::groups {

uint32_t kind_number(const std::string &name)
{
    static const std::array<const char *, 9> kNames = {"p2p",       "bcast",    "reduce",
                                                       "allreduce", "alltoall", "alltoallv",
                                                       "allgather", "gather",   "scatter"};
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    return found == kNames.end() ? 31 : static_cast<uint32_t>(found - kNames.begin());
}

event_stream read_events_csv(const std::string &path)
{
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
    std::array<char, 256> line;
    if (!file || !gzgets(file.get(), line.data(), static_cast<int>(line.size())))
        throw std::runtime_error(path + ": cannot be read");
    event_stream out;
    size_t number = 1;
    while (gzgets(file.get(), line.data(), static_cast<int>(line.size()))) {
        number++;
        uint64_t microseconds;
        zcp_event_t e{};
        std::array<char, 32> kind;
        if (std::sscanf(line.data(), "%" SCNu64 ",%" SCNu32 ",%" SCNu32 ",%" SCNu64 ",%31s",
                        &microseconds, &e.src, &e.dst, &e.bytes, kind.data()) != 5 ||
            std::max(e.src, e.dst) >= ZCP_GROUPS_MAX_RANKS)
            throw std::runtime_error(path + ":" + std::to_string(number) + ": malformed");
        e.time_ns = 1000 * microseconds;
        e.kind = kind_number(kind.data());
        out.ranks = std::max({out.ranks, e.src + 1, e.dst + 1});
        out.events.push_back(e);
    }
    return out;
}

} // namespace zc::groups
