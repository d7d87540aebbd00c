/* SPDX-License-Identifier: BSD-3-Clause */
/* Every public header in C++, and the wrapper through the shared library. */
#include <zc/zc.h>
#include <zc/zc.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <vector>

static_assert(!std::is_copy_constructible_v<zc::context>);
static_assert(!std::is_copy_constructible_v<zc::landing>);
static_assert(std::is_nothrow_move_constructible_v<zc::landing>);

namespace {

int check(bool ok, const char *what)
{
    if (!ok)
        std::fprintf(stderr, "failed: %s\n", what);
    return ok ? 0 : 1;
}

} // namespace

int main()
{
    constexpr std::size_t kLen = 300'000;
    std::vector<char> buffer(kLen, 1);
    int failures = 0;

    auto made = zc::context::create();
    failures += check(bool(made), "create");
    zc::context zc = std::move(*made);
    auto first = zc.acquire(kLen, buffer.data());
    failures += check(bool(first), "acquire");
    zc::landing landing = std::move(*first);
    std::memset(landing.data(), 2, kLen);
    failures += check(landing.deliver(buffer.data(), kLen + 1).error() == -EINVAL, "too long");
    failures += check(bool(landing), "kept after an error");
    failures += check(bool(landing.deliver(buffer.data(), kLen)), "deliver");
    failures += check(!landing, "given up after delivery");
    failures += check(buffer == std::vector<char>(kLen, 2), "content");
    {
        auto dropped = zc.acquire(kLen);
        failures += check(zc.stats().in_use_now == kLen, "in use");
    }
    failures += check(zc.stats().in_use_now == 0, "released by its destructor");
    failures += check(zc.trim(true) > 0 && zc.stats().populated_now == 0, "trim");

    zc_params_t wrong{};
    failures += check(zc::context::create(wrong).error() == -EINVAL, "wrong parameters");
    return failures;
}
