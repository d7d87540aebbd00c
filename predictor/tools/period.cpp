/* SPDX-License-Identifier: BSD-3-Clause */
#include "period.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace zc::report {

static constexpr size_t kMostLags = 4096;

/* Receives numbered by what they are: comparing is then comparing numbers. */
static std::vector<uint32_t> symbols_of(const trace &trace)
{
    using symbol = std::tuple<uint32_t, int32_t, int32_t, uint64_t, uint64_t>;
    std::map<symbol, uint32_t> numbers;
    std::vector<uint32_t> symbols;
    for (const traced_receive &r : trace.receives) {
        const zcp_envelope_t &e = r.receive.envelope;
        const symbol whole{e.comm, e.source, e.tag, e.bytes, r.receive.addr};
        symbols.push_back(
            numbers.try_emplace(whole, static_cast<uint32_t>(numbers.size())).first->second);
    }
    return symbols;
}

static period_found longest_stretch(const std::vector<uint32_t> &symbols, size_t lag)
{
    period_found best{lag, 0, 0};
    size_t run = 0;
    for (size_t i = lag; i < symbols.size(); i++) {
        run = symbols[i] == symbols[i - lag] ? run + 1 : 0;
        if (run + lag > best.length)
            best = {lag, i + 1 - run - lag, run + lag};
        if (symbols.size() - i + run + lag < best.length)
            break;
    }
    return best;
}

period_found find_period(const trace &trace)
{
    const auto symbols = symbols_of(trace);
    std::vector<period_found> found;
    size_t longest = 0;
    for (size_t lag = 1; lag <= std::min(kMostLags, symbols.size() / 2); lag++) {
        found.push_back(longest_stretch(symbols, lag));
        if (found.back().length < 2 * lag) {
            found.pop_back();
            continue;
        }
        longest = std::max(longest, found.back().length);
        if (longest == symbols.size())
            break;
    }
    const auto first = std::find_if(found.begin(), found.end(), [&](const period_found &f) {
        return f.length * 10 >= longest * 9;
    });
    return first == found.end() ? period_found{} : *first;
}

} // namespace zc::report
