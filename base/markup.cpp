/* SPDX-License-Identifier: BSD-3-Clause */
#include "markup.h"

namespace zc {

std::string escaped(const std::string &text)
{
    std::string out;
    for (const char c : text) {
        switch (c) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '"':
            out += "&quot;";
            break;
        default:
            out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
        }
    }
    return out;
}

} // namespace zc
