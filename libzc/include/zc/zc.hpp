/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ZC_HPP_INCLUDED
#define ZC_ZC_HPP_INCLUDED

/**
 * Thin C++ convenience over zc.h: move-only owners that release what they
 * hold, and results that cannot be ignored. No exception is thrown. Meaning,
 * threads and errors are those of zc.h.
 */

#include "zc/zc.h"

#include <cassert>
#include <cstddef>
#include <utility>

namespace zc {

/** A value, or the negative errno that stands in its place. */
template <typename T>
class [[nodiscard]] result {
  public:
    result(T value) : value_(std::move(value)) {}
    static result failure(int error) { return result(error, 0); }

    explicit operator bool() const noexcept { return error_ == 0; }
    int error() const noexcept { return error_; }
    T &operator*() noexcept
    {
        assert(error_ == 0);
        return value_;
    }
    T *operator->() noexcept { return &**this; }

  private:
    result(int error, int) : error_(error) {}

    T value_{};
    int error_ = 0;
};

/** A landing buffer; released unless delivered. Must not outlive its context. */
class landing {
  public:
    landing() = default;
    landing(zc_t *owner, zc_landing_t *handle) noexcept : owner_(owner), handle_(handle) {}
    landing(landing &&other) noexcept
        : owner_(other.owner_), handle_(std::exchange(other.handle_, nullptr))
    {
    }
    landing &operator=(landing &&other) noexcept
    {
        std::swap(owner_, other.owner_);
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~landing() { zc_landing_release(owner_, handle_); }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    void *data() const noexcept { return zc_landing_data(handle_); }

    /** Delivers and gives the buffer up; keeps it if there is an error. */
    result<zc_delivery_t> deliver(void *dst, std::size_t len) noexcept
    {
        zc_delivery_t how{};
        if (int err = zc_deliver(owner_, handle_, dst, len, &how))
            return result<zc_delivery_t>::failure(err);
        handle_ = nullptr;
        return how;
    }

  private:
    zc_t *owner_ = nullptr;
    zc_landing_t *handle_ = nullptr;
};

/** Landing pool, rebinder and counters. */
class context {
  public:
    context() = default;
    context(context &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    context &operator=(context &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~context() { zc_destroy(handle_); }

    static result<context> create(const zc_params_t &params) noexcept
    {
        context made;
        if (int err = zc_create(&params, &made.handle_))
            return result<context>::failure(err);
        return made;
    }
    static result<context> create() noexcept
    {
        zc_params_t defaults{};
        defaults.size = sizeof(defaults);
        return create(defaults);
    }

    result<landing> acquire(std::size_t len, const void *expected = nullptr) noexcept
    {
        zc_landing_t *handle = nullptr;
        if (int err = zc_landing_acquire(handle_, len, expected, &handle))
            return result<landing>::failure(err);
        return landing(handle_, handle);
    }

    zc_stats_t stats() const noexcept
    {
        zc_stats_t out{};
        out.size = sizeof(out);
        (void)zc_stats(handle_, &out);
        return out;
    }

    std::size_t trim(bool all = false) noexcept { return zc_pool_trim(handle_, all); }
    zc_t *get() const noexcept { return handle_; }

  private:
    zc_t *handle_ = nullptr;
};

} // namespace zc

#endif /* ZC_ZC_HPP_INCLUDED */
