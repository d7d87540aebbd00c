/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_MARKUP_H_INCLUDED
#define ZC_BASE_MARKUP_H_INCLUDED

#include <string>

namespace zc {

/** @text as text, or as the value of an attribute, of HTML or XML. Control characters, which XML
 * does not know, become spaces. */
std::string escaped(const std::string &text);

} // namespace zc

#endif
