/* SPDX-License-Identifier: BSD-3-Clause */
#include "zc/zc.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <strings.h>

namespace {

/** The shift of a unit letter; -1 if it is none. */
int unit_shift(char letter)
{
    switch (letter) {
    case 'k':
    case 'K':
        return 10;
    case 'm':
    case 'M':
        return 20;
    case 'g':
    case 'G':
        return 30;
    default:
        return -1;
    }
}

} // namespace

extern "C" int zc_parse_size(const char *text, size_t *bytes) noexcept
{
    if (!text || !bytes)
        return -EINVAL;
    if (strcasecmp(text, "inf") == 0) {
        *bytes = SIZE_MAX;
        return 0;
    }
    if (strcasecmp(text, "auto") == 0) {
        *bytes = 0;
        return 0;
    }
    size_t value = 0;
    auto [rest, err] = std::from_chars(text, text + std::strlen(text), value);
    if (err == std::errc::result_out_of_range)
        return -ERANGE;
    if (err != std::errc{})
        return -EINVAL;
    int shift = 0;
    if (*rest != '\0') {
        shift = unit_shift(*rest);
        if (shift < 0 || rest[1] != '\0')
            return -EINVAL;
    }
    if (value > SIZE_MAX >> shift)
        return -ERANGE;
    *bytes = value << shift;
    return 0;
}
