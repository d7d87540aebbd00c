/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <fmt/format.h>

namespace zc::agent::party {
namespace {

constexpr nanos kReservation = 30 * kSecond; /* room is kept for so long beyond move_timeout */

} // namespace

bool target::on(nanos now, node_id from, const msg::reserve &m, bool giving, effects &out)
{
    if (m.txn.decider != from)
        return false;
    load_digest load = here_.digest();
    msg::reserved answer{m.txn, false, load, ""};
    auto count = static_cast<std::uint32_t>(m.ranks.size());
    if (s_.act == mode::off)
        answer.reason = "takes no ranks";
    else if (load.draining)
        answer.reason = "is being emptied";
    else if (giving && !here_.draining())
        answer.reason = "is giving ranks away itself";
    else if (load.room < count)
        answer.reason = fmt::format("is full: room for {}, {} wanted", load.room, count);
    else
        answer.granted = true;
    if (answer.granted) {
        nanos until = now + kReservation + s_.move_timeout;
        here_.expect(m.txn, m.job, m.ranks, m.bytes, m.moves, until);
        reservations_[m.txn] = until;
    }
    bool granted = answer.granted;
    out.send.push_back({from, "", std::move(answer)});
    return granted;
}

void target::on(nanos now, const msg::release &m)
{
    here_.expected_over(now, m.txn, m.moved);
    reservations_.erase(m.txn);
}

void target::expire(nanos now)
{
    /* A release may be lost, or its sender may not remember: ranks that are here are no longer to
     * come. */
    std::erase_if(reservations_, [&](const auto &r) {
        return now >= r.second || !network_.alive(r.first.decider) || !here_.expects(r.first);
    });
}

} // namespace zc::agent::party
