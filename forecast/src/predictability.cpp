/* SPDX-License-Identifier: BSD-3-Clause */
#include "predictability.h"

#include <algorithm>
#include <memory>
#include <new>

#include "zcp/predictor.h"

namespace zc::forecast {

namespace {

struct event {
    std::int64_t time;
    std::size_t row;
    bool arrival;
};

std::vector<event> events_of(const zct::rank_trace &rank)
{
    std::vector<event> events;
    for (std::size_t i = 0; i < rank.receives.size(); i++) {
        const zct::receive &r = rank.receives[i];
        if (r.sent_known && r.sent_ns < r.posted_ns)
            events.push_back({r.sent_ns, i, true});
        events.push_back({r.posted_ns, i, false});
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const event &a, const event &b) { return a.time < b.time; });
    return events;
}

answer judge(const zct::receive &r, bool known, const zcp_landing_t &landing)
{
    if (!known)
        return answer::unknown;
    const std::uint64_t differs = landing.addr ^ r.addr;
    const bool right = landing.modulus ? differs % landing.modulus == 0 : differs == 0;
    return right ? answer::right : answer::wrong;
}

/** Of all receives of a rank, those of its point-to-point messages. */
std::vector<answer> of_point_to_point(const zct::rank_trace &rank, const std::vector<answer> &all)
{
    std::vector<answer> some;
    for (std::size_t i = 0; i < all.size(); i++)
        if (rank.receives[i].kind == ZCT_P2P)
            some.push_back(all[i]);
    some.shrink_to_fit();
    return some;
}

} // namespace

void predict(const zct::rank_trace &rank, std::uint64_t least_bytes, prediction &result)
{
    zcp_t *made = nullptr;
    if (zcp_create(nullptr, &made) != 0)
        throw std::bad_alloc();
    const std::unique_ptr<zcp_t, void (*)(zcp_t *)> engine(made, zcp_destroy);
    std::vector<zcp_claim_t> claims(rank.receives.size());
    std::vector<answer> answers(rank.receives.size(), answer::not_asked);
    for (const event &e : events_of(rank)) {
        const zct::receive &r = rank.receives[e.row];
        const zcp_receive_t receive = {{r.comm, r.source, r.tag, r.bytes}, r.addr};
        if (e.arrival) {
            zcp_landing_t landing{};
            const bool known = zcp_arrival(engine.get(), &receive.envelope, &landing) == 1;
            claims[e.row] = landing.claim;
            if (r.bytes >= least_bytes)
                answers[e.row] = judge(r, known, landing);
            result.total.add(answers[e.row]);
        } else if (claims[e.row]) {
            zcp_settle(engine.get(), claims[e.row], r.addr);
        } else {
            zcp_receive(engine.get(), &receive);
        }
    }
    result.answers.push_back(of_point_to_point(rank, answers));
}

} // namespace zc::forecast
