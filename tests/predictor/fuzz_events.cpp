/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_events.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "zcp/predictor.h"

namespace {

void require(bool holds, const char *what)
{
    if (holds)
        return;
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
}

/** Numbers from bytes; zeros after the end. */
class input {
  public:
    input(const uint8_t *data, size_t size) : at_(data), end_(data + size) {}
    bool empty() const { return at_ == end_; }
    template <typename T>
    T take()
    {
        T value{};
        const size_t n = std::min(sizeof(T), static_cast<size_t>(end_ - at_));
        if (n > 0)
            std::memcpy(&value, at_, n);
        at_ += n;
        return value;
    }

  private:
    const uint8_t *at_;
    const uint8_t *end_;
};

struct destroy {
    void operator()(zcp_t *p) const { zcp_destroy(p); }
};
using handle = std::unique_ptr<zcp_t, destroy>;

handle make_engine(input &in, zcp_params_t &params)
{
    params = {};
    params.size = sizeof(params);
    params.kind = static_cast<zcp_kind_t>(in.take<uint8_t>() % ZCP_KIND_COUNT);
    params.horizon = 1 + in.take<uint8_t>() % 64;
    params.max_bytes = (size_t{64} + in.take<uint8_t>()) << 10;
    zcp_t *made = nullptr;
    require(zcp_create(&params, &made) == 0, "parameters in range are accepted");
    return handle(made);
}

/* Mostly of a few values, so that things recur; now and then anything. */
zcp_envelope_t take_envelope(input &in)
{
    const auto choice = in.take<uint8_t>();
    if (choice == 0)
        return {in.take<uint32_t>(), in.take<int32_t>(), in.take<int32_t>(), in.take<uint64_t>()};
    return {choice % 3u, choice / 3 % 5, choice / 15 % 4 - 1, uint64_t{1} << (choice % 23)};
}

uint64_t take_addr(input &in)
{
    const auto choice = in.take<uint8_t>();
    return choice == 0 ? in.take<uint64_t>() : choice * uint64_t{0x810};
}

void check_landing(int known, const zcp_landing_t &landing, uint32_t horizon)
{
    require(known == 0 || known == 1, "an arrival is known or not");
    require(landing.claim != 0, "a claim is never 0");
    require(landing.confidence >= 0 && landing.confidence <= 1, "confidence is a share");
    require((known == 1) == (landing.ahead != 0), "an answer is some way ahead");
    require(landing.ahead <= horizon, "an answer is within the horizon");
    require(known == 1 || landing.addr == 0, "silence has no address");
    require(landing.modulus == 0 || landing.addr < landing.modulus, "a class is a remainder");
}

void check_stats(const zcp_t *engine, const zcp_params_t &params)
{
    zcp_stats_t stats{};
    stats.size = sizeof(stats);
    require(zcp_stats(engine, &stats) == 0, "statistics are there");
    require(stats.bytes <= params.max_bytes, "memory stays within max_bytes");
    require(stats.hits + stats.misses + stats.unknown == stats.settled, "outcomes add up");
    require(stats.congruent <= stats.misses, "congruent ones are misses");
    require(stats.settled + stats.cancelled <= stats.arrivals, "what settles has arrived");
}

} // namespace

void play_events(const uint8_t *data, size_t size)
{
    input in(data, size);
    zcp_params_t params;
    const handle engine = make_engine(in, params);
    std::vector<zcp_claim_t> open;
    std::vector<zcp_receive_t> coming(80);
    while (!in.empty()) {
        switch (in.take<uint8_t>() % 8) {
        case 0:
        case 1:
        case 2: {
            const zcp_envelope_t envelope = take_envelope(in);
            const zcp_receive_t receive = {envelope, take_addr(in)};
            zcp_receive(engine.get(), &receive);
            break;
        }
        case 3:
        case 4: {
            const zcp_envelope_t envelope = take_envelope(in);
            zcp_landing_t landing{};
            const int known = zcp_arrival(engine.get(), &envelope, &landing);
            require((known < 0) == (envelope.source < 0), "only wildcards are refused");
            if (known >= 0) {
                check_landing(known, landing, params.horizon);
                open.push_back(landing.claim);
            }
            break;
        }
        case 5: { /* settles any open claim, or one that is not */
            const size_t i = open.empty() ? 0 : in.take<uint16_t>() % open.size();
            zcp_settle(engine.get(), open.empty() ? in.take<uint64_t>() : open[i], take_addr(in));
            if (!open.empty())
                open.erase(open.begin() + static_cast<ptrdiff_t>(i));
            break;
        }
        case 6:
            if (!open.empty()) {
                zcp_cancel(engine.get(), open.back());
                open.pop_back();
            }
            break;
        default: {
            const uint32_t k = in.take<uint8_t>() % 80;
            const uint32_t n = zcp_next(engine.get(), coming.data(), k);
            require(n <= k && n <= params.horizon, "no more is foretold than asked for");
            const zcp_envelope_t envelope = take_envelope(in);
            zcp_explanation_t why{};
            why.size = sizeof(why);
            require((zcp_explain(engine.get(), &envelope, &why) < 0) == (envelope.source < 0),
                    "only wildcards are refused");
            require(std::memchr(why.text, 0, sizeof(why.text)) != nullptr, "text ends");
        }
        }
        check_stats(engine.get(), params);
    }
}
