/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

namespace zc::migrate {

/** Any thread: loads own_hdf5 now, which takes tens of milliseconds, so that its first use need
 * not. What goes wrong is said by the first use, which tries again. */
void load_hdf5_ahead() noexcept;

} // namespace zc::migrate
