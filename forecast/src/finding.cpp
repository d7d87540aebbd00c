/* SPDX-License-Identifier: BSD-3-Clause */
#include "finding.h"

#include <algorithm>

namespace zc::forecast {

void finding::add(const message &m)
{
    messages++;
    bytes += m.bytes;
    if (const std::int64_t waited = m.sender_wait_ns()) {
        late_senders++;
        late_sender_ns += waited;
    }
    if (m.unexpected()) {
        unexpected++;
        unexpected_bytes += m.bytes;
    }
    const std::int64_t held = m.held_ns();
    if (held > 0) {
        late_receivers++;
        late_receiver_bytes += m.bytes;
        held_ns += held;
    }
    if (held > 0 || (m.unexpected() && !m.surely_eager()))
        transfer_wait_ns += m.transfer_wait_ns();
    if (!m.surely_eager())
        lost_overlap_ns += m.lost_overlap_ns();
}

std::vector<std::uint64_t> unexpected_memory(const zct::run &run,
                                             const std::vector<message> &messages)
{
    struct change {
        std::int64_t time;
        std::int64_t bytes;
    };
    std::vector<std::vector<change>> changes(run.ranks.size());
    for (const message &m : messages) {
        if (!m.unexpected())
            continue;
        const auto bytes = static_cast<std::int64_t>(m.bytes);
        changes[m.receive.rank].push_back({m.send.posted_ns, bytes});
        changes[m.receive.rank].push_back({m.receive.posted_ns, -bytes});
    }
    std::vector<std::uint64_t> most(run.ranks.size());
    for (std::size_t i = 0; i < changes.size(); i++) {
        std::stable_sort(changes[i].begin(), changes[i].end(),
                         [](const change &a, const change &b) { return a.time < b.time; });
        std::int64_t now = 0;
        for (const change &c : changes[i]) {
            now += c.bytes;
            most[i] = std::max(most[i], static_cast<std::uint64_t>(std::max<std::int64_t>(now, 0)));
        }
    }
    return most;
}

} // namespace zc::forecast
