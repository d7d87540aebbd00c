/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"

#include <chrono>
#include <ctime>
#include <sched.h>

namespace zc::migrate {

double seconds()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double ms_since(double begin)
{
    return (seconds() - begin) * 1e3;
}

void pause::rest()
{
    if (++rounds_ < 64)
        return;
    if (rounds_ < 512) {
        sched_yield();
        return;
    }
    const timespec span{0, rounds_ < 4096 ? 50'000 : 500'000};
    nanosleep(&span, nullptr);
}

} // namespace zc::migrate
