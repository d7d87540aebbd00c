/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_AGENT_SAMPLES_H_INCLUDED
#define ZC_TESTS_AGENT_SAMPLES_H_INCLUDED

#include "message.h"

namespace zc::agent::test {

template <std::size_t I = 0>
void emplace(message_body &body, std::size_t type)
{
    if constexpr (I < std::variant_size_v<message_body>) {
        if (type == I)
            body.emplace<I>();
        else
            emplace<I + 1>(body, type);
    }
}

inline std::string random_text(random_source &r)
{
    std::string s(r.below(20), 'x');
    for (char &c : s)
        c = static_cast<char>(' ' + r.below(95));
    return s;
}

inline load_digest random_load(random_source &r)
{
    return {static_cast<float>(r.unit() * 64),
            static_cast<float>(r.unit() * 200),
            1.5f,
            static_cast<std::uint32_t>(r.next()),
            static_cast<std::uint32_t>(r.next()),
            r.next(),
            r.chance(0.5)};
}

inline member random_member(random_source &r)
{
    return {1 + r.below(1000),
            r.next(),
            static_cast<std::uint32_t>(r.next()),
            static_cast<member_state>(r.below(4)),
            random_text(r),
            random_text(r),
            random_load(r)};
}

inline txn_id random_txn(random_source &r)
{
    return {1 + r.below(1000), r.next()};
}

inline void fill(rank_id &rank, random_source &r)
{
    rank = static_cast<rank_id>(r.next());
}

inline void fill(traveller &m, random_source &r)
{
    m = {static_cast<rank_id>(r.next()), 1 + r.below(1000)};
}

/** A valid message of any type, filled at random. */
inline message random_message(random_source &r)
{
    message m{1 + r.below(1000), 1 + r.below(1000), 1 + r.below(1u << 20), {}};
    emplace(m.body, r.below(std::variant_size_v<message_body>));
    std::visit(
        [&](auto &b) {
            if constexpr (requires { b.nonce; })
                b.nonce = r.next();
            if constexpr (requires { b.txn; })
                b.txn = random_txn(r);
            if constexpr (requires { b.job; })
                b.job = r.next();
            if constexpr (requires { b.at_ns; })
                b.at_ns = r.next();
            if constexpr (requires { b.epoch; })
                b.epoch = r.next();
            if constexpr (requires { b.bytes; })
                b.bytes = r.next();
            if constexpr (requires { b.ranks; }) {
                b.ranks.resize(1 + r.below(40));
                for (auto &each : b.ranks)
                    fill(each, r);
            }
            if constexpr (requires { b.target; })
                b.target = 1 + r.below(1000);
            if constexpr (requires { b.reason; })
                b.reason = random_text(r);
            if constexpr (requires { b.load; })
                b.load = random_load(r);
            if constexpr (requires { b.padding; })
                b.padding = static_cast<std::uint32_t>(r.below(5000));
            if constexpr (requires { b.sender; })
                b.sender = random_member(r);
            if constexpr (requires { b.what; })
                b.what = static_cast<msg::verdict>(r.below(6));
            if constexpr (requires { b.gossip; }) {
                for (std::uint64_t i = r.below(kMaxGossip + 1); i > 0; i--)
                    b.gossip.push_back(random_member(r));
            }
            if constexpr (requires { b.events; }) {
                b.events.resize(1 + r.below(100));
                for (msg::sent &each : b.events)
                    each = {static_cast<rank_id>(r.next()), static_cast<rank_id>(r.next()),
                            r.next(), static_cast<std::uint32_t>(r.next())};
            }
            if constexpr (requires { b.thief; }) {
                b.thief = random_member(r);
                b.hops = static_cast<std::uint8_t>(r.below(kMaxVisited));
                b.visited.assign(r.below(kMaxVisited), 7);
                b.links.assign(r.below(kMaxLinks), {9, 12.5f, 100.0f});
            }
        },
        m.body);
    return m;
}

} // namespace zc::agent::test

#endif
