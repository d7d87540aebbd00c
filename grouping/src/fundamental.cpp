/* SPDX-License-Identifier: BSD-3-Clause */
#include "fundamental.h"

#include <vector>

namespace zc::groups {

size_t fundamental_period(std::span<const uint32_t> text, std::pmr::memory_resource *memory)
{
    if (text.empty())
        return 0;
    /* border[i]: length of the longest proper prefix of text[0 … i] that is also
     * its suffix. A text with a border of length b has the period n - b, and the
     * longest border gives the smallest period. */
    std::pmr::vector<uint32_t> border(text.size(), 0, memory);
    uint32_t length = 0;
    for (size_t i = 1; i < text.size(); i++) {
        while (length > 0 && text[i] != text[length])
            length = border[length - 1];
        if (text[i] == text[length])
            length++;
        border[i] = length;
    }
    return text.size() - length;
}

} // namespace zc::groups
