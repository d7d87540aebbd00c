/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_END_BY_SIGNAL_H_INCLUDED
#define ZC_BASE_END_BY_SIGNAL_H_INCLUDED

namespace zc {

/** Ends this process as @signal ends one, without a core file: it is not the cause. */
[[noreturn]] void end_by_signal(int signal);

} // namespace zc

#endif
