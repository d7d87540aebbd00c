/* SPDX-License-Identifier: BSD-3-Clause */
#include "slot.h"

#include <bit>

namespace zc {

void slot::add_cut(addr_t at)
{
    if (at <= span.begin || at >= span.end)
        return;
    auto place = std::lower_bound(cuts.begin(), cuts.end(), at);
    if (place == cuts.end() || *place != at)
        cuts.insert(place, at);
}

addr_t slot_place(slot_kind kind, range span, addr_t expected)
{
    std::size_t unit = kind.place == placement::page ? kPage : kHuge;
    return span.begin + (expected & (unit - 1));
}

slot_kind slot_kind_for(placement place, std::size_t len, int node)
{
    std::size_t pages = round_up(len, kPage) / kPage;
    if (pages > 4) {
        std::size_t step = std::bit_floor(pages) / 4;
        pages = (pages + step - 1) / step * step;
    }
    /* One unit more than the message is long leaves room for any offset. */
    std::size_t unit = place == placement::page ? kPage : kHuge;
    return {place, round_up(pages * kPage, unit) + unit, node};
}

} // namespace zc
